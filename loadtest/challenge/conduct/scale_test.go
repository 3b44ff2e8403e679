package conduct

import (
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/control"
	"weir/loadtest/challenge/inject/simulated"
)

// TestManyLinks: 2,000 links between 100 sites with 500 copies a second take less than one core, and
// less than 500 MB.
func TestManyLinks(t *testing.T) {
	tier.Full(t, "60,000 copies")
	synctest.Test(t, func(t *testing.T) {
		const length = 2 * time.Minute
		c := testChallenge(stage(length, 1))
		c.Verify, c.Sites, c.Links = false, nil, nil
		o := simulated.Options{Latency: 300 * time.Millisecond, Spread: .3, Seed: 1}
		for i := range 100 {
			name := string([]byte{'a' + byte(i/10), 'a' + byte(i%10)})
			c.Sites = append(c.Sites, challenge.Site{Name: name, URL: "https://192.0.2.1/" + name})
			o.Sites = append(o.Sites, simulated.Site{Name: name, PerCopy: fakeRate / 4})
		}
		for i := range 2000 {
			from, to := i%100, (i+1+i/100)%100
			l := challenge.Link{From: c.Sites[from].Name, To: c.Sites[to].Name, InFlight: 100}
			l.Rate += 2 * 1 << 20 // a file in four seconds
			c.Links = append(c.Links, l)
			o.Links = append(o.Links, simulated.Link{From: from, To: to})
		}
		r := newRig(t, c)
		r.Injector = openModel(o)
		r.Controller = func(o control.Options) Controller { return control.New(o) }
		before := cpu(t)
		require.NoError(t, Run(r.Config))
		used := cpu(t) - before
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Logf("%v of CPU time for %v, with the model; %d MB from the system", used, length, m.Sys>>20)
		if used > length || m.Sys > 500<<20 {
			t.Errorf("%v of CPU time for %v and %d MB, want at most one core and 500 MB", used, length, m.Sys>>20)
		}
		got := readRecord(t, r.Dir)
		if n := len(got.transfers); n < 55_000 || n > 65_000 {
			t.Errorf("%d copies, want about 60,000", n)
		}
		if n := len(got.links); n < 2000*12 || n > 2000*18 {
			t.Errorf("links.jsonl has %d lines, want one for ten seconds of each link", n)
		}
	})
}

// cpu returns the CPU time of this process.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
