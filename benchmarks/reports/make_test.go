package reports

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/monitor"
)

var (
	weirFlag = flag.String("weir", "", "the weir `PROGRAM` that makes the runs")
	onlyFlag = flag.String("only", "", "make only the runs whose names begin with what this `REGEXP` matches")
	drawFlag = flag.Bool("draw", false, "run nothing: write pages and figures of the runs that are there")
)

const root = "../.."

// TestMake makes the runs of all pages, their output on the pages and their figures.
func TestMake(t *testing.T) {
	if *weirFlag == "" {
		t.Skip("no -weir")
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	m := newMaker(ctx, t, root, *weirFlag)
	m.patience = time.Hour
	m.all(t, *onlyFlag)
}

// TestMakeOnce makes a small page: a run and its figure, which are kept the second time, and a run that was interrupted,
// which is resumed.
func TestMakeOnce(t *testing.T) {
	tier.Full(t, "the runs of the pages about the five reports, once and shortened")
	folder, weir := t.TempDir(), build(t)
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "docs/reports"), 0o755))
	path := filepath.Join(folder, "docs/reports/009-runs.md")
	text := "# Small\n\n```sh\nweir run --clients 1,2 --duration 1s --out runs/009-one\n```\n\n```text\n```\n\n" +
		"![Throughput](figures/009-one-throughput-vs-clients.svg)\n\n" +
		"```sh\nweir run --clients 1,2,3 --duration 2s --out runs/009-two\n```\n\n```text\nold\n```\n" +
		"\n```sh\nweir compare runs/009-one runs/009-two --figures runs/009-both --format svg\n```\n\n```text\n```\n\n" +
		"![Both](figures/009-both-throughput-vs-clients.svg)\n\n" +
		"```sh\nweir analyze then.csv --figures runs/009-then --format svg\n```\n\n```text\n```\n\n" +
		"![Then](figures/009-then-throughput-vs-clients.svg)\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "then.csv"), []byte("Clients,Gbit/s\n1,1\n4,3\n7,2\n"), 0o644))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "009-small.md"), []byte("# Small\n"), 0o644))
	m := newMaker(t.Context(), t, folder, weir)
	m.all(t, "009-one")
	marker := filepath.Join(folder, "runs/009-one.txt")
	before, err := os.Stat(marker)
	require.NoError(t, err)
	c := m.command("weir", "run", "--quiet", "--clients", "1,2,3", "--duration", "2s", "--out", "runs/009-two")
	require.NoError(t, c.Start())
	time.Sleep(4 * time.Second)
	_ = c.Process.Kill() // it may have ended
	_ = c.Wait()
	m.all(t, "")
	after, err := os.Stat(marker)
	if err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the first run was made again: %v", err)
	}
	p, err := readPage(path)
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(folder, dataDir, "009-one-findings.json")); err != nil {
		t.Errorf("no data of the first run: %v", err)
	}
	if all, err := records(folder); err != nil || len(all) != 2 || all[0].run != "009-one" || all[1].run != "009-two" {
		t.Errorf("recorded are %+v, %v", all, err)
	}
	for i, steps := range []string{"\n        2 ", "\n        3 ", "009-two against 009-one", "\n        7 "} {
		if out := p.output(p.runs[i]); !strings.Contains(out, steps) || strings.Contains(out, folder) ||
			!strings.Contains(out, "\nmeasured  ") || strings.Contains(out, "old") {
			t.Errorf("%s: %s", p.runs[i].name, out)
		}
	}
	for _, name := range []string{"009-one", "009-both", "009-then"} {
		svg := require.File(t, filepath.Join(folder, "docs/reports/figures", name+"-throughput-vs-clients.svg"))
		if !strings.Contains(string(svg), "<svg") {
			t.Errorf("no figure of %s: %s", name, svg)
		}
	}
}

// build makes the program weir.
func build(t *testing.T) string {
	t.Helper()
	tier.Slow(t, "builds weir")
	weir := filepath.Join(t.TempDir(), "weir")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", weir, root+"/cmd/weir").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return weir
}

// A maker makes runs in the folder of the project, root.
type maker struct {
	ctx  context.Context
	root string
	path string // a folder with weir in it
	log  func(string, ...any)

	patience time.Duration // a disturbed run waits so long for a quiet machine and is made again; 0: it is not
}

func newMaker(ctx context.Context, t *testing.T, root, weir string) *maker {
	t.Helper()
	m := &maker{ctx: ctx, root: root, path: t.TempDir(), log: t.Logf}
	require.NoError(t, os.Symlink(weir, filepath.Join(m.path, "weir")))
	return m
}

