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
)

// A page is docs/truth.md.
type page struct {
	about   machine
	results []result
	healthy []healthyRun
}

// A machine is where the rigs were played, and when.
type machine struct {
	date, load, kernel, commit string
	cores                      int
}

func aboutMachine(ctx context.Context) machine {
	first := func(path string) string {
		b, _ := os.ReadFile(path) // "" where there is none
		word, _, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
		return word
	}
	commit, _ := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output() // outside of a repository there is none
	return machine{
		date: time.Now().Format("2006-01-02"), load: first("/proc/loadavg"), kernel: first("/proc/sys/kernel/osrelease"),
		commit: strings.TrimSpace(string(commit)), cores: runtime.NumCPU(),
	}
}

// count counts the rigs that were caught and those that were missed.
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

// alarms counts the healthy runs in which something was found wrong.
func (p *page) alarms() (n int) {
	for _, h := range p.healthy {
		if h.alarm != "" {
			n++
		}
	}
	return n
}

const intro = `# What weir says, and what is true

A result is worth as much as its worst false statement. This page lists situations whose truth is known, because each was built: a server with
a fault at a known time, a known bottleneck, a neighbor with a known appetite. Each of these *rigs* was played to the whole program,
with real servers (nginx, Apache, lighttpd, XRootD, HAProxy, Python's http.server) wherever possible and a small server with a schedule of faults elsewhere.

- *Naive tool* is what others report of the same situation: wrk, ab, hey or curl where they can measure it, and the raw totals of the run
  (bytes and operations over time) elsewhere.
- *weir says* is the headline, the validity with the checks that warn or fail, the first bottleneck, the outages, and the exit code.
- *right* means that everything that was expected of findings.json and of the exit code holds. No wording is looked at. *wrong* says what does not hold.

What is true is defined by ratios inside a rig, never by an absolute speed. How much of the CPU other programs used is measured by the rig and stands beside a run where it
was more than 15%; a rig whose truth they change is *not played*.

`

// render writes the page.
func (p *page) render() string {
	var b bytes.Buffer
	b.WriteString(intro)
	caught, missed := p.count()
	fmt.Fprintf(&b, "Played on %s with commit %s on a machine with %d cores (Linux %s), whose load average was %s when the rigs began.\n\n",
		p.about.date, p.about.commit, p.about.cores, p.about.kernel, p.about.load)
	fmt.Fprintf(&b, "**%d of %d rigs caught, %d not played; %d false alarms in %d healthy runs.** The bar is 39 of 40, and 1 in 100.\n\n",
		caught, caught+missed, len(p.results)-caught-missed, p.alarms(), len(p.healthy))
	b.WriteString("To repeat it: `make rigs` (about half an hour). `go test ./bench/rigs -run TestRigs/NAME -full -healthy 0` plays those whose name matches, `-keep DIR` keeps\nthe run directories of missed ones, and `go test ./bench/rigs` plays a short form.\n\n")
	b.WriteString("## Rigs\n\n| rig | situation and truth | naive tool | weir says | |\n|---|---|---|---|---|\n")
	for i := range p.results {
		r := &p.results[i]
		verdict := "right"
		switch {
		case r.skipped != "":
			verdict = "not played: " + r.skipped
		case !r.caught():
			verdict = "**wrong**: " + strings.Join(r.missed, "; ")
		}
		fmt.Fprintf(&b, "| %s | %s<br>*%s* | %s | %s | %s |\n", r.name, cell(r.situation), cell(r.truth), cells(r.naive), cells(r.says), cell(verdict))
	}
	b.WriteString("\n## Healthy runs\n\nNothing was wrong in these runs: few clients that think, servers with room. A false alarm is an exit code other than 0, a check that warns or fails,\n" +
		"an outage, a step that does not count, a peak, or a limit that is not there. Where other programs used more than 15% of the CPU, the check of quiet machines is\nright to warn; runs during which they used more than 40% do not count, whatever was said of them.\n\n")
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
	b.WriteString("| run | kind | what was found wrong | weir says |\n|---|---|---|---|\n")
	for i, h := range p.healthy {
		if h.alarm != "" {
			fmt.Fprintf(b, "| %d | %s | %s | %s |\n", i+1, h.kind, cell(h.alarm), cell(h.says))
		}
	}
}

// cell makes text fit for a table.
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

// The page has a row for each rig, and counts what was missed.
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
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") < 4 {
			t.Errorf("a row that is none: %s", line)
		}
	}
}
