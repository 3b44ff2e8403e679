package record

import (
	"math"
	"testing"
	"time"

	"weir/loadtest/results"
	"weir/transfer"
)

// TestSecondsOfUnevenCopies checks that the seconds of copies that begin and end at different times
// add up to the bytes that the agent moved in each second: a copy that ran alone moved more bytes a
// second than when it was one of four.
func TestSecondsOfUnevenCopies(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return begin.Add(seconds(s)) }
	const rate = 24e6
	c := &site{name: "C", dest: true}
	for i := range 12 {
		c.samples = append(c.samples, transfer.Sample{Time: at(float64(i + 1)), Seconds: 1, MovedBytes: rate})
	}
	one := taken{step: 1, begin: begin, end: at(10)}
	add := func(from, to float64, bytes int64) {
		one.list = append(one.list, results.Transfer{Source: "A", Dest: "C", Begin: at(from), End: at(to), Moved: bytes, Done: true, Last: true})
	}
	add(0, 4, rate*2+2*rate/4) // alone for 2 s, then one of four for 2 s
	for range 3 {
		add(2, 6, 2*rate/4+2*rate/3)
	}
	add(6, 10, rate*4) // alone
	sites := map[string]*site{"A": {name: "A"}, "C": c}
	for _, s := range sites {
		s.divide([]*taken{&one})
	}
	for i, iv := range one.intervals(sites) {
		if got := float64(iv.Moved); math.Abs(got-rate) > 100 {
			t.Errorf("second %d: %.0f bytes, want %.0f", i, got, rate)
		}
	}
}
