package conduct

import (
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/challenge/inject"
)

// Time in which a decision was due is in the lines of all links. Decisions in time, and the time up
// to which a decision is in time, are not.
func TestLate(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := testChallenge(stage(time.Hour, 1))
	l := newLedger(timeline{c, begin}, len(c.Links), begin)
	l.start([]inject.Copy{{ID: 1, Source: inject.File{Size: 100}}}, begin)
	for at := 100 * time.Millisecond; at <= time.Second; at += 100 * time.Millisecond {
		l.step(begin.Add(at))
	}
	l.step(begin.Add(2500 * time.Millisecond))
	for i, want := range []float64{0, 0.7, 0.5} {
		for k := range c.Links {
			line := l.each.cells[i].link(k, &c.Links[k])
			require.Near(t, "seconds without a decision", line.Late, want, 1e-9)
		}
	}
}
