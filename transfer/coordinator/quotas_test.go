package coordinator

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/fts/rest"
	"weir/transfer/requests"
)

// manyFiles returns a submission of n files, which wait.
func manyFiles(name string, n int) string {
	files := make([]string, n)
	for i := range files {
		files[i] = fmt.Sprintf(`{"sources":["https://127.0.0.1:1/f"],"destinations":["https://127.0.0.1:2/%s%d"],"filesize":5}`, name, i)
	}
	return `{"files":[` + strings.Join(files, ",") + `]}`
}

// Users and virtual organizations cannot exceed their quotas of open files and submissions. Files
// that have ended no longer count.
func TestQuotas(t *testing.T) {
	t.Parallel()
	either(t, func(t *testing.T, conf Config) {
		conf.JobArea = tpc.Loopback
		conf.UserQuota, conf.VOQuota = requests.Quota{Files: 5}, requests.Quota{Files: 8}
		h := start(t, conf)
		ada, bob := h.ftsUser("ada", access.MaySubmit), h.ftsUser("bob", access.MaySubmit)
		first := ada.submit(manyFiles("a", 4))
		refused := func(u *ftsUser, body, want string) {
			t.Helper()
			var out struct{ Message string }
			if status := u.ask("POST", "/jobs", body, &out); status != http.StatusTooManyRequests || !strings.Contains(out.Message, want) {
				t.Errorf("%d %+v", status, out)
			}
		}
		refused(ada, manyFiles("b", 2), "you have 4 files")
		ada.submit(manyFiles("b", 1))
		bob.submit(manyFiles("c", 3))
		refused(bob, manyFiles("d", 1), "users of weir have 8 files")
		ada.ask("DELETE", "/jobs/"+first, "", nil)
		ada.ended(first)
		bob.submit(manyFiles("d", 2))
		h.FakeAgent("A").Register("")
		h.Register("/run1", "A", 5, 10)
		h.addSite("B", "https://127.0.0.1:1/b")
		if _, err := h.As("ada", access.MaySubmit).Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "B"}); err != nil {
			t.Error(err)
		}
		refused(ada, manyFiles("e", 1), "you have 6 files")
	})
}

// Submissions beyond the quota of a minute are refused with the time until the next submission.
func TestSubmissionsOfAMinute(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback, UserQuota: requests.Quota{Submissions: 2},
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	ada, bob := h.ftsUser("ada", access.MaySubmit), h.ftsUser("bob", access.MaySubmit)
	ada.submit(manyFiles("a", 1))
	ada.submit(manyFiles("b", 1))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL()+rest.Path+"/jobs", strings.NewReader(manyFiles("c", 1)))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+ada.raw)
	res, err := ada.http.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	bob.submit(manyFiles("c", 1))
	ahead.Store(int64(time.Minute))
	ada.submit(manyFiles("d", 1))
}
