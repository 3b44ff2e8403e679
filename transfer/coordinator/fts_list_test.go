package coordinator

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tpc"
	"weir/transfer/access"
	"weir/transfer/fts"
)

// listed returns the states of the listed jobs, by job id.
func (u *ftsUser) listed(query url.Values) map[string]string {
	u.h.T.Helper()
	var jobs []ftsJob
	if status := u.ask("GET", "/jobs?"+query.Encode(), "", &jobs); status != http.StatusOK {
		u.h.T.Fatalf("%s: %d", query.Encode(), status)
	}
	all := map[string]string{}
	for _, j := range jobs {
		all[j.ID] = j.State
	}
	return all
}

// Jobs that have ended are listed by state, and by the other filters of FTS.
func TestFTSListsEndedJobs(t *testing.T) {
	t.Parallel()
	either(t, func(t *testing.T, conf Config) {
		conf.JobArea, conf.Approve = tpc.Loopback, -1
		h := start(t, conf)
		ada, bob, admin := h.ftsUser("ada", access.MaySubmit), h.ftsUser("bob", access.MaySubmit), h.ftsUser("admin", access.MayAdmin)
		submit := func(u *ftsUser, n int) string {
			return u.submit(fmt.Sprintf(`{"files":[{"sources":["https://127.0.0.1:1/f"],"filesize":5,
				"destinations":["https://127.0.0.2:2/%d"]}],"params":{"retry":20}}`, n))
		}
		cancelled, open, bobs := submit(ada, 1), submit(ada, 2), submit(bob, 3)
		for _, id := range []string{cancelled, bobs} {
			admin.ask("DELETE", "/jobs/"+id, "", nil)
			ada.ended(id)
		}
		ofBob := fts.DelegationID("bob")
		for _, one := range []struct {
			u     *ftsUser
			query string
			want  []string
		}{
			{ada, "", []string{open}},
			{admin, "", []string{open}},
			{ada, "state_in=CANCELED", nil}, // as in FTS: without a limit or a time, only open jobs
			{ada, "state_in=CANCELED&limit=10", []string{cancelled}},
			{ada, "state_in=CANCELED,SUBMITTED,READY,ACTIVE&limit=10", []string{cancelled, open}}, // copies are attempted
			{ada, "state_in=FINISHED,FAILED,FINISHEDDIRTY&limit=10", nil},
			{ada, "state_in=CANCELED&time_window=1", []string{cancelled}},
			{ada, "state_in=CANCELED,SUBMITTED&time_window=0:30", []string{cancelled}},
			{ada, "state_in=CANCELED&limit=10&user_dn=ada", []string{cancelled}},
			{ada, "time_window=1", []string{open}},                          // as in FTS
			{admin, "state_in=CANCELED&limit=0", []string{cancelled, bobs}}, // as in FTS: no limit
			{admin, "state_in=CANCELED&limit=1", []string{bobs}},            // the latest job
			{admin, "state_in=CANCELED&limit=10", []string{cancelled, bobs}},
			{admin, "state_in=CANCELED&limit=10&user_dn=bob", []string{bobs}},
			{admin, "state_in=CANCELED&limit=10&user_dn=eve", nil},
			{admin, "state_in=CANCELED&limit=10&dlg_id=" + ofBob, []string{bobs}},
			{admin, "state_in=CANCELED&limit=10&vo_name=weir", []string{cancelled, bobs}},
			{admin, "state_in=CANCELED&limit=10&vo_name=atlas", nil},
			{admin, "state_in=CANCELED&limit=10&source_se=davs://127.0.0.1&dest_se=https://127.0.0.2", []string{cancelled, bobs}},
			{admin, "state_in=CANCELED&limit=10&source_se=https://127.0.0.2", nil},
			{admin, "dest_se=https://127.0.0.1", nil},
		} {
			query, err := url.ParseQuery(one.query)
			require.NoError(t, err)
			got := one.u.listed(query)
			if len(got) != len(one.want) || slices.ContainsFunc(one.want, func(id string) bool { return got[id] == "" }) {
				t.Errorf("%s: %v, want %v", one.query, got, one.want)
			}
		}
		old := time.Now().Add(-90 * time.Minute)
		require.NoError(t, h.db.Exec(t.Context(), "UPDATE job SET ended = ? WHERE id = ?", old, cancelled))
		for window, want := range map[string]int{"1": 1, "1:20": 1, "1:40": 2, "2": 2, "100000": 2} {
			if got := admin.listed(url.Values{"state_in": {"CANCELED"}, "time_window": {window}}); len(got) != want {
				t.Errorf("%s hours: %v", window, got)
			}
		}
		for _, query := range []string{"time_window=x", "time_window=-1", "time_window=1:x", "time_window=99999999", "limit=501",
			"limit=x", "color=red"} {
			if status := ada.ask("GET", "/jobs?"+query, "", nil); status != http.StatusBadRequest {
				t.Errorf("%s: %d", query, status)
			}
		}
		if status := ada.ask("GET", "/jobs?user_dn=bob&state_in=FAILED&limit=3", "", nil); status != http.StatusForbidden {
			t.Errorf("the jobs of others: %d", status)
		}
	})
}
