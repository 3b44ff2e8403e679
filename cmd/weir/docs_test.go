package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
)

// section returns the text of a page of docs from a heading to the next heading that is not below
// it. It fails t if the page lacks the heading.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	text := require.File(t, "../../docs/"+page)
	_, after, ok := strings.Cut("\n"+string(text), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("docs/%s has no %q", page, heading)
	}
	level, _, _ := strings.Cut(heading, " ")
	return regexp.MustCompile(fmt.Sprintf(`\n#{2,%d} `, len(level))).Split(after, 2)[0]
}

// TestREADME runs every line of README.md in order, in one folder, with the servers that the page
// starts. Ports differ, since the ports of the page may be in use here, and each load is held for a
// second. WEIR_LONG=1 holds it as long as printed.
func TestREADME(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	labtest.Need(t, "xrdcp", "haproxy")
	dir := t.TempDir()
	if ran := followPage(t, "../../README.md", dir, "127.0.0.1:8080", freeAddress(t), "127.0.0.1:8081", freeAddress(t), "weir coordinator &",
		"weir coordinator --listen "+freeAddress(t)+" &"); ran < 25 {
		t.Errorf("only %d commands found in README.md", ran)
	}
	for _, arrived := range []string{"partial.yaml", "old.csv"} {
		if _, err := os.Stat(filepath.Join(dir, "b/store/run1", arrived)); err != nil {
			t.Error(err)
		}
	}
}

// Every line of docs/first-ten-minutes.md works in order, as those of README.md. The service of
// example.org is the one that the page starts.
func TestFirstTenMinutesPage(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	dir, address := t.TempDir(), freeAddress(t)
	const page = "../../docs/first-ten-minutes.md"
	if ran := followPage(t, page, dir, "127.0.0.1:8080", address, "https://se.example.org/data", "http://"+address+"/", "--time 1m",
		"--time 8s"); ran < 11 {
		t.Errorf("only %d commands found", ran)
	}
	var f struct{ Validity struct{ Status string } }
	require.NoError(t, json.Unmarshal(require.File(t, filepath.Join(dir, "findings.json")), &f))
	if f.Validity.Status == "" {
		t.Error("findings.json has no validity")
	}
	for _, run := range []string{"runs/before", "runs/after", "runs/latest"} {
		if _, err := os.Stat(filepath.Join(dir, run, "report.html")); err != nil {
			t.Error(err)
		}
	}
}

// followPage runs every line of a page in order in dir, after replacing texts of the page, and returns
// the number of lines. Files whose first line is their name are written.
func followPage(t *testing.T, page, dir string, here ...string) (ran int) {
	t.Helper()
	for _, block := range regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```").FindAllStringSubmatch(string(require.File(t, page)), -1) {
		text := strings.NewReplacer(here...).Replace(block[2])
		if os.Getenv("WEIR_LONG") == "" {
			text = regexp.MustCompile(`\b((?:hold|duration):? )[235]s`).ReplaceAllString(strings.NewReplacer("--time 30s", "--time 8s", "--rounds 2",
				"--rounds 1").Replace(text), "${1}1s")
		}
		if name := regexp.MustCompile(`^# (\S+\.(?:yaml|csv))\n`).FindStringSubmatch(text); name != nil {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name[1]), []byte(text), 0o600))
		}
		for line := range strings.Lines(text) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if block[1] != "console" || !ok || strings.HasPrefix(command, "make ") {
				continue
			}
			ran++
			began := time.Now()
			command, background := strings.CutSuffix(command, " &")
			p := start(t, dir, "env", "XDG_STATE_HOME="+filepath.Join(dir, "state"), "WEIR_CONFIG="+filepath.Join(dir, "config.json"), "bash",
				"-c", command)
			if background {
				p.serves(t)
				continue
			}
			if code, said := p.ended(); code != exitFine && code != exitInvalid {
				t.Errorf("%s: exit code %d\n%s", command, code, said)
			}
			t.Logf("%4.1f s  %s", time.Since(began).Seconds(), command)
		}
	}
	return ran
}

// serves waits until the process has printed its address or, if it is an agent, that it is
// registered, and ends it with t.
func (p *process) serves(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		p.send(t, os.Interrupt)
		_ = p.Wait() // it was interrupted
	})
	require.Eventually(t, "the server is up", func() bool {
		return regexp.MustCompile(`(?m)^(serving|coordinator at) |"the coordinator knows this site"`).MatchString(p.out.String())
	})
}

// freeAddress returns a loopback address with a port that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// short splits a command of a page into words, and shortens its run.
func short(command string) []string {
	args := strings.Fields(command)
	switch args[0] {
	case "run":
		return append(args, "--set", "load.ramp=0s", "--set", "load.warmup=100ms")
	case "calibrate":
		return append(args, "--rounds", "1", "--duration", "300ms", "--clients", "1")
	}
	return args
}

// Every weir command of docs/scenario.md works on its first example, with shorter runs.
func TestScenarioPage(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	page := require.File(t, "../../docs/scenario.md")
	web := labtest.Start(t, lab.NginxConfig{})
	fill(t, web.Data, 5, 1<<20)
	example := regexp.MustCompile("(?s)```yaml\n(name: my-first\n.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("the first example is not there")
	}
	text := regexp.MustCompile(`target: \S+`).ReplaceAllString(string(example[1]), "target: "+web.URL)
	text = strings.NewReplacer("30s", "1s", "[1, 10, 100]", "[1, 2]").Replace(text)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "my-first.yaml"), []byte(text), 0o600))
	ran := 0
	for _, m := range regexp.MustCompile(`(?m)^    weir ([^#\n]*)`).FindAllStringSubmatch(string(page), -1) {
		ran++
		if code, said := start(t, dir, "weir", short(m[1])...).ended(); code != exitFine && code != exitInvalid {
			t.Errorf("weir %s: exit code %d\n%s", m[1], code, said)
		}
	}
	if ran < 6 {
		t.Errorf("only %d commands found", ran)
	}
}

