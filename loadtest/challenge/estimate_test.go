package challenge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"weir/internal/require"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*math.Max(1, math.Abs(want)) {
		t.Errorf("%s is %v, not %v", what, got, want)
	}
}

// ramped is a challenge of 80 and 40 Mbit/s: 10 and 5 MB/s.
func ramped(t *testing.T, rest string) *Challenge {
	t.Helper()
	return valid(t, two+`links: [{from: A, to: B, rate: 80Mbit/s}, {from: B, to: A, rate: 5MB/s}]
profile:
  - {for: 100s, at: 20%, ramp: true}
  - {for: 100s, at: 20%}
  - {for: 50s, at: 0%}
  - {for: 100s, at: 100%, ramp: true}
  - {for: 100s, at: 100%}
`+rest)
}

func TestSchedule(t *testing.T) {
	c := ramped(t, "")
	if c.Duration() != 450*time.Second {
		t.Error(c.Duration())
	}
	for _, want := range []struct {
		at, share float64
		stage     int
	}{
		{0, 0, 1}, {50, 0.1, 1}, {100, 0.2, 2}, {199, 0.2, 2}, {200, 0, 3}, {250, 0, 4}, {275, 0.25, 4}, {350, 1, 5}, {449, 1, 5},
		{450, 0, 5}, {999, 0, 5},
	} {
		at := time.Duration(want.at * 1e9)
		near(t, fmt.Sprintf("share at %v", at), c.Share(at), want.share)
		near(t, fmt.Sprintf("target at %v", at), c.Target(0, at), 10e6*want.share)
		near(t, fmt.Sprintf("other target at %v", at), c.Target(1, at), 5e6*want.share)
		if c.Stage(at) != want.stage {
			t.Errorf("stage %d at %v", c.Stage(at), at)
		}
	}
}

// TestIntegralOfShare compares the integral with a sum of small steps, with and without a limit.
func TestIntegralOfShare(t *testing.T) {
	c := ramped(t, "")
	for _, most := range []float64{math.Inf(1), 0.15, 0.5} {
		for _, until := range []time.Duration{0, 30 * time.Second, 150 * time.Second, 300 * time.Second, 450 * time.Second, time.Hour} {
			sum := 0.0
			const step = 10 * time.Millisecond
			for at := time.Duration(0); at < until; at += step {
				sum += min(c.Share(at+step/2), most) * step.Seconds()
			}
			if got := c.shareSeconds(until, most); math.Abs(got-sum) > 0.01 {
				t.Errorf("until %v, at most %v: %v, not %v", until, most, got, sum)
			}
		}
	}
	near(t, "largest window of 10 s", c.windowSeconds(10*time.Second, math.Inf(1)), 10)
	near(t, "largest window of 200 s", c.windowSeconds(200*time.Second, math.Inf(1)), 150)
	near(t, "no window", c.windowSeconds(0, math.Inf(1)), 0)
}

func TestEstimate(t *testing.T) {
	c := ramped(t, "files: {size: 2MB, sources: 4, linger: 10s}\n")
	e := c.Estimate()
	const at100 = 10 + 20 + 50 + 100 // seconds
	near(t, "bytes", e.Bytes, 15e6*at100)
	near(t, "copies", e.Copies, 15e6*at100/2e6)
	near(t, "peak", e.Rate, 15e6)
	near(t, "bytes of a link", e.Links[1].Bytes, 5e6*at100)
	near(t, "copies of a link", e.Links[1].Copies, 5e6*at100/2e6)
	near(t, "requests of a link", e.Links[1].Requests, 3*5e6*at100/2e6)
	near(t, "file of a minute", e.Links[1].Grain, 2e6/(60*5e6))
	near(t, "file of a minute at 20%", e.Links[1].GrainLow, 2e6/(60*1e6))
	near(t, "in of B", e.Sites[1].In, 10e6)
	near(t, "out of B", e.Sites[1].Out, 5e6)
	near(t, "sources of B", e.Sites[1].Sources, 8e6)
	near(t, "least space of B", e.Sites[1].SpaceLeast, 8e6+100e6+2e6)
	near(t, "most space of B", e.Sites[1].SpaceMost, 8e6+100e6+100*2e6)
	near(t, "COPY", e.Requests.Copies, 7.5)
	near(t, "checksums", e.Requests.Verify, 7.5)
	near(t, "requests of B", e.Sites[1].RequestsPs, 3*5+2.5)
	c.Verify = false
	near(t, "no checksums", c.Estimate().Requests.Verify, 0)
	c.Ceiling = 60e6
	near(t, "peak below the ceiling", c.Estimate().Rate, 7.5e6)
	near(t, "bytes below the ceiling", c.Estimate().Bytes, 15e6*(10+20+25+12.5+50))
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "50%") {
		t.Errorf("warnings %v", w)
	}
}

func TestNoSpace(t *testing.T) {
	space := func(size string) string {
		return strings.Replace(two, "name: B,", "name: B, space: "+size+",", 1) +
			"links: [{from: A, to: B, rate: 80Mbit/s}]\nprofile: [{for: 10m, at: 50%}]\nfiles: {size: 10MB, linger: 1m}\n"
	}
	all := mistakes(t, t.TempDir(), space("100MB")) // 5 MB/s for a minute, and a file
	if len(all) != 1 || all[0].Line != 3 || !strings.Contains(all[0].Text, "310 MB") || !strings.Contains(all[0].Text, "100 MB are allowed") {
		t.Errorf("%v", all)
	}
	if w := valid(t, space("400MB")).Warnings(); len(w) != 1 || !strings.Contains(w[0], "310 MB to 1.30 GB") {
		t.Errorf("warnings %v", w)
	}
	if w := valid(t, space("2GB")).Warnings(); len(w) != 0 {
		t.Errorf("warnings %v", w)
	}
}

