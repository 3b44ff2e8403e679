package steps

import (
	"testing"
	"time"
)

func TestPeakIsTheBestWindow(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	run := func(moved, done int64, rates ...int64) *Total {
		x := &Total{}
		x.Moved, x.Done = moved, done
		for i, r := range rates {
			s := Second{Start: begin.Add(time.Duration(i) * time.Second), Seconds: 1}
			if moved > 0 {
				s.Moved = r
			} else {
				s.Done = r
			}
			x.Seconds, x.Span = append(x.Seconds, s), x.Span+1
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
