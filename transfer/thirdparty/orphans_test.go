package thirdparty

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/db"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
	"weir/transfer/dispatch"
	"weir/transfer/health"
	"weir/transfer/metrics"
	"weir/transfer/queue"
	"weir/transfer/remote"
)

// A destination that does not respond is tried again after a pause, which grows up to a bound; not if the lease has ended.
func TestAskLater(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	synctest.Test(t, func(t *testing.T) {
		state := dispatch.New(dispatch.Config{Now: time.Now})
		c := &Copier{leases: state.Leases}
		c.leases.Load(nil, []transfer.Lease{{Item: 1, Epoch: 1, Mode: transfer.Third}})
		l := c.leases.Orphans()[0]
		const orphanRetry = 10 * time.Second
		var before time.Duration
		for range 12 {
			begin, next := time.Now(), c.lost.more.Next()
			c.retryOrphan(t.Context(), l)
			<-next
			took := time.Since(begin)
			if len(c.lost.list) != 1 || took != min(max(2*before, orphanRetry/64), orphanRetry) {
				t.Errorf("asked again after %v, before that after %v", took, before)
			}
			before, c.lost.list = took, nil
		}
		if before != orphanRetry {
			t.Errorf("at last after %v", before)
		}
		c.leases.ApplyChanges("", []queue.Change{{Item: 1, Epoch: 1}}, nil)
		c.retryOrphan(t.Context(), l)
		time.Sleep(time.Minute)
		if len(c.lost.list) > 0 {
			t.Error("a lease that is over is asked for")
		}
	})
}

// newCopier returns a Copier with a database, and with sites that need no credentials.
func newCopier(t *testing.T, sites ...catalog.Site) *Copier {
	t.Helper()
	ctx, log, dir := t.Context(), slog.New(slog.DiscardHandler), t.TempDir()
	d, err := db.Open(ctx, "sqlite:"+filepath.Join(dir, "weir.db"), db.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	_, err = store.Open(ctx, d)
	require.NoError(t, err)
	q, err := queue.Open(ctx, d, queue.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Migrate(ctx, "coordinator", os.DirFS("../state/schema")))
	works := health.New(log)
	control, err := access.New(ctx, access.Config{State: dir, DB: d, Queue: q, Health: works, Log: log, Now: time.Now})
	require.NoError(t, err)
	state := dispatch.New(dispatch.Config{Now: time.Now, Log: log, Wake: func() {}, Counters: metrics.NewCounters(time.Now), Streams: true})
	known := map[string]catalog.Site{}
	for _, s := range sites {
		known[s.Name] = s
	}
	state.Sites.Set(known, nil)
	client := remote.New("weir", nil)
	t.Cleanup(client.Close)
	return New(Config{State: state, Access: control, Endpoints: access.NewEndpoints(control, state.Sites, client), Client: client,
		Queue: q, DB: d,
		Health: works, Log: log, Now: time.Now, Streamed: 1})
}

// A file that was to be replaced, at an endpoint without checksums, does not count as the new file
// of the same size if the response to the renaming is lost, or if the coordinator was killed.
func TestOldFilesAreNotTakenForNewOnes(t *testing.T) {
	tier.Slow(t, "waits for a checksum")
	t.Parallel()
	var digest atomic.Bool
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "MOVE" {
			panic(http.ErrAbortHandler)
		}
		if r.Header.Get("Want-Digest") != "" && digest.Load() {
			w.Header().Set("Digest", "adler32=1")
		}
		w.Header().Set("Content-Length", "5")
	}))
	defer there.Close()
	h := newCopier(t, catalog.Site{Name: "D", Kind: catalog.HTTPSite, URL: there.URL})
	l := transfer.Lease{Item: 1, Epoch: 1, Mode: transfer.Third, Size: 5, Replace: true, Unchecked: true,
		Dest: transfer.End{Site: "D", Path: "f"}}
	if err := h.newThird(l).rename(t.Context()); err == nil {
		t.Error("the answer was lost, and the temporary file is still there")
	}
	h.leases.Load(nil, []transfer.Lease{l})
	active := h.leases.Orphans()[0]
	if o, known := h.verifyOrphan(t.Context(), active); !known || o.Fault != transfer.LeaseLost {
		t.Errorf("after a kill: %+v, %v", o, known)
	}
	digest.Store(true)
	active.Job, active.Adler = "a job", "00000001"
	if o, known := h.verifyOrphan(t.Context(), active); !known || o.Fault != "" || !o.Existed {
		t.Errorf("a file that may have been there before: %+v, %v", o, known)
	}
	h.leases.ApplyChanges("", []queue.Change{{Item: l.Item, Epoch: l.Epoch}}, nil)
}
