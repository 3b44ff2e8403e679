package coordinator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tpc"
	"weir/transfer/access"
	"weir/transfer/dispatch"
	"weir/transfer/fts"
)

// jobBetween returns a job that copies a file from one loopback address of this machine to another
// address.
func jobBetween(source, dest int) string {
	return fmt.Sprintf(`{"files":[{"sources":["https://127.0.0.%d:1/f"],"destinations":["https://127.0.0.%d:1/f"],"filesize":5}]}`, source, dest)
}

// siteNames returns the names of all sites.
func (h *service) siteNames() []string {
	h.T.Helper()
	all, err := h.catalog.Sites(h.T.Context())
	require.NoError(h.T, err)
	names := []string{}
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// unusedFor advances the time since sites were last in use, and removes unused sites.
func (h *service) unusedFor(ahead *atomic.Int64, d time.Duration) {
	h.T.Helper()
	require.NoError(h.T, h.registry.RemoveUnused(h.T.Context()))
	ahead.Add(int64(dispatch.UnusedEvery))
	require.NoError(h.T, h.registry.RemoveUnused(h.T.Context()))
	require.NoError(h.T, h.db.Exec(h.T.Context(), "UPDATE unused SET since = since - ?", int64(d)))
	require.NoError(h.T, h.registry.RemoveUnused(h.T.Context()))
}

// Endpoints of jobs are sites as long as a job uses them, and for some time after that. Sites with
// settings of an administrator are kept.
func TestUnusedEndpointsAreRemoved(t *testing.T) {
	t.Parallel()
	either(t, func(t *testing.T, conf Config) {
		conf.JobArea, conf.Approve, conf.KeepEndpoints = tpc.Loopback, -1, 24*time.Hour
		var ahead atomic.Int64
		conf.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		h := start(t, conf)
		u, admin := h.ftsUser("ada", access.MaySubmit), h.ftsUser("admin", access.MayAdmin)
		h.addSite("named", "https://127.0.0.9:1/")
		for _, path := range []string{"/config/se", "/config/links", "/ban/se"} {
			body := map[string]string{"/config/se": `{"https://127.0.0.3":{"se_info":{"inbound_max_active":2}}}`,
				"/config/links": `{"symbolicname":"l","source":"*","destination":"https://127.0.0.4","min_active":1,"max_active":2}`,
				"/ban/se":       `{"storage":"https://127.0.0.5","status":"WAIT_AS"}`}[path]
			if status := admin.ask("POST", path, body, nil); status/100 != 2 {
				t.Fatalf("%s: %d", path, status)
			}
		}
		open := u.submit(jobBetween(1, 2))
		var over []string
		for _, ports := range [][2]int{{3, 4}, {5, 6}, {1, 7}, {8, 9}} {
			over = append(over, u.submit(jobBetween(ports[0], ports[1])))
		}
		for _, id := range over {
			u.ask("DELETE", "/jobs/"+id, "", nil)
			u.ended(id)
		}
		check := func(want ...string) {
			t.Helper()
			slices.Sort(want)
			if got := h.siteNames(); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		}
		all := []string{"127.0.0.1-1", "127.0.0.2-1", "127.0.0.3-1", "127.0.0.4-1", "127.0.0.5-1", "127.0.0.6-1", "127.0.0.7-1", "127.0.0.8-1",
			"named"}
		check(all...)
		require.NoError(t, h.db.Exec(t.Context(), "DELETE FROM leftover"))
		h.unusedFor(&ahead, 23*time.Hour)
		check(all...)
		h.addLeftovers("127.0.0.6-1", 77)
		h.unusedFor(&ahead, 25*time.Hour)
		check("127.0.0.1-1", "127.0.0.2-1", "127.0.0.3-1", "127.0.0.4-1", "127.0.0.5-1", "127.0.0.6-1", "named")
		for _, l := range h.leases.Links() {
			if l.Source == "127.0.0.8-1" || l.Dest == "127.0.0.7-1" {
				t.Errorf("a link of a site that is removed: %+v", l)
			}
		}

		// A job that is tried again adds its endpoints again, in the same way as a new job.
		id := h.requestOf(over[3])
		_, err := h.Client.Retry(t.Context(), id, "")
		require.NoError(t, err)
		u.submit(jobBetween(1, 7))
		check(append(all[:8:8], "named")...)
		u.ask("DELETE", "/jobs/"+open, "", nil)
		u.ended(open)
		require.NoError(t, h.db.Exec(t.Context(), "DELETE FROM leftover"))
		h.unusedFor(&ahead, 25*time.Hour)
		check("127.0.0.1-1", "127.0.0.3-1", "127.0.0.4-1", "127.0.0.5-1", "127.0.0.7-1", "127.0.0.8-1", "named")
	})
}

// requestOf returns the id of the request of a job.
func (h *service) requestOf(job string) int64 {
	h.T.Helper()
	all, err := h.queue.Read.Jobs(h.T.Context(), []string{job})
	require.NoError(h.T, err)
	return all[0].Parts[0].ID
}

// If a submission names an endpoint while its site is being removed, the site exists afterwards.
func TestEndpointIsNamedWhileItIsRemoved(t *testing.T) {
	t.Parallel()
	h := start(t, Config{JobArea: tpc.Loopback, Approve: -1, KeepEndpoints: time.Hour})
	u := h.ftsUser("ada", access.MaySubmit)
	for range 30 {
		h.sites.Forget("127.0.0.2-1") // removes the mark that the endpoint was named
		removed := make(chan error, 1)
		go func() { removed <- h.registry.RemoveURLSite(h.T.Context(), "127.0.0.2-1") }()
		id := u.submit(jobBetween(1, 2))
		require.NoError(t, <-removed)
		if _, known := h.sites.Get("127.0.0.2-1"); !known || !slices.Contains(h.siteNames(), "127.0.0.2-1") {
			t.Fatalf("sites %v", h.siteNames())
		}
		u.ask("DELETE", "/jobs/"+id, "", nil)
		u.ended(id)
	}
}

// With known sites only, jobs can use only sites that an administrator has added.
func TestOnlyKnownSites(t *testing.T) {
	t.Parallel()
	h := start(t, Config{KnownSites: true, Approve: -1})
	h.addSite("B", "https://127.0.0.2:1/data")
	u := h.ftsUser("ada", access.MaySubmit)
	inside := strings.Replace(jobBetween(1, 2), ".2:1/f", ".2:1/data/f", 1)
	refused := func(body, endpoint string) {
		t.Helper()
		var no fts.Refusal
		if status := u.ask("POST", "/jobs", body, &no); status != http.StatusBadRequest || !strings.Contains(no.Message, endpoint) {
			t.Errorf("%d %+v", status, no)
		}
	}
	refused(inside, "https://127.0.0.1:1")
	h.addSite("A", "https://127.0.0.1:1")
	refused(jobBetween(1, 2), "https://127.0.0.2:1")
	u.submit(inside)
	if got := h.siteNames(); !slices.Equal(got, []string{"A", "B"}) {
		t.Error(got)
	}
}
