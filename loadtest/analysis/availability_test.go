package analysis

import (
	"testing"
	"time"

	"weir/internal/stats"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/storage"
)

// flat returns a service of which each client gets the same share until 4 clients saturate it.
func flat() resultstest.Service {
	return resultstest.Service{Lambda: 1000, Sigma: 0.3, Kappa: 0.0005, File: 1 << 20, Clients: []int{1, 2, 4, 8}, Duration: 6, Noise: 0.02}
}

// away makes the service refuse from a moment on, for some time: successes become failures of the
// class; successes before and after keep their times.
func away(from time.Time, length time.Duration, class storage.Class) func(*measure.Interval) {
	to := from.Add(length)
	return func(iv *measure.Interval) {
		begin, end := iv.Start, iv.Start.Add(time.Second)
		iv.FirstDone, iv.LastDone = begin.Add(time.Millisecond), end.Add(-time.Millisecond)
		if !end.After(from) || !begin.Before(to) {
			return
		}
		lost := min(end.Sub(from), time.Second, to.Sub(begin), to.Sub(from)).Seconds()
		if lost >= 0.999 {
			iv.FirstDone, iv.LastDone, iv.Latency = time.Time{}, time.Time{}, measure.Histogram{}
		}
		if begin.Before(from) {
			iv.LastDone = from
		} else if to.Before(end) {
			iv.FirstDone = to
		}
		iv.Done, iv.Moved, iv.Wire, iv.Tasks = int64(float64(iv.Done)*(1-lost)), int64(float64(iv.Moved)*(1-lost)),
			int64(float64(iv.Wire)*(1-lost)), int64(float64(iv.Tasks)*(1-lost))
		if class.Failure() {
			iv.Failed = map[storage.Class]int64{class: 3}
		}
	}
}

// stepAt returns the time at which the hold of step i (from 0) begins in a run of s.
func stepAt(s *resultstest.Service, i int) time.Time {
	return resultstest.Start().Add(time.Duration(i*(s.Duration+2)+2) * time.Second)
}

func TestOutageExcludesItsStep(t *testing.T) {
	for _, class := range []storage.Class{storage.Refused, storage.None} {
		s := flat()
		from := stepAt(&s, 2).Add(1400 * time.Millisecond)
		s.Interval = away(from, 2300*time.Millisecond, class)
		f := of(t, s)
		if len(f.Outages) != 1 {
			t.Fatalf("class %v: outages %+v, want one", class, f.Outages)
		}
		o := f.Outages[0]
		kind := map[bool]string{true: OutageFailed, false: OutageStalled}[class.Failure()]
		if !o.From.Equal(from) || o.Seconds < 2.29 || o.Seconds > 2.31 || o.Step != 3 || o.Kind != kind || o.Class != class || !o.Ended {
			t.Errorf("class %v: %+v", class, o)
		}
		if f.Curve[2].Excluded == "" || len(f.curve().Excluded()) != 1 || f.Curve[2].Unavailable < 2.29 {
			t.Errorf("class %v: step 3 counts: %+v", class, f.Curve[2])
		}
		if f.Validity.Status == Valid || find(t, f, "availability").Status != Warn {
			t.Errorf("class %v: %s, %+v", class, f.Validity.Status, find(t, f, "availability"))
		}
		if f.Optimum == nil || f.Optimum.Step == 3 {
			t.Errorf("class %v: the optimum is that of an excluded step: %+v", class, f.Optimum)
		}
	}
}

func TestServiceLostForGoodLeavesNoCapacity(t *testing.T) {
	s := flat()
	s.Interval = away(stepAt(&s, 1).Add(time.Second), time.Hour, storage.Refused)
	f := of(t, s)
	if len(f.Outages) != 1 || f.Outages[0].Ended || len(f.curve().Excluded()) != 3 {
		t.Errorf("%+v, %d steps excluded", f.Outages, len(f.curve().Excluded()))
	}
	if f.Optimum != nil || f.Knee != nil || f.Fits != nil || len(f.Bottleneck) > 0 {
		t.Errorf("one step is left, and yet optimum %+v, knee %+v, bottleneck %+v", f.Optimum, f.Knee, f.Bottleneck)
	}
	if f.Validity.Status != Invalid {
		t.Errorf("%s, want invalid", f.Validity.Status)
	}
}

