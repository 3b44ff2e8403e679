package rigs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
)

// A page is docs/truth.md.
type page struct {
	about   machine
	results []result
	healthy []healthyRun
}

// A machine describes the machine on which the rigs were played, and the date.
type machine struct {
	date, load, kernel, commit string
	cores                      int
}

func aboutMachine(ctx context.Context) machine {
	first := func(path string) string {
		b, _ := os.ReadFile(path) // "" if there is no such file
		word, _, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
		return word
	}
	commit, _ := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output() // "" outside of a repository
	return machine{
		date: time.Now().Format("2006-01-02"), load: first("/proc/loadavg"), kernel: first("/proc/sys/kernel/osrelease"),
		commit: strings.TrimSpace(string(commit)), cores: runtime.NumCPU(),
	}
}

// count counts the rigs that were caught and the rigs that were missed.
func (p *page) count() (caught, missed int) {
	for i := range p.results {
		switch r := &p.results[i]; {
		case r.skipped != "":
		case r.caught():
			caught++
		default:
			missed++
		}
	}
	return caught, missed
}

// alarms counts the healthy runs with a false alarm.
func (p *page) alarms() (n int) {
	for _, h := range p.healthy {
		if h.alarm != "" {
			n++
		}
	}
	return n
}

const intro = `[Rigs](#rigs) · [Healthy runs](#healthy-runs) · [False alarms](#false-alarms)

A *rig* is a situation whose truth is known because it was built: a server with a scheduled fault, a known bottleneck, a competing
program. Servers are real (nginx, Apache, lighttpd, XRootD, HAProxy, Python's http.server) where possible. Truths are ratios inside a rig.

- *other tools*: what wrk, ab, hey or curl report, or the totals of the run (bytes and operations over time).
- *weir reports*: headline, validity with the checks that warn or fail, limit, outages, exit code (unless 0), and CPU use of other programs
  above 15%.
- Rows marked **wrong** state the expectations of findings.json or the exit code that do not hold. A rig whose truth other programs
  changed is *skipped*.

`

const again = "`make rigs` repeats this in half an hour. `go test ./benchmarks/rigs -run TestRigs/NAME -full -healthy 0` runs rigs by " +
	"name, `-keep DIR`\nkeeps the run directories of missed ones, and `go test ./benchmarks/rigs` runs a short form.\n\n"

const aboutHealthy = "\n## Healthy runs\n\nNothing is wrong here: few clients with think time, spare capacity. " +
	"A false alarm is an exit code other than 0, a check that warns or fails,\nan outage, an excluded step, a peak, " +
	"or a limit that does not exist. Above 15% CPU use of other programs the check of quiet machines may warn;\nruns above 40% " +
	"do not count.\n\n"

// render writes the page.
func (p *page) render() string {
	var b bytes.Buffer
	caught, missed := p.count()
	fmt.Fprintf(&b, "# What weir reports, and what is true\n\n**%d of %d rigs caught, %d skipped; %d false alarms in %d healthy runs.** "+
		"The bars are 39 of 40 and 1 in 100.\n\n", caught, caught+missed, len(p.results)-caught-missed, p.alarms(), len(p.healthy))
	b.WriteString(intro)
	fmt.Fprintf(&b, "Run on %s with commit %s on a machine with %d cores (Linux %s) and a load average of %s at the start.\n",
		p.about.date, p.about.commit, p.about.cores, p.about.kernel, p.about.load)
	b.WriteString(again)
	b.WriteString("## Rigs\n\n| rig | situation and truth | other tools | weir reports |\n|---|---|---|---|\n")
	for i := range p.results {
		r := &p.results[i]
		says := r.says
		switch {
		case r.skipped != "":
			says = []string{"skipped: " + r.skipped}
		case !r.caught():
			says = append(says[:len(says):len(says)], "**wrong**: "+strings.Join(r.missed, "; "))
		}
		fmt.Fprintf(&b, "| %s | %s<br>*%s* | %s | %s |\n", r.name, cell(r.situation), cell(r.truth), cells(r.naive), cells(says))
	}
	b.WriteString(aboutHealthy)
	p.renderHealthy(&b)
	return b.String()
}

// renderHealthy writes the tables of healthy runs: of each kind, and of false alarms.
func (p *page) renderHealthy(b *bytes.Buffer) {
	var kinds []string
	runs, alarms := map[string]int{}, map[string]int{}
	for _, h := range p.healthy {
		if !slices.Contains(kinds, h.kind) {
			kinds = append(kinds, h.kind)
		}
		runs[h.kind]++
		if h.alarm != "" {
			alarms[h.kind]++
		}
	}
	b.WriteString("| kind | runs | false alarms |\n|---|---|---|\n")
	for _, k := range kinds {
		fmt.Fprintf(b, "| %s | %d | %d |\n", k, runs[k], alarms[k])
	}
	fmt.Fprintf(b, "| all | %d | %d |\n\n## False alarms\n\n", len(p.healthy), p.alarms())
	if p.alarms() == 0 {
		b.WriteString("None.\n")
		return
	}
	b.WriteString("| run | kind | false alarm | weir reports |\n|---|---|---|---|\n")
	for i, h := range p.healthy {
		if h.alarm != "" {
			fmt.Fprintf(b, "| %d | %s | %s | %s |\n", i+1, h.kind, cell(h.alarm), cell(h.says))
		}
	}
}

// cell escapes text for a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "&lt;br>", "<br>").Replace(text)
}

func cells(lines []string) string {
	var all []string
	for _, l := range lines {
		all = append(all, cell(l))
	}
	return strings.Join(all, "<br>")
}

// The page has a row for each rig, and counts the missed rigs. docs/truth.md has the text of the
// current rigs.
func TestPage(t *testing.T) {
	p := page{healthy: []healthyRun{{kind: "reads"}, {kind: "reads", alarm: "a|b"}}}
	all := rigs()
	for i := range all {
		p.results = append(p.results, result{rig: &all[i], missed: all[i].needs})
	}
	caught, missed := p.count()
	if caught+missed != len(all) || p.alarms() != 1 {
		t.Errorf("%d caught, %d missed, %d alarms", caught, missed, p.alarms())
	}
	text := p.render()
	for _, r := range all {
		if !strings.Contains(text, "\n| "+r.name+" | ") {
			t.Errorf("the page does not have %s", r.name)
		}
	}
	written := require.File(t, "../../docs/truth.md")
	want := []string{intro, again, aboutHealthy}
	for _, r := range all {
		want = append(want, fmt.Sprintf("\n| %s | %s<br>*%s* | ", r.name, cell(r.situation), cell(r.truth)))
	}
	for _, w := range want {
		if !strings.Contains(string(written), w) {
			t.Errorf("docs/truth.md lacks %q", w)
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") < 4 {
			t.Errorf("a row that is none: %s", line)
		}
	}
}
