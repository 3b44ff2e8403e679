package serve

import (
	"testing"
	"time"
)

func TestPacer(t *testing.T) {
	p, now := newPacer(1000), time.Unix(1000, 0)
	for i, want := range []time.Duration{0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
		if got := p.take(now, 500); got != want {
			t.Errorf("take %d waits %v, want %v", i, got, want)
		}
	}
	if got := p.take(now.Add(time.Hour), 500); got != 0 {
		t.Errorf("after a pause it waits %v", got)
	}
	if n := newPacer(20_000_000).quantum(1 << 20); n != 64<<10 {
		t.Errorf("quantum %d", n)
	}
	if n := newPacer(100).quantum(1 << 20); n != 1024 {
		t.Errorf("quantum %d", n)
	}
	if none := newPacer(0); none.take(now, 1<<30) != 0 || none.quantum(77) != 77 {
		t.Error("no limit limits")
	}
}

func TestRatesLeaveBytesAlone(t *testing.T) {
	t.Parallel()
	const size = 300_000
	s := start(t, Config{Synthetic: []Set{{1, size}}, Rate: 3_000_000, TotalRate: 2_000_000, Delay: time.Millisecond})
	begin := time.Now()
	_, body := do(t, s, exchange{Method: "GET", Path: "/file000000.dat"})
	if took := time.Since(begin); took < 100*time.Millisecond { // 150 ms less the first quantum; never sooner
		t.Errorf("%d bytes at 2 MB/s in %v", size, took)
	}
	check(t, s, exchange{Method: "PUT", Path: "/up", Body: body, Code: 201})
	check(t, s, exchange{Method: "GET", Path: "/up", Code: 200, Want: body})
}