// TestServiceLostInTheLastSecond checks that less than a second without a success is an outage if
// only the end of the load follows: the service was lost. If the service is busy, or if there are
// few failures, this is unknown.
func TestServiceLostInTheLastSecond(t *testing.T) {
	for _, c := range []struct {
		class    storage.Class
		failures int64
		steps    int // that do not count
		status   string
	}{
		{storage.Refused, 5, 1, Invalid}, {storage.Reset, 5, 1, Suspect}, {storage.Refused, 4, 0, ""}, {storage.Busy, 50, 0, ""},
	} {
		s := flat()
		lost := away(stepAt(&s, len(s.Clients)-1).Add(time.Duration(s.Duration)*time.Second-400*time.Millisecond), time.Hour, c.class)
		s.Interval = func(iv *measure.Interval) {
			if lost(iv); iv.Failed != nil {
				iv.Failed[c.class] = c.failures
			}
		}
		f := of(t, s)
		if len(f.Outages) != c.steps || len(f.curve().Excluded()) != c.steps || c.steps > 0 && (f.Outages[0].Ended ||
			f.Validity.Status != c.status) {
			t.Errorf("%v, %d times: %+v, %d steps excluded, %s", c.class, c.failures, f.Outages, len(f.curve().Excluded()), f.Validity.Status)
		}
	}
}

func TestRefusedStepsDoNotCount(t *testing.T) {
	s := flat()
	s.Clients = []int{1, 2, 4, 8, 16}
	s.Interval = func(iv *measure.Interval) {
		if iv.Step == 5 {
			away(resultstest.Start(), time.Hour, storage.Busy)(iv)
		}
	}
	f := of(t, s)
	if len(f.curve().Excluded()) != 1 || f.Curve[4].Excluded == "" || f.Optimum == nil || f.Validity.Status == Valid {
		t.Errorf("%d excluded, optimum %+v, %s", len(f.curve().Excluded()), f.Optimum, f.Validity.Status)
	}
}

// TestRecurringStallsAreTheService checks that the steps of a service that stalls again and again
// count.
func TestRecurringStallsAreTheService(t *testing.T) {
	s := flat()
	s.Interval = func(iv *measure.Interval) {
		away(stepAt(&s, iv.Step-1).Add(1500*time.Millisecond), 1500*time.Millisecond, storage.None)(iv)
	}
	f := of(t, s)
	if len(f.Outages) != 4 || len(f.curve().Excluded()) != 0 || f.Optimum == nil {
		t.Errorf("%d stalls, %d excluded, optimum %+v", len(f.Outages), len(f.curve().Excluded()), f.Optimum)
	}
}

// TestBurstsAreNoOutages checks a service that grants bytes each second, and so works in bursts:
// the time between two bursts is not an outage. A pause of this length is an outage of a service
// that does not work in bursts.
func TestBurstsAreNoOutages(t *testing.T) {
	for _, span := range []time.Duration{20 * time.Millisecond, 900 * time.Millisecond} {
		s := flat()
		s.Interval = func(iv *measure.Interval) {
			first, length := time.Millisecond, span
			switch iv.Start.Sub(stepAt(&s, 0)) / time.Second {
			case 2:
				length = min(span, 50*time.Millisecond)
			case 3: // 1.2 s after that, or more
				first, length = 300*time.Millisecond, min(span, 600*time.Millisecond)
			}
			iv.FirstDone = iv.Start.Add(first)
			iv.LastDone = iv.FirstDone.Add(length)
		}
		f := of(t, s)
		c := find(t, f, "availability")
		inBursts := c.Status == OK && shows(&c, "in bursts (1 client")
		if want := span < time.Second/4; inBursts != want || want != (len(f.Outages) == 0) {
			t.Errorf("%v: %+v: %+v", span, f.Outages, c)
		}
	}
}

// TestSuspendedGeneratorIsNotTheService checks that a pause of the generator does not count as a
// pause of the service.
func TestSuspendedGeneratorIsNotTheService(t *testing.T) {
	s := flat()
	hold := stepAt(&s, 1)
	s.Interval = func(iv *measure.Interval) {
		iv.FirstDone, iv.LastDone = iv.Start.Add(time.Millisecond), iv.Start.Add(999*time.Millisecond)
		if iv.Start.Equal(hold.Add(time.Second)) {
			iv.Seconds, iv.FirstDone, iv.LastDone = 4, iv.Start.Add(3*time.Second), iv.Start.Add(4*time.Second-time.Millisecond)
		}
	}
	f := of(t, s)
	if len(f.Outages) != 1 || f.Outages[0].Kind != OutageGenerator || f.Curve[1].Excluded == "" {
		t.Errorf("%+v", f.Outages)
	}
}