func TestSlowFiles(t *testing.T) {
	c := valid(t, whole+"files: {size: 100GB}\n")
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "2h13m20s") {
		t.Errorf("warnings %v", w)
	}
}

// many writes a challenge of n sites with a matrix of all links, and returns its path.
func many(t *testing.T, n int) string {
	t.Helper()
	var text, csv strings.Builder
	text.WriteString("matrix: m.csv\nprofile: [{for: 10m, at: 10%}, {for: 1d, at: 100%}]\nsites:\n")
	csv.WriteString("from")
	for i := range n {
		fmt.Fprintf(&text, "  - {name: SITE-%03d, url: \"https://s%d.example.org/data\", in: 1Tbit/s}\n", i, i)
		fmt.Fprintf(&csv, ",SITE-%03d", i)
	}
	for i := range n {
		fmt.Fprintf(&csv, "\nSITE-%03d", i)
		for k := range n {
			if i == k {
				csv.WriteString(",")
			} else {
				fmt.Fprintf(&csv, ",%dMbit/s", 1+(i*n+k)%977)
			}
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m.csv"), []byte(csv.String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(text.String()), 0o600))
	return filepath.Join(dir, "c.yaml")
}

// TestTextOfManyLinks checks that the plan of 2,000 links is readable: few lines of 80 characters,
// and nothing left out silently.
func TestTextOfManyLinks(t *testing.T) {
	c, err := Read(many(t, 46), nil, nil)
	require.NoError(t, err)
	if len(c.Links) != 46*45 {
		t.Fatalf("%d links", len(c.Links))
	}
	var b bytes.Buffer
	require.NoError(t, c.WriteText(&b))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) > 75 {
		t.Errorf("%d lines:\n%s", len(lines), b.String())
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > textWidth {
			t.Errorf("%d characters: %s", utf8.RuneCountInString(line), line)
		}
	}
	if !strings.Contains(b.String(), "and 2050 links more with smaller targets") || !strings.Contains(b.String(), "and 26 sites more") {
		t.Errorf("the text does not count the rest:\n%s", b.String())
	}
}

func TestTextOfTwoSites(t *testing.T) {
	c := ramped(t, "files: {size: 20MB}\nceiling: 60Mbit/s\ninject: {by: fts, url: \"https://fts.example.org:8446\"}\n")
	var b bytes.Buffer
	require.NoError(t, c.WriteText(&b))
	for _, want := range []string{
		"80.0 M  10.0 M", "40.0 M  5.00 M", "20%", "ramp to 100%", "60.0 Mbit/s (7.50 MB/s)", "warning", "https://fts.example.org:8446",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text has no %q:\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if utf8.RuneCountInString(line) > textWidth+1 {
			t.Errorf("%d characters: %s", utf8.RuneCountInString(line), line)
		}
	}
}

// TestPlanIsReadBack checks that a challenge is the same after it was written to plan.json.
func TestPlanIsReadBack(t *testing.T) {
	c := ramped(t, "files: {size: {weights: {1MB: 1, 2MB: 3}}}\n")
	text, err := json.Marshal(c)
	require.NoError(t, err)
	again := &Challenge{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(again))
	back, err := json.Marshal(again)
	require.NoError(t, err)
	if !bytes.Equal(text, back) {
		t.Errorf("%s\n%s", text, back)
	}
	near(t, "amount", again.Estimate().Bytes, c.Estimate().Bytes)
}

// TestTextOfExtremes checks that the plan of long names and of very small and very large numbers keeps
// within its width, and that its numbers are readable.
func TestTextOfExtremes(t *testing.T) {
	name := strings.Repeat("long-name-", 6)
	c := valid(t, "sites:\n  - {name: A, url: 'https://a.example.org/x', in: 1Gbit/s, out: 1Gbit/s, space: 100TB}\n  - {name: "+name+
		", url: 'https://b.example.org/x', in: 100Gbit/s, space: 100TB}\nlinks: [{from: A, to: "+name+", rate: 999.9Mbit/s}]\n"+
		"profile: [{for: 1s, at: 0.1%}, {for: 10d, at: 100%}]\nfiles: {size: {weights: {999GiB: 5, 2GB: 1}}}\n")
	small := valid(t, two+"links: [{from: A, to: B, rate: 1bit/s}]\nprofile: [{for: 1s, at: 1%}]\nfiles: {size: 1GiB}\ntimeout: 30d\n")
	for _, c := range []*Challenge{c, small} {
		var b bytes.Buffer
		require.NoError(t, c.WriteText(&b))
		for line := range strings.Lines(b.String()) {
			if utf8.RuneCountInString(line) > textWidth+1 {
				t.Errorf("%d characters: %s", utf8.RuneCountInString(line), line)
			}
		}
		if strings.Contains(b.String(), "0.0000000") || strings.Contains(b.String(), " 1 copies") {
			t.Error(b.String())
		}
	}
}