// all makes the runs of all pages whose names begin with a match of a regular expression.
func (m *maker) all(t *testing.T, only string) {
	t.Helper()
	wanted, err := regexp.Compile("^(" + only + ")")
	require.NoError(t, err)
	pages, err := readPages(m.root)
	require.NoError(t, err)
	m.announce(t, pages, wanted)
	for _, p := range pages {
		for _, r := range p.runs {
			if m.ctx.Err() == nil && wanted.MatchString(r.name) {
				if err := m.make(p.path, r); err != nil {
					t.Errorf("%s: %v", r.name, err)
				}
			}
		}
	}
}

// announce logs the number of runs that do not exist yet and their duration, as it was the last time.
func (m *maker) announce(t *testing.T, pages []*page, wanted *regexp.Regexp) {
	t.Helper()
	all, err := records(m.root)
	require.NoError(t, err)
	took := map[string]time.Duration{}
	for _, r := range all {
		took[r.run], _ = time.ParseDuration(r.took) // TestRecord checks it
	}
	var sum time.Duration
	missing, unknown := 0, 0
	for _, p := range pages {
		for _, r := range p.runs {
			if _, err := os.Stat(filepath.Join(m.root, "runs", r.name+".txt")); err == nil || r.analyzes() || !wanted.MatchString(r.name) {
				continue
			}
			missing++
			if sum += took[r.name]; took[r.name] == 0 {
				unknown++
			}
		}
	}
	m.log("%d runs are to be made, about %v and %d runs of unknown duration", missing, sum.Round(time.Minute), unknown)
}

// command returns a command that runs in the folder of the project, with weir in its PATH. It is
// interrupted when ctx ends.
func (m *maker) command(name string, args ...string) *exec.Cmd {
	if name == "weir" {
		name = filepath.Join(m.path, name)
	}
	c := exec.CommandContext(m.ctx, name, args...)
	c.Dir, c.Stderr = m.root, os.Stderr
	c.Env = append(os.Environ(), "PATH="+m.path+":"+os.Getenv("PATH"))
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error {
		time.AfterFunc(2*time.Minute, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }) // it may have ended before
		return syscall.Kill(-c.Process.Pid, syscall.SIGINT)
	}
	c.WaitDelay = 130 * time.Second
	return c
}

// make makes a run that does not exist yet, and writes its output and figures to the page.
func (m *maker) make(path string, r *run) error {
	dir := filepath.Join(m.root, "runs", r.name)
	printed, err := os.ReadFile(dir + ".txt")
	if errors.Is(err, fs.ErrNotExist) && *drawFlag {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) || r.analyzes() {
		printed, err = m.run(r, dir)
		for tries := 1; err == nil && m.patience > 0 && tries < mostTries && disturbed(dir, string(printed)); tries++ {
			m.log("%s was disturbed by other programs and is made again when the machine is quiet", r.name)
			m.quiet()
			if err := os.Rename(dir, fmt.Sprintf("%s.disturbed-%d", dir, time.Now().Unix())); err != nil {
				return err
			}
			printed, err = m.run(r, dir)
		}
	}
	if err != nil {
		return err
	}
	where := string(printed[max(0, bytes.LastIndex(printed, []byte("\nmeasured "))):])
	if isRun(dir) { // analyzed again by the current weir
		if printed, err = m.command("weir", "report", "--fail-on", "never", filepath.Join("runs", r.name)).Output(); err != nil {
			return err
		}
	}
	if err := errors.Join(m.draw(r, dir), m.publish(r, dir)); err != nil {
		return err
	}
	return write(path, r.name, shorten(string(printed))+where)
}

// mostTries is the maximum number of attempts at a run that other programs disturb.
const mostTries = 3

// disturbed reports whether a run is not valid since other programs used the machine.
func disturbed(dir, printed string) bool {
	return worstVerdict(printed) != "valid" && strings.Contains(reasons(dir, printed), "quiet machines")
}

// quiet waits until other programs leave the machine alone.
func (m *maker) quiet() {
	for end := time.Now().Add(m.patience); time.Now().Before(end) && m.ctx.Err() == nil; {
		text, err := os.ReadFile("/proc/loadavg")
		load, _, _ := strings.Cut(string(text), " ")
		if x, parsed := strconv.ParseFloat(load, 64); err != nil || parsed != nil || x < 0.3 {
			return
		}
		select {
		case <-m.ctx.Done():
		case <-time.After(20 * time.Second):
		}
	}
}

