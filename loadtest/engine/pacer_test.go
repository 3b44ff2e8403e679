package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/internal/require"
)

func TestAlarmsComeInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h alarms
	var want []time.Duration
	for range 1000 {
		d := time.Duration(r.IntN(500))
		want = append(want, d)
		h.push(alarm{due: d})
	}
	slices.Sort(want)
	for i, w := range want {
		if got := h.pop().due; got != w {
			t.Fatalf("alarm %d is due at %d, want %d", i, got, w)
		}
	}
}

// No sleeper is woken before its time, all sleepers are woken, an earlier sleeper that is added
// later is not forgotten, and most are woken soon. (The delay is measured by the benchmark: a busy
// machine wakes late with any pacer.)
func TestPacerWakes(t *testing.T) {
	p, err := NewPacer()
	require.NoError(t, err)
	defer p.Close()
	begin := time.Now()
	late := newWakeup()
	p.Sleep(late, begin.Add(time.Hour))
	var all []wakeup
	for i := range 200 {
		b := newWakeup()
		all = append(all, b)
		p.Sleep(b, begin.Add(time.Duration(200-i)*time.Millisecond))
	}
	for i := len(all) - 1; i >= 0; i-- {
		<-all[i]
		if early := time.Duration(200-i)*time.Millisecond - time.Since(begin); early > 0 {
			t.Errorf("sleeper %d woken %v early", i, early)
		}
	}
	select {
	case <-late:
		t.Error("woken an hour early")
	default:
	}
}

// BenchmarkWake measures the delay with which 1000 sleepers a second are woken.
func BenchmarkWake(b *testing.B) {
	p, err := NewPacer()
	require.NoError(b, err)
	defer p.Close()
	var late []time.Duration
	ring := newWakeup()
	for b.Loop() {
		due := time.Now().Add(time.Millisecond)
		p.Sleep(ring, due)
		<-ring
		late = append(late, time.Since(due))
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Nanoseconds()), "p50-ns-late")
	b.ReportMetric(float64(late[len(late)*99/100].Nanoseconds()), "p99-ns-late")
}
