package engine

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
	"weir/storage/storagetest"
	"weir/storage/webdav"
)

// Clients that sleep between operations hold little memory: no goroutine, no buffer. The figure is
// the growth of the resident memory of this process per client, with all garbage. There are 2000
// clients, or the number in WEIR_CROWD.
func TestMemoryOfSleepers(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has shadow memory")
	}
	tier.Slow(t, "thousands of clients")
	n := storagetest.CrowdSize(2000)
	plain := labtest.Start(t, lab.NginxConfig{Workers: 3, Connections: 9900})
	secure := labtest.Start(t, lab.NginxConfig{Config: lab.Config{TLS: true}, Workers: 3, Connections: 9900,
		Extra: "ssl_protocols TLSv1.2 TLSv1.3;"})
	for _, data := range []string{plain.Data, secure.Data} {
		if err := os.WriteFile(filepath.Join(data, "f"), make([]byte, 64<<10), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cred, err := storage.Auth{CAFile: secure.CAFile}.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, url string
		version   uint16
		most      int64
	}{
		{"http", plain.URL, 0, 4 << 10},
		{"TLS 1.2", secure.URLs["https"], tls.VersionTLS12, 16 << 10},
		{"TLS 1.3", secure.URLs["https"], tls.VersionTLS13, 16 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := storagetest.TargetOf(t, c.url, storage.Credentials{})
			if c.version > 0 {
				target.Cred.TLS = cred.TLS.Clone()
				target.Cred.TLS.MinVersion, target.Cred.TLS.MaxVersion = c.version, c.version
			}
			alone := residentWhile(t, target, 1)
			each := (residentWhile(t, target, n) - alone) / int64(n)
			t.Logf("%d bytes resident for each of %d clients", each, n)
			if each > c.most {
				t.Errorf("%d clients hold %d bytes each, want at most %d", n, each, c.most)
			}
		})
	}
}

// A weigher is a sink that weighs this process in each second after all clients have connected, and then ends the run.
type weigher struct {
	t      *testing.T
	n      int64
	seen   []int64
	all    measure.Interval
	finish chan struct{}
}

func (w *weigher) Interval(v *measure.Interval) error {
	const enough = 4
	awake := w.all.Sessions == w.n && v.Phase == measure.Measured
	w.all.Add(v)
	switch {
	case !awake || len(w.seen) == enough:
		return nil
	case len(w.seen) == 0: // frees the memory of the start, and pools with the second collection
		debug.FreeOSMemory()
		debug.FreeOSMemory()
	}
	if w.seen = append(w.seen, storagetest.Resident(w.t)); len(w.seen) == enough {
		storagetest.LogMemory(w.t, "asleep", uint64(w.n))
		close(w.finish)
	}
	return nil
}

func (w *weigher) Event(measure.Event) error { return nil }

// residentWhile returns this process's resident memory while n clients sleep between reads.
func residentWhile(t *testing.T, target storage.Target, n int) int64 {
	t.Helper()
	service := storagetest.Open(t, webdav.Driver(), target)
	think := seconds(5)
	w := &weigher{t: t, n: int64(n), finish: make(chan struct{})}
	debug.FreeOSMemory() // memory of earlier tests must not be given to the clients
	err := Run(t.Context(), Config{
		Plan: &scenario.Plan{
			Model: "closed", Seed: 7, GracefulStop: seconds(30), ErrorPause: seconds(1), Target: target.URL.String(),
			Work:  workload.Work{Kind: "read", Session: "kept", Pick: "random", Think: workload.Span{Fixed: think}, Timeout: seconds(60)},
			Steps: []scenario.Step{{Number: 1, Clients: n, Ramp: think, Duration: seconds(300)}},
		},
		Service: service, Files: []workload.File{{Path: "f", Size: 64 << 10}}, Sink: w, Finish: w.finish,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(w.seen) == 0 || w.all.Sessions != int64(n) || w.all.Done < int64(n) || w.all.Errors() > 0 {
		t.Fatalf("%d clients: %d sessions, %d reads, failed %v", n, w.all.Sessions, w.all.Done, w.all.Failed)
	}
	slices.Sort(w.seen)
	return w.seen[len(w.seen)/2]
}
