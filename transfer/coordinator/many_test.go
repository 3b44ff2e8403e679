package coordinator

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/transfer"
	"weir/transfer/transfertest"
)

// A hundred concurrent requests complete without an error by a database lock, and no request waits
// for the end of all other requests.
func TestAHundredRequestsAtOnce(t *testing.T) {
	tier.Slow(t, "moves hundreds of files")
	t.Parallel()
	each(t, func(t *testing.T, conf Config) {
		h := start(t, conf)
		a, b := h.Agent("A", transfertest.Endpoint()), h.Agent("B", nil)
		const requests, files = 100, 5
		for i := range requests {
			a.Write(fmt.Sprintf("/store/all/run%d", i), files, 5000)
		}
		h.Scan("/store/all", "A", "/store/all")
		ids := make([]int64, requests)
		var asking sync.WaitGroup
		for i := range requests {
			asking.Go(func() {
				q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/all", Block: fmt.Sprintf("run%d", i), To: "B"})
				if err != nil {
					t.Errorf("request %d: %v", i, err)
				}
				ids[i] = q.ID
			})
		}
		asking.Wait()
		if t.Failed() {
			return
		}
		var took []time.Duration
		for _, id := range ids {
			q := h.WaitEnd(id)
			if q.Status != transfer.Completed || q.Count.Done != files {
				t.Errorf("%+v", q)
			}
			took = append(took, q.Ended.Sub(q.Made))
		}
		slices.Sort(took)
		t.Logf("the fastest took %v, half took up to %v, the slowest %v", took[0], took[requests/2], took[requests-1])
		for i := range requests {
			same(t, fmt.Sprintf("/store/all/run%d/f%d", i, i%files), a, b)
		}
	})
}

// An agent that was killed between its rename and its report has lost its state. The coordinator
// checks the destination, and the file is not copied again.
func TestTheDestinationIsAsked(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1})
	a, b := h.FakeAgent("A"), h.Agent("B", transfertest.Endpoint())
	b.Write("/store/run1", 2, 1000)
	h.Scan("/store/run1", "B", "/store/run1")
	files, err := h.Client.Files(t.Context(), "/store/run1", "", 0)
	if err != nil || len(files) != 2 {
		t.Fatalf("%+v, %v", files, err)
	}
	a.Register("https://127.0.0.1:1/")
	in := transfer.NewFiles{Dataset: "/store/run1", Site: "A"}
	for _, f := range files {
		in.Files = append(in.Files, transfer.NewFile{File: f.File})
	}
	if _, err := h.Client.AddFiles(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	b.Stop()
	lost := h.FakeAgent("C") // an agent of a site with B's files that dies
	lost.Register("")
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "C", From: []string{"A"}})
	require.NoError(t, err)
	var leases []transfer.Lease
	for len(leases) < 2 {
		leases = append(leases, lost.WaitWork()...)
	}
	c := &transfertest.Agent{T: t, Root: t.TempDir()}
	text, err := os.ReadFile(filepath.Join(b.Root, "store/run1/f0"))
	require.NoError(t, err)
	c.Put("/store/run1/f0", text)                 // the first file had arrived
	h.StartAgent(c, "C", transfertest.Endpoint()) // the next process of the agent
	until(t, "the first file is done", func() bool {
		items, err := h.Client.Items(t.Context(), q.ID, transfer.Done, 0, 0)
		return err == nil && len(items) == 1 && strings.HasSuffix(items[0].Name, "f0")
	})
	attempts, err := h.Client.Attempts(t.Context(), q.ID, leases[0].Item, 0)
	if err != nil || len(attempts) != 1 || !attempts[0].Verified || attempts[0].Fault != "" {
		t.Errorf("%+v, %v", attempts, err)
	}
	until(t, "the second one was given up", func() bool {
		attempts, err = h.Client.Attempts(t.Context(), q.ID, leases[1].Item, 0)
		return err == nil && len(attempts) > 0
	})
	if attempts[0].Fault != transfer.LeaseLost || !strings.Contains(attempts[0].Reason, "not at its destination") {
		t.Errorf("%+v", attempts[0])
	}
}
