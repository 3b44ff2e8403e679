package coordinator

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"weir/internal/require"
	"weir/internal/wire"
	"weir/lab/dbtest"
	"weir/transfer"
	"weir/transfer/transfertest"
)

// Attempts are listed in pages without omissions, even if a page ends between an attempt and its
// late report.
func TestAttemptsComeByPages(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	const files = 600
	_, b, q := h.pair(files)
	var all []transfer.Outcome
	for len(all) < files {
		var some []transfer.Outcome
		for _, l := range b.WaitWork() {
			some = append(some, transfertest.Verified(l))
		}
		if _, err := b.Report(some...); err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	for i := range all[1:] {
		all[i+1].Fault, all[i+1].Reason = transfer.Transient, "said once more"
	}
	if _, err := b.Report(all[1:]...); err != nil {
		t.Fatal(err)
	}
	seen := map[transfer.LeaseID][2]int{}
	err := h.Client.EachAttempt(t.Context(), q.ID, func(a transfer.Attempt) error {
		n := seen[transfer.LeaseID{Item: a.Item, Epoch: a.Epoch}]
		if a.Late {
			n[1]++
		} else {
			n[0]++
		}
		seen[transfer.LeaseID{Item: a.Item, Epoch: a.Epoch}] = n
		return nil
	})
	if err != nil || len(seen) != files {
		t.Fatalf("attempts at %d files, %v", len(seen), err)
	}
	alone := 0
	for at, n := range seen {
		if n[0] != 1 || n[1] > 1 {
			t.Errorf("%v came %d times, late %d times", at, n[0], n[1])
		}
		if n[1] == 0 {
			alone++
		}
	}
	if alone != 1 {
		t.Errorf("%d files have no late attempt, one is to have none", alone)
	}
	if some, err := h.Client.Attempts(t.Context(), q.ID, 0, 1100); err != nil || len(some) != 1100 {
		t.Errorf("%d attempts, %v", len(some), err)
	}
}

// Files in several states are returned in one response, which has no pages.
func TestFirstFilesOfManyStates(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	_, b, q := h.pair(5)
	leases := b.WaitWork()
	gone := transfertest.Verified(leases[0])
	gone.Fault, gone.Reason = transfer.Permanent, "no"
	if _, err := b.Report(gone); err != nil {
		t.Fatal(err)
	}
	items, err := h.Client.First(t.Context(), q.ID, []transfer.State{transfer.FileFailed, transfer.Leased, transfer.Queued}, 0)
	if err != nil || len(items) != 5 || items[0].State != transfer.FileFailed || items[0].ID != leases[0].Item {
		t.Errorf("%+v, %v", items, err)
	}
	_, err = h.Client.First(t.Context(), q.ID, []transfer.State{transfer.FileFailed, "lost?"}, 0)
	if wire.Status(err)/100 != 4 {
		t.Errorf("a state that is none: %v", err)
	}
}

// Datasets are found by the beginning of their names, which may end in the middle of any script, on
// both databases. PostgreSQL refuses invalid text.
func TestDatasetsBelow(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]func(testing.TB) string{"SQLite": dbtest.File, "PostgreSQL": dbtest.Server} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, Config{DB: address(t), Plain: true})
			h.FakeAgent("A").Register("http://127.0.0.1:1")
			for _, d := range []string{"/store/gr", "/store/größe", "/store/größer", "/store/grün", "/store/日本", "/store/日本語"} {
				h.Register(d, "A", 1, 10)
			}
			for prefix, want := range map[string]int{
				"": 6, "/store/gr": 4, "/store/grö": 2, "/store/größe": 2, "/store/grü": 1, "/store/日": 2, "/store/日本語": 1, "/store/é": 0,
			} {
				if all, err := h.Client.DatasetsBelow(t.Context(), prefix); err != nil || len(all) != want {
					t.Errorf("%q: %v, %v, want %d", prefix, all, err, want)
				}
			}
			raw, err := h.Admin()
			require.NoError(t, err)
			var page []struct{ Name string }
			text := h.ask(t, "GET", "/api/v1/datasets?n=2&from="+url.QueryEscape("/store/größe"), raw, nil, http.StatusOK)
			err = json.Unmarshal(text, &page)
			if err != nil || len(page) != 2 || page[0].Name != "/store/größe" || page[1].Name != "/store/größer" {
				t.Errorf("two from a name on: %s", text)
			}
			for _, after := range []string{"/store/\x00", "/store/\xff", "/store/gr\xc3"} {
				_, err := h.Client.Datasets(t.Context(), after, 10)
				if refused := wire.Status(err) == 400; refused != (name == "PostgreSQL") || err != nil && !refused {
					t.Errorf("%q: %v", after, err)
				}
			}
		})
	}
}