// TestHealthyRunsHaveNoOutage checks that slow operations, few operations and scattered errors are
// not outages.
func TestHealthyRunsHaveNoOutage(t *testing.T) {
	slow, errors, plain := flat(), flat(), flat()
	slow.Lambda, slow.File, slow.Duration = 3, 0, 30 // operations end every three seconds, of all clients together
	slow.Interval = func(iv *measure.Interval) {
		if iv.Start.Unix()%3 != 0 {
			iv.Done, iv.Tasks, iv.Latency = 0, 0, measure.Histogram{}
		}
	}
	errors.Interval = func(iv *measure.Interval) { iv.Failed = map[storage.Class]int64{storage.Busy: iv.Done / 20} }
	plain.Interval = away(time.Time{}, 0, storage.None)
	for name, s := range map[string]*resultstest.Service{"slow": &slow, "errors": &errors, "plain": &plain} {
		if f := of(t, *s); len(f.Outages) != 0 || len(f.curve().Excluded()) != 0 {
			t.Errorf("%s: %+v", name, f.Outages)
		}
	}
}

func TestPausesAfterErrorsAreJudged(t *testing.T) {
	for _, c := range []struct {
		share  float64
		status string
	}{{0, OK}, {0.01, OK}, {0.03, Warn}, {0.6, Warn}} {
		s := flat()
		s.Interval = func(iv *measure.Interval) {
			if iv.Step == 2 {
				iv.Paused = c.share * iv.Clients
				iv.OperationTime *= 1 - c.share
			}
		}
		f := of(t, s)
		if got := find(t, f, "error pauses"); got.Status != c.status {
			t.Errorf("share %v: %+v", c.share, got)
		}
		if p := f.Curve[1].PausedShare; p < c.share-0.001 || p > c.share+0.001 {
			t.Errorf("share %v: paused_share %v", c.share, p)
		}
		if l := f.Curve[1].Little; l == nil || *l < 0.97 || *l > 1.03 {
			t.Errorf("share %v: Little's law explains %v of the clients' time", c.share, l)
		}
		if (f.Validity.Status == Valid) != (c.status == OK) {
			t.Errorf("share %v: %s", c.share, f.Validity.Status)
		}
	}
}

// TestStoppedServerWhoseBuffersDrain checks that a few bytes from buffers are not a sign of
// progress.
func TestStoppedServerWhoseBuffersDrain(t *testing.T) {
	s := flat()
	from := stepAt(&s, 1).Add(1800 * time.Millisecond)
	hide := away(from, 2*time.Second, storage.None)
	s.Interval = func(iv *measure.Interval) {
		moved := iv.Moved
		if hide(iv); iv.Moved == 0 {
			iv.Moved = moved / 1000
		}
	}
	if f := of(t, s); len(f.Outages) != 1 || f.Outages[0].Seconds < 1.99 || f.Curve[1].Excluded == "" {
		t.Errorf("%+v", f.Outages)
	}
}

// TestWrongPayloadsDoNotCount checks that a step with wrong payloads does not show a capacity,
// whether they were detected at once or after the operations had ended. Wrong payloads of
// operations that had succeeded count as errors once.
func TestWrongPayloadsDoNotCount(t *testing.T) {
	for name, wrong := range map[string]func(*measure.Interval){
		"at once": func(iv *measure.Interval) { iv.Failed = map[storage.Class]int64{storage.Checksummed: iv.Done / 5} },
		"later":   func(iv *measure.Interval) { iv.Wrong = iv.Done / 5 },
	} {
		s := flat()
		s.Interval = func(iv *measure.Interval) {
			iv.Verified = 0
			wrong(iv)
		}
		f := of(t, s)
		if len(f.curve().Excluded()) != 4 || f.Optimum != nil || f.Validity.Status != Invalid {
			t.Errorf("%s: %d steps excluded, optimum %+v, %s", name, len(f.curve().Excluded()), f.Optimum, f.Validity.Status)
		}
		for i := range f.Curve {
			c := &f.Curve[i]
			if want := stats.Ratio(float64(c.Errors+c.Wrong), float64(c.Done+c.Errors)); c.ErrorRatio != want || c.Bad() == 0 ||
				c.BadBy()[storage.Checksummed] != c.Bad() || (c.Wrong > 0) != (name == "later") ||
				c.ExcludedFact.Code != "excluded.payloads" {
				t.Errorf("%s: %d done, %d of them wrong, %d errors, error ratio %v: %s", name, c.Done, c.Wrong, c.Errors, c.ErrorRatio, c.Excluded)
			}
		}
	}
}
