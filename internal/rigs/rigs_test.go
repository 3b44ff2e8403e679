package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/lab"
)

func TestMain(m *testing.M) {
	if beChild() { // rigs run this program as servers
		return
	}
	os.Exit(m.Run())
}

// The rigs of the short form are caught.
func TestRigs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	weir := filepath.Join(t.TempDir(), "weir")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", weir, "weir/cmd/weir").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, r := range rigs() {
		if !r.short {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			lab.Need(t, r.needs...)
			res := play(t.Context(), &r, options{weir: weir, short: true}, t.Output())
			if res.skipped != "" {
				t.Skip(res.skipped) // the machine is too busy for it
			}
			for _, m := range res.missed {
				t.Errorf("%s: %s", r.truth, m)
			}
		})
	}
}

// Names are unique, and each rig says what happens and what is true.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rigs() {
		if seen[r.name] || r.name == "" || r.situation == "" || r.truth == "" || r.play == nil {
			t.Errorf("%q: not complete, or twice", r.name)
		}
		seen[r.name] = true
	}
	if len(seen) < 40 {
		t.Errorf("%d rigs, at least 40 are wanted", len(seen))
	}
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
