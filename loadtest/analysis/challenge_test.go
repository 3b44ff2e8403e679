package analysis

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"weir/internal/burn"
	"weir/internal/cause"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis/links"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
)

// findingsOf writes a challenge and analyzes it.
func findingsOf(t *testing.T, c resultstest.Challenge) (*Findings, *Series) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, c.Write(dir))
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, s, err := AnalyzeWithSeries(run)
	require.NoError(t, err)
	again, err := Analyze(run)
	require.NoError(t, err)
	var a, b bytes.Buffer
	require.NoError(t, errors.Join(JSON(&a, f), JSON(&b, again)))
	if a.String() != b.String() {
		t.Error("two analyses of the same run differ")
	}
	return f, s
}

// The findings of a challenge name its known problems, from a run directory.
func TestChallenge(t *testing.T) {
	t.Parallel()
	f, s := findingsOf(t, resultstest.Rehearsal())
	c := f.Challenge
	if f.Validity.Status != Valid || f.Headline != f.Facts[0].Text || !strings.HasPrefix(f.Verdict, f.Headline+"\n") ||
		len(f.Headline) > longest || c.Total.Held != 5 || c.Interrupted || len(f.Curve) != 3 || len(s.Links) != 12 {
		t.Errorf("%s, %s, %d held, %d steps", f.Validity.Status, f.Verdict, c.Total.Held, len(f.Curve))
	}
	for name, want := range map[string]struct {
		kind   links.Kind
		detail string
		sure   cause.Certainty
	}{
		"A to C": {links.Dest, links.Disk, cause.Certain}, "B to C": {links.Dest, links.Disk, cause.Certain},
		"F to B": {links.Source, links.Away, cause.Certain}, "E to F": {links.Dest, links.Away, cause.Certain},
	} {
		l := linkOf(t, c, name)
		if l.Cause == nil || l.Cause.Kind != want.kind || l.Cause.Detail != want.detail || l.Cause.Certainty != want.sure {
			t.Errorf("%s: %+v", name, l.Cause)
		}
	}
	if l := c.Links[0]; l.Level < 0.6 || l.Level > 0.64 || l.Low == nil || *l.Low > l.Achieved || *l.High < l.Achieved || l.Within > 0.5 ||
		l.Queue == nil || l.Queue.P99 < l.Queue.P50 || l.Below < 20 || len(l.Episodes) == 0 {
		t.Errorf("%+v", l)
	}
	if l := linkOf(t, c, "E to F"); len(l.Failures) != 2 || l.Failures[0].End != links.EndDest || l.Failed == 0 {
		t.Errorf("%+v", l.Failures)
	}
}

func linkOf(t *testing.T, c *links.Challenge, name string) *links.Link {
	t.Helper()
	for i := range c.Links {
		if c.Links[i].Name() == name {
			return &c.Links[i]
		}
	}
	t.Fatalf("no link %s", name)
	return nil
}

// A challenge without problems has no causes.
func TestChallengeHeld(t *testing.T) {
	t.Parallel()
	c := resultstest.Rehearsal()
	c.Healthy = true
	f, _ := findingsOf(t, c)
	if f.Challenge.Total.Held != 12 || f.Challenge.Total.Missing > 0 || f.Validity.Status != Valid {
		t.Errorf("%s: %+v", f.Verdict, f.Challenge.Total)
	}
}

// The findings of a challenge that was killed are kept, and report the interruption.
func TestChallengeKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, resultstest.Rehearsal().Write(dir))
	for _, name := range []string{results.EventsFile, results.LinksFile, results.IntervalsFile} {
		b := require.File(t, filepath.Join(dir, name))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b[:len(b)/2], 0o600))
	}
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, err := Analyze(run)
	require.NoError(t, err)
	if !f.Challenge.Interrupted || f.Validity.Status != Suspect || f.Challenge.Seconds < 800 || f.Challenge.Seconds > 1000 {
		t.Errorf("%s, %v s: %s", f.Validity.Status, f.Challenge.Seconds, f.Verdict)
	}
}

// 2,000 links and about a million copies are analyzed in 10 s of CPU time.
func TestChallengeOfAGrid(t *testing.T) {
	tier.Full(t, "analysis of 2,000 links and 900,000 copies")
	c := resultstest.Grid()
	c.Copies = 17
	dir := t.TempDir()
	require.NoError(t, c.Write(dir))
	run, err := results.Open(dir)
	require.NoError(t, err)
	before, begin := burn.Process(), time.Now()
	f, err := Analyze(run)
	require.NoError(t, err)
	used := burn.Process() - before
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d copies: %v of CPU time, %v, %d MB in use\n%s", f.Challenge.Total.Files, used, time.Since(begin), m.HeapInuse>>20, f.Verdict)
	if used > 10*time.Second || m.HeapInuse > 500<<20 {
		t.Errorf("%v of CPU time, %d MB", used, m.HeapInuse>>20)
	}
}
