package conduct

import (
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/measure"
)

// TestHealth: answers of the transfer service and of its issuer that fail, are slow or ask for a
// pause are events, at most one for each in ten seconds; good answers, and those to direct
// injection, are not.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		states := []inject.Health{
			{Requests: 50}, // of the preparation
			{Requests: 10, Latency: 20 * time.Millisecond},
			{Requests: 4, Failed: 1, Latency: 100 * time.Millisecond, Reason: "POST /jobs: status 500:\n internal"},
			{Requests: 3, Latency: 1500 * time.Millisecond},
			{Busy: true},
			{Requests: 2, Failed: 2, Issuer: &inject.Health{Requests: 2, Failed: 2, Latency: time.Second, Reason: "login"}},
			{Requests: 9, Issuer: &inject.Health{Requests: 1, Latency: time.Millisecond}},
		}
		run := func(by challenge.Method) (all []measure.Service, warnings, calls int) {
			c := testChallenge(stage(90*time.Second, .5))
			c.Inject.By = by
			r := newRig(t, c, 4*fakeRate, 4*fakeRate, 4*fakeRate)
			r.inject.health = func() (h inject.Health) {
				if calls++; calls <= len(states) {
					return states[calls-1]
				}
				return h
			}
			require.NoError(t, Run(r.Config))
			last := time.Time{}
			for _, e := range readRecord(t, r.Dir).events {
				switch {
				case e.Kind == measure.EventWarning:
					warnings++
				case e.Service != nil:
					all = append(all, *e.Service)
					if d := e.Time.Sub(last); !last.IsZero() && d != 0 && d < healthTime {
						t.Errorf("%v after the event before", d)
					}
					last = e.Time
				}
			}
			return all, warnings, calls
		}
		all, warnings, calls := run(challenge.FTS)
		want := []measure.Service{
			{Name: measure.TransferService, Requests: 4, Failed: 1, Latency: 0.1, Reason: "POST /jobs: status 500: internal"},
			{Name: measure.TransferService, Requests: 3, Latency: 1.5},
			{Name: measure.TransferService, Busy: true},
			{Name: measure.TransferService, Requests: 2, Failed: 2},
			{Name: measure.Issuer, Requests: 2, Failed: 2, Latency: 1, Reason: "login"},
		}
		if len(all) != len(want) || warnings != 2 || calls < 8 || calls > 11 {
			t.Fatalf("%d warnings, %d calls, %+v", warnings, calls, all)
		}
		for i, s := range all {
			require.Near(t, "seconds of an event", s.Seconds, 10, 1)
			if s.Seconds = 0; s != want[i] {
				t.Errorf("%+v, want %+v", s, want[i])
			}
		}
		if all, warnings, _ := run(challenge.Direct); len(all)+warnings > 0 {
			t.Errorf("direct: %d warnings, %+v", warnings, all)
		}
	})
}

// TestLastByte: the time of the last byte is unknown if the service reports no progress and verifies
// copies itself. If weir verifies them, it is at most the service's end of the copy.
func TestLastByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, mute := range []bool{true, false} {
			r := newRig(t, testChallenge(stage(20*time.Second, .5)), fakeRate, fakeRate, fakeRate)
			r.inject.mute = mute
			require.NoError(t, Run(r.Config))
			n := 0
			for _, x := range readRecord(t, r.Dir).transfers {
				if x.Done {
					n++
					if x.LastByte.IsZero() != mute {
						t.Errorf("progress %v: the last byte of copy %d is at %v", !mute, x.Request, x.LastByte)
					}
				}
			}
			if n == 0 {
				t.Error("no copy arrived")
			}
		}
	})
}