// run runs a command, or resumes its run if it was interrupted, and returns its output. The run of
// a lab cannot be resumed: its servers differ the next time.
func (m *maker) run(r *run, dir string) ([]byte, error) {
	command := r.command
	if _, err := os.Stat(dir); err == nil && !r.analyzes() {
		if strings.HasPrefix(command, "weir run ") {
			command = "weir run --resume runs/" + r.name
		} else if err := os.Rename(dir, fmt.Sprintf("%s.unfinished-%d", dir, time.Now().Unix())); err != nil {
			return nil, err
		}
	}
	begin := time.Now()
	m.log("%s %s: %s", begin.Format(time.TimeOnly), r.name, command)
	printed, err := m.command("sh", "-c", command).Output()
	if m.ctx.Err() != nil {
		return nil, fmt.Errorf("interrupted: make reports continues it: %w", m.ctx.Err())
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) && (ended.ExitCode() == 3 || ended.ExitCode() == 4) { // threshold, invalid run
		err = nil
	}
	if err != nil {
		return nil, err
	}
	printed = append(printed, measured(begin)...)
	if err := m.record(r, dir, printed, begin); err != nil {
		return nil, err
	}
	return printed, os.WriteFile(dir+".txt", printed, 0o644)
}

// record adds a run to the record of all runs.
func (m *maker) record(r *run, dir string, printed []byte, begin time.Time) error {
	if r.analyzes() {
		return nil
	}
	commit, err := m.command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	return record(m.root, recorded{
		r.name, begin.Format(time.DateOnly), time.Since(begin).Round(time.Second).String(), strings.TrimSpace(string(commit)),
		worstVerdict(string(printed)), reasons(dir, string(printed)),
	})
}

// publish copies the findings and the curve of a run, and of each run in its folder, to the data of
// the pages.
func (m *maker) publish(r *run, dir string) error {
	found, err := filepath.Glob(filepath.Join(dir, "*", "findings.json"))
	if err != nil {
		return err
	}
	for _, file := range append(found, filepath.Join(dir, "findings.json")) {
		from := filepath.Dir(file)
		name := r.name
		if from != dir {
			name += "-" + filepath.Base(from)
		}
		for _, kind := range []string{"findings.json", "curve.csv"} {
			text, err := os.ReadFile(filepath.Join(from, kind))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			to := filepath.Join(m.root, dataDir)
			if err := errors.Join(err, os.MkdirAll(to, 0o755), os.WriteFile(filepath.Join(to, name+"-"+kind), text, 0o644)); err != nil {
				return err
			}
		}
	}
	return nil
}

// draw writes the figures of a run that its page shows.
func (m *maker) draw(r *run, dir string) error {
	if len(r.figures) == 0 {
		return nil
	}
	drawn := filepath.Join(m.path, r.name)
	sources := map[string]string{"": dir} // prefixes of figures
	switch {
	case r.analyzes():
		drawn, sources = dir, nil
	case !isRun(dir):
		delete(sources, "")
		inner, err := filepath.Glob(filepath.Join(dir, "*", "about.json"))
		if err != nil {
			return err
		}
		for _, each := range inner {
			name := filepath.Base(filepath.Dir(each))
			sources[name+"-"] = filepath.Dir(each)
		}
	}
	for prefix, source := range sources {
		from, err := filepath.Rel(m.root, source)
		if err != nil {
			return err
		}
		c := m.command("weir", "report", "--quiet", "--fail-on", "never", "--figures", filepath.Join(drawn, prefix), "--format", "svg",
			"--size", "wide", from)
		if err := c.Run(); err != nil {
			return err
		}
	}
	for _, name := range r.figures {
		from := filepath.Join(drawn, name+".svg")
		for prefix := range sources {
			if rest, ok := strings.CutPrefix(name, prefix); ok && prefix != "" {
				from = filepath.Join(drawn, prefix, rest+".svg")
			}
		}
		svg, err := os.ReadFile(from)
		if err != nil {
			return fmt.Errorf("figure %s: %w", name, err)
		}
		to := filepath.Join(m.root, "docs/reports/figures", r.name+"-"+name+".svg")
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// isRun reports whether a folder is a run directory or a campaign's.
func isRun(dir string) bool {
	for _, name := range []string{"about.json", "campaign.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// shorten removes the lines with paths on the machine of the run.
func shorten(printed string) string {
	var kept []string
	for line := range strings.Lines(printed) {
		if strings.HasPrefix(line, "measured  ") {
			break
		}
		if !strings.HasPrefix(line, "run directory ") && !strings.HasPrefix(line, "report  ") {
			kept = append(kept, strings.TrimRight(line, " \n")+"\n")
		}
	}
	return strings.TrimRight(strings.Join(kept, ""), "\n")
}

// measured returns the line with the date, the duration and the machine of a run.
func measured(begin time.Time) string {
	e := monitor.About()
	took := unit.Duration(time.Since(begin).Round(time.Second))
	return fmt.Sprintf("\nmeasured       %s in %v on %d cores (%s, %v)\n", begin.Format(time.DateOnly), took,
		e.Cores, e.CPU, unit.Bytes(float64(e.Memory)))
}
