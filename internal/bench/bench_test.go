package main

import (
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/lab"
)

func TestMain(m *testing.M) {
	if beChild() { // the rig runs itself
		return
	}
	os.Exit(m.Run())
}

// Every case yields every figure that its table and its bars need. How large
// they are is not tested: no test may depend on the speed of a machine.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	lab.Need(t, "curl", "wrk", "iperf3", "nginx", "xrootd", "xrdcp", "globus-gridftp-server", "globus-url-copy", "wget", "condor_master", "gfal-copy", "rclone", "postgres", "initdb", "pg_isready")
	weir := filepath.Join(t.TempDir(), "weir")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", weir, "weir/cmd/weir").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, err := newRig(weir, quickScale(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(r.dir); err == nil {
			t.Errorf("%s is left", r.dir)
		}
	})
	found, err := compare(t.Context(), r, regexp.MustCompile(""), 1, &kept{cases: map[string]keptCase{}})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(cases(r.scale)); len(found) != want {
		t.Errorf("%d results, want %d", len(found), want)
	}
	for _, c := range found {
		for _, b := range c.bars {
			if v := c.judge(b).median; b.metric != serverCPU && (math.IsNaN(v) || math.IsInf(v, 0)) {
				t.Errorf("%s: %s: no figure: %v", c.name, b.what(), v)
			}
		}
		for _, m := range c.metrics {
			if !measured(c, m) {
				t.Errorf("%s: nobody has %s", c.name, m)
			}
		}
	}
	text := page{results: found, rounds: 1, quick: true, weir: weir}.render(t.Context())
	for _, c := range found {
		if !strings.Contains(text, "### "+c.title+"\n") {
			t.Errorf("the page does not show %s", c.title)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("the page has figures that are none:\n%s", text)
	}
}

// measured tells whether some side has the figure, and all that have it have
// a possible one. CPU time of a server counts in hundredths of a second, and a
// few clients may cost no page: those may be 0.
func measured(c result, m metric) bool {
	mayBeZero := m == serverCPU || m == serverBusy || m == failed || m == allocs || m == resident
	some := false
	for _, s := range c.sides {
		for _, v := range c.values(s, m) {
			some = true
			if v < 0 && m != resident || v == 0 && !mayBeZero || math.IsNaN(v) || math.IsInf(v, 0) {
				return false
			}
		}
	}
	return some
}

func TestVerdicts(t *testing.T) {
	most := bar{metric: clientCPU, a: "weir", b: "curl", limit: 0.1}
	least := bar{metric: startTime, a: "weir", least: true, limit: 2}
	none := bar{metric: failed, a: "weir"}
	of := func(a, b float64) map[string]figures {
		return map[string]figures{"weir": {clientCPU: a, startTime: a, failed: a}, "curl": {clientCPU: b}}
	}
	for _, c := range []struct {
		bar           bar
		rounds        []map[string]figures
		text, verdict string
	}{
		{most, []map[string]figures{of(1, 20), of(1, 40), of(1, 25)}, "1/25 (1/40 to 1/20)", "met"},
		{most, []map[string]figures{of(1, 5), of(1, 40), of(1, 25)}, "1/25 (1/40 to 1/5)", "met, not in every round"},
		{most, []map[string]figures{of(1, 5), of(1, 4)}, "1/4.44 (1/5 to 1/4)", "**not met**"},
		{least, []map[string]figures{of(1, 0), of(2, 0), of(1, 0)}, "1 s (1 s to 2 s)", "**not met**, but in some rounds"},
		{none, []map[string]figures{of(0, 0)}, "0", "met"},
		{none, []map[string]figures{of(3, 0)}, "3", "**not met**"},
	} {
		s := result{rounds: c.rounds}.judge(c.bar)
		if text, verdict := c.bar.spread(s), c.bar.verdict(s); text != c.text || verdict != c.verdict {
			t.Errorf("%s: %q, %q, want %q, %q", c.bar.text(), text, verdict, c.text, c.verdict)
		}
	}
}

func TestSummaryNamesLosses(t *testing.T) {
	lost := bar{metric: rate, a: "weir", b: "wrk", least: true, limit: 0.85}
	r := result{
		benchmark: benchmark{title: "Small requests", about: "x", metrics: []metric{rate}, bars: []bar{lost}},
		sides:     []string{"weir", "wrk"},
		rounds:    []map[string]figures{{"weir": {rate: 1000}, "wrk": {rate: 2000}}},
	}
	text := page{results: []result{r}, rounds: 1, weir: "/nowhere"}.render(t.Context())
	for _, want := range []string{
		"0 of 1 are met. Not met:\n\n- **Small requests**, requests/s, weir / wrk: 0.500 x, where the bar is at least 0.850 x.",
		"| weir | 1000 |", "[Small requests](#small-requests)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

func TestSignificant(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 0.01234: "0.0123", 9.876: "9.88", 45.67: "45.7", 123456.7: "123457", -0.5: "-0.500"} {
		if got := significant(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestBadCommandLine(t *testing.T) {
	for want, args := range map[string][]string{
		"-case":              {"-case", "("},
		"at least 1":         {"-rounds", "0"},
		"no argument":        {"download"},
		"make build":         {"-weir", "/no/such/weir"},
		"not defined: -fast": {"-fast"},
	} {
		err := run(t.Context(), args, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want an error with %q", args, err, want)
		}
	}
}

func TestGroupCPU(t *testing.T) {
	u, err := runChild(t.Context(), nil, []int{3}, "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 3")
	if err != nil || u.code != 3 || u.cpu <= 0 || u.wall < u.cpu/4 {
		t.Errorf("a busy child: %+v, %v", u, err)
	}
	if _, err := runChild(t.Context(), nil, nil, "sh", "-c", "echo reason >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "reason") {
		t.Errorf("a child that fails: %v, want its reason", err)
	}
	if _, err := groupCPU(1 << 30); err == nil {
		t.Error("a group that is not there has CPU time")
	}
}
