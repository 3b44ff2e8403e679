package results_test

import (
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// Backlogs of intervals and samples are read up to about the same time, for any sizes of the files.
func TestFollowerKeepsFilesTogether(t *testing.T) {
	dir := t.TempDir() + "/run"
	require.NoError(t, (resultstest.Large{Seconds: 600, Steps: 3, Servers: 8, Loaders: 2, Stores: 2, Cores: 16}).Write(dir))
	f, err := results.Follow(dir)
	require.NoError(t, err)
	f.Bound(1)
	var clients, hosts time.Time
	intervals, samples := 0, 0
	take := results.Takers{
		Interval: func(v *measure.Interval) { clients = v.Start; intervals++ },
		Sample:   func(v *monitor.Sample) { hosts = v.Time; samples++ },
	}
	polls := 0
	for moved := true; moved; polls++ {
		if moved, err = f.Poll(take); err != nil {
			t.Fatal(err)
		}
		// A piece of 128 KiB has some 10 seconds of the hosts, and a hundred of the clients.
		if apart := clients.Sub(hosts).Abs(); moved && apart > 3*time.Minute {
			t.Fatalf("clients at %s, hosts at %s", clients, hosts)
		}
	}
	if intervals != 1200 || samples != 6000 || polls < 20 {
		t.Errorf("%d intervals and %d samples in %d polls", intervals, samples, polls)
	}
}
