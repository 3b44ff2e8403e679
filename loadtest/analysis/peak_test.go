package analysis

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
)

func TestPeakIsTheBestWindow(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	run := func(moved, done int64, rates ...int64) *total {
		x := &total{}
		x.Moved, x.Done = moved, done
		for i, r := range rates {
			s := second{start: begin.Add(time.Duration(i) * time.Second), seconds: 1}
			if moved > 0 {
				s.moved = r
			} else {
				s.done = r
			}
			x.seconds, x.span = append(x.seconds, s), x.span+1
		}
		return x
	}
	if p := run(1, 1, 5, 9, 7).peak(); p.Throughput != 9 || p.After != 1 || p.Seconds != 1 || !p.Start.Equal(begin.Add(time.Second)) {
		t.Errorf("%+v", p)
	}
	if p := run(0, 1, 5, 9, 7).peak(); p.Operations != 9 || p.After != 1 {
		t.Errorf("of operations: %+v", p)
	}
	long := make([]int64, 41) // windows are two seconds long; the last second is short, and does not count
	long[5], long[6], long[40] = 30, 30, 1000
	if p := run(1, 1, long...).peak(); p.Throughput != 15 || p.After != 4 || p.Seconds != 2 {
		t.Errorf("of a long step: %+v", p)
	}
	if p := run(0, 0, 0, 0).peak(); p != nil {
		t.Errorf("of nothing: %+v", p)
	}
}

// A result whose interval contains zero is no peak, at one load and at several: headline, check and JSON say so.
func TestNoPeakCanBeNamed(t *testing.T) {
	for name, c := range map[string]struct {
		clients []int
		swing   bool // between nothing and twice as much
		want    string
	}{
		"several loads, noisy": {[]int{1, 2, 64}, true, "No peak can be named: "},
		"one load, noisy":      {[]int{8}, true, "No peak can be named: "},
		"several loads":        {[]int{1, 2, 64}, false, "At least "},
	} {
		s := resultstest.Typical()
		s.Clients, s.Duration = c.clients, 6
		seconds := 0
		s.Interval = func(iv *measure.Interval) {
			if seconds++; c.swing && seconds%3 > 0 {
				iv.Moved, iv.Wire = 0, 0
			}
		}
		f := of(t, s)
		if !strings.HasPrefix(f.Headline, c.want) || f.Optimum.Unclear != c.swing {
			t.Errorf("%s: %q, unclear %v", name, f.Headline, f.Optimum.Unclear)
		}
		if got := find(t, f, "enough data"); c.swing && (got.Status != Warn || !strings.HasPrefix(got.Effect, "no peak can be named")) ||
			!c.swing && got.Status != OK {
			t.Errorf("%s: %+v", name, got)
		}
		b, err := json.Marshal(f.Optimum)
		require.NoError(t, err)
		if strings.Contains(string(b), `"unclear":true`) != c.swing {
			t.Errorf("%s: %s", name, b)
		}
	}
}