// The ready scenarios run, small, against the services they are meant for.
func TestScenarios(t *testing.T) {
	tier.Full(t, "the scenarios on the services that they are for")
	t.Parallel()
	web := labtest.Start(t, lab.NginxConfig{})
	xrd := labtest.Start(t, lab.XRootDConfig{})
	ftp := labtest.Start(t, lab.GridFTPConfig{})
	labtest.Need(t, "gfal-copy")
	for _, dir := range []string{web.Data, xrd.Data, ftp.Data} {
		fill(t, dir, 4, 100<<10)
	}
	list := filepath.Join(t.TempDir(), "files.txt")
	require.NoError(t, os.WriteFile(list, []byte("data-01.dat\ndata-02.dat\n"), 0o600))
	here := []string{"--target", ftp.URL, "--set", "on=null", "--set", "balancer=null", "--set", "hosts=null", "--set", "thresholds=[]",
		"--set", "load.cooldown=0s"}
	listed := append(here[:len(here):len(here)], "--var", "LIST="+list, "--set", "auth={method: none}")
	extra := map[string][]string{
		"first-light.yaml":  nil,
		"simulated.yaml":    nil,
		"retrograde.yaml":   {"--set", "thresholds=[]"},
		"nginx-webdav.yaml": {"--target", web.URL},
		"upload.yaml":       {"--target", web.URL},
		"metadata.yaml":     {"--target", web.URL},
		"matrix.yaml":       {"--repeat", "1", "--set", "load.duration=1s"},
		"open-load.yaml":    {"--target", web.URL, "--set", "load.rate=[20/s]", "--set", "load.clients=null"},
		"login.yaml":        {"--target", web.URL, "--set", "auth=null"},
		"xrootd-http.yaml":  {"--target", xrd.URLs["http"]},
		"gfal-copy.yaml":    listed,
		"native.yaml":       listed,
		"small.yaml":        here,
		"batches.yaml":      here,
		"remote-pool.yaml":  here, // its jobs behind the link: TestHTCondorBehindALink
	}
	files, err := filepath.Glob("../../scenarios/*.yaml")
	lvs, err2 := filepath.Glob("../../scenarios/gridftp-lvs/*.yaml") // on the machines of a batch system: TestClientsAsJobs
	if err = errors.Join(err, err2); err != nil || len(files) == 0 || len(lvs) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range append(files, lvs...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			more, ok := extra[filepath.Base(file)]
			if !ok {
				t.Fatal("not tested: add it here")
			}
			args := []string{file, "--set", "load.duration=3s", "--set", "load.warmup=500ms", "--set", "load.ramp=0s", "--set",
				"load.graceful_stop=20s"}
			if !strings.Contains(strings.Join(more, " "), "load.rate") {
				args = append(args, "--clients", "1,2")
			}
			for _, f := range measureAll(t, append(args, more...)...) {
				done := int64(0) // a disk that all tests share may stall one short step for its whole duration
				for _, s := range f.Curve {
					done += s.Done
					if s.Errors > 0 {
						t.Errorf("%s, step %d: %d done, %d errors %v", f.Run, s.Step, s.Done, s.Errors, s.ErrorsBy)
					}
				}
				if done == 0 {
					t.Errorf("%s: nothing was done in %d steps", f.Run, len(f.Curve))
				}
			}
		})
	}
}

// The Makefile has the targets that README.md names.
func TestMakefileHasWhatTheREADMENames(t *testing.T) {
	for _, target := range []string{"demo", "test"} {
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "make", "-n", target)
		cmd.Dir, cmd.Stdout, cmd.Stderr = "../..", &out, &out
		if err := cmd.Run(); err != nil {
			t.Errorf("make %s: %v\n%s", target, err, out.String())
		}
	}
}

// make install puts the command, its pages and completions into their folders. make uninstall
// removes these files, and no other files.
func TestInstall(t *testing.T) {
	t.Parallel()
	command, err := exec.LookPath("weir")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	require.NoError(t, os.Symlink(command, filepath.Join(dir, "bin", "weir")))
	install := func(what string) []string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "make", what, "PREFIX=/usr", "DESTDIR="+filepath.Join(dir, "a package"), "BIN="+
			filepath.Join(dir, "bin"), "BUILD="+filepath.Join(dir, "build"))
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", what, err, out)
		}
		files, err := fs.Glob(os.DirFS(filepath.Join(dir, "a package", "usr")), "*/*")
		require.NoError(t, err)
		for _, depth := range []string{"*/*/*/*", "*/*/*/*/*"} {
			more, err := fs.Glob(os.DirFS(filepath.Join(dir, "a package", "usr")), depth)
			require.NoError(t, err)
			files = append(files, more...)
		}
		return files
	}
	there := install("install")
	for _, want := range []string{
		"bin/weir", "share/man/man1/weir.1", "share/man/man1/weir-run.1", "share/man/man5/weir-scenario.5",
		"share/man/man7/weir-exit-codes.7", "share/bash-completion/completions/weir",
		"share/zsh/site-functions/_weir", "share/fish/vendor_completions.d/weir.fish",
	} {
		if !slices.Contains(there, want) {
			t.Errorf("%s is missing among %q", want, there)
		}
	}
	other := filepath.Join(dir, "a package", "usr", "share", "man", "man1", "weir-other.1")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	for _, left := range install("uninstall") {
		if strings.Contains(left, "weir") && !strings.HasSuffix(left, "weir-other.1") {
			t.Errorf("%s is left", left)
		}
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}
