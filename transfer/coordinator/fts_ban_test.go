package coordinator

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/tpc"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/dispatch"
	"weir/transfer/fts"
)

// explained returns the reasons why the files of the only open request wait.
func (h *service) explained() string {
	h.T.Helper()
	all, err := h.Client.Requests(h.T.Context(), transfer.Filter{Open: true})
	if err != nil || len(all) != 1 {
		h.T.Fatalf("%d open requests, %v", len(all), err)
	}
	e, err := h.Client.Explain(h.T.Context(), all[0].ID, "")
	if err != nil {
		h.T.Fatal(err)
	}
	text := ""
	for _, r := range e.Reasons {
		text += r.Text + "\n"
	}
	return text
}

// FTS's command bans a storage element. Files wait with the ban as their reason, also after a
// restart, and are copied when the ban is lifted.
func TestFTSBanWaits(t *testing.T) {
	t.Parallel()
	bin := labtest.FTS(t)
	p := startFTS(t, "")
	u, root := p.ftsUser("alice", access.MaySubmit), p.ftsUser("root", access.MayAdmin)
	data := bytes.Repeat([]byte("banned\n"), 10_000)
	p.put(p.x, "e/f", data)
	at, err := url.Parse(p.y.URLs["https"])
	if err != nil {
		t.Fatal(err)
	}
	se := fts.SE(at)
	ban := func(args ...string) string {
		t.Helper()
		out, err := p.ftsCommand(bin, []string{"--fts-access-token", root.raw}, "fts-rest-ban", args...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
	}
	if out := ban("--storage", davs(se), "--status", "wait"); !strings.Contains(out, "No jobs affected") {
		t.Error(out)
	}
	body := `{"files":[` + p.pair("e/f", "") + `]}`
	var no struct{ Message string }
	if status := u.ask("POST", "/jobs", body, &no); status != http.StatusForbidden || !strings.Contains(no.Message, "is banned by root") {
		t.Errorf("%d %+v", status, no)
	}
	ban("--storage", se, "--status", "wait", "--allow-submit", "--timeout", "3600")
	id := u.submit(body)
	p.End()
	p.Begin()
	u.http.CloseIdleConnections()
	var bans []fts.BanAnswer
	if status := root.ask("GET", "/ban/se", "", &bans); status != http.StatusOK || len(bans) != 1 || bans[0].SE != se ||
		bans[0].Status != dispatch.BanAccepts || bans[0].By != "root" || bans[0].Timeout != 3600 {
		t.Errorf("%d %+v", status, bans)
	}
	until(t, "the ban is the reason", func() bool { return strings.Contains(p.explained(), se+" is banned by root since") })
	sites, err := p.Client.Sites(t.Context())
	if err != nil || len(sites) != 2 || !strings.Contains(sites[0].Problem, "is banned by root") {
		t.Errorf("%+v, %v", sites, err)
	}
	if out := ban("--storage", se, "--status", "wait", "--allow-submit"); !strings.Contains(out, id) {
		t.Errorf("%s is not affected:\n%s", id, out)
	}
	var j ftsJob
	if status := u.ask("GET", "/jobs/"+id, "", &j); status != http.StatusOK || j.State != fts.Submitted {
		t.Errorf("%d %+v", status, j)
	}
	ban("--storage", se, "--unban")
	if j := u.ended(id); j.State != fts.Finished {
		t.Errorf("%+v", j)
	}
	if got, err := os.ReadFile(filepath.Join(p.y.Data, "e/f")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A ban with cancellation ends waiting files, except files with another source, and refuses new
// files. A ban that lets files wait cancels them when its timeout has passed.
func TestFTSBanCancels(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback})
	u, root := h.ftsUser("alice", access.MaySubmit), h.ftsUser("root", access.MayAdmin)
	job := func(source, dest string) string {
		return fmt.Sprintf(`{"files":[{"sources":[%s],"destinations":["http://127.0.0.1:9/%s"]}]}`, source, dest)
	}
	one := u.submit(job(`"http://[::1]:9/a"`, "a"))
	two := u.submit(job(`"http://[::1]:9/b","http://127.0.0.1:7/b"`, "b"))
	var affected []string
	post := func(path, body string, want int) {
		t.Helper()
		affected = nil
		var out any = &affected
		if want != http.StatusOK {
			out = &struct{}{}
		}
		if status := root.ask("POST", path, body, out); status != want {
			t.Errorf("%s: %d instead of %d", body, status, want)
		}
	}
	for _, body := range []string{`{`, `{}`, `{"storage":1}`, `{"storage":"http://[::1]/x"}`, `{"storage":"http://[::1]","status":"no"}`,
		`{"storage":"http://[::1]","status":7}`, `{"storage":"http://[::1]","allow_submit":true}`, `{"storage":"http://[::1]","timeout":5}`,
		`{"storage":"http://[::1]","vo_name":"atlas"}`, `{"storage":"http://[::1]","status":"wait","timeout":"soon"}`,
		`{"storage":"http://[::1]","message":{}}`} {
		post("/ban/se", body, http.StatusBadRequest)
	}
	var no struct{ Message string }
	for _, path := range []string{"/ban/se", "/ban/dn"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			if status := u.ask(method, path, "{}", &no); status != http.StatusForbidden {
				t.Errorf("%s %s: %d", method, path, status)
			}
		}
	}
	three := u.submit(job(`"http://127.0.0.1:8/d"`, "d"))
	post("/ban/se", `{"storage":"http://127.0.0.1:9","status":"WAIT_AS"}`, http.StatusOK) // the destination of all jobs
	post("/ban/se", `{"storage":"http://[::1]","message":"no power"}`, http.StatusOK)
	if len(affected) != 1 || affected[0] != one {
		t.Errorf("affected: %q instead of %q", affected, one)
	}
	if j := u.ended(one); j.State != fts.Canceled || !strings.Contains(j.Files[0].Reason, "(no power)") {
		t.Errorf("%+v", j)
	}
	if status := u.ask("POST", "/jobs", job(`"http://[::1]:9/c"`, "c"), &no); status != http.StatusForbidden {
		t.Errorf("%d %+v", status, no)
	}
	var j ftsJob
	if u.ask("GET", "/jobs/"+three, "", &j); j.State == fts.Canceled {
		t.Errorf("a ban cancels files of another, which lets them wait: %+v", j)
	}
	if status := root.ask("DELETE", "/ban/se?storage=http://127.0.0.1:9", "", nil); status != http.StatusNoContent {
		t.Errorf("%d", status)
	}
	post("/ban/se", `{"storage":"127.0.0.1-7","status":"WAIT_AS","timeout":1}`, http.StatusOK) // the other source of the second job
	if len(affected) != 1 || affected[0] != two {
		t.Errorf("affected: %q instead of %q", affected, two)
	}
	if j := u.ended(two); j.State != fts.Canceled {
		t.Errorf("%+v", j)
	}
	var bans []fts.BanAnswer
	if status := root.ask("GET", "/ban/se", "", &bans); status != http.StatusOK || len(bans) != 2 || bans[0].Status != dispatch.BanCancels {
		t.Errorf("%d %+v", status, bans)
	}
}

// A storage element has several names, with different schemes, ports, capitals and forms of an
// address. A ban by any of these names applies to jobs with any other name, is listed by the name
// that FTS would use, and is lifted by that name.
func TestFTSBanNames(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback})
	u, root := h.ftsUser("alice", access.MaySubmit), h.ftsUser("root", access.MayAdmin)
	for _, c := range []struct{ banned, source, listed string }{
		{"root://127.0.0.1", "xroot://127.0.0.1:9/f", "root://127.0.0.1"},
		{"xroot://127.0.0.1:1094//", "root://127.0.0.1:9//f", "root://127.0.0.1"},
		{"XROOTS://LocalHost.", "roots://localhost:1094/f", "roots://localhost"},
		{"roots://localhost:1095", "xroots://LOCALHOST/f", "roots://localhost"},
		{"davs://localhost:443/", "https://LocalHost.:8443/f", "https://localhost"},
		{"dav://[0:0:0:0:0:0:0:1]:80", "http://[::1]:9/f", "http://::1"},
		{"http://127.0.0.1", "http://[::ffff:127.0.0.1]:8/f", "http://127.0.0.1"},
	} {
		body := fmt.Sprintf(`{"files":[{"sources":[%q],"destinations":["http://127.0.0.2:9/f"]}]}`, c.source)
		var affected []string
		if status := root.ask("POST", "/ban/se", fmt.Sprintf(`{"storage":%q}`, c.banned), &affected); status != http.StatusOK {
			t.Errorf("%s: %d", c.banned, status)
		}
		var bans []fts.BanAnswer
		if status := root.ask("GET", "/ban/se", "", &bans); status != http.StatusOK || len(bans) != 1 || bans[0].SE != c.listed {
			t.Errorf("%s: %d %+v", c.banned, status, bans)
		}
		var no struct{ Message string }
		if status := u.ask("POST", "/jobs", body, &no); status != http.StatusForbidden ||
			!strings.Contains(no.Message, c.listed+" is banned") {
			t.Errorf("%s: %d %+v", c.banned, status, no)
		}
		root.gone("DELETE", "/ban/se?storage="+url.QueryEscape(c.listed))
		id := u.submit(body)
		var listed []ftsJob
		if status := u.ask("GET", "/jobs?source_se="+url.QueryEscape(c.banned), "", &listed); status != http.StatusOK ||
			!slices.ContainsFunc(listed, func(j ftsJob) bool { return j.ID == id }) {
			t.Errorf("%s: %d %+v", c.banned, status, listed)
		}
	}
	for _, name := range []string{"gsiftp://se.example.org", "root:", "root://", "127.0.0.1", "root://u@se.example.org",
		"root://se.example.org//x", "root://se.example.org?x", "root://[::1", "root://se:x"} {
		var no struct{ Message string }
		status := root.ask("POST", "/ban/se", fmt.Sprintf(`{"storage":%q}`, name), &no)
		if status != http.StatusBadRequest || !strings.Contains(no.Message, "root://se.example.org") {
			t.Errorf("%s: %d %+v", name, status, no)
		}
	}
}

// A banned user is refused, and this user's jobs are cancelled.
func TestFTSBanUser(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback})
	u, root := h.ftsUser("alice", access.MaySubmit), h.ftsUser("root", access.MayAdmin)
	id := u.submit(`{"files":[{"sources":["http://127.0.0.1:9/a"],"destinations":["http://127.0.0.1:9/b"]}]}`)
	var no struct{ Status, Message string }
	if status := root.ask("POST", "/ban/dn", `{"user_dn":"root"}`, &no); status != http.StatusConflict {
		t.Errorf("%d %+v", status, no)
	}
	var affected []string
	status := root.ask("POST", "/ban/dn", `{"user_dn":"alice"}`, &affected)
	if status != http.StatusOK || len(affected) != 1 || affected[0] != id {
		t.Errorf("%d %q", status, affected)
	}
	status = u.ask("GET", "/whoami", "", &no)
	if status != http.StatusForbidden || !strings.HasPrefix(no.Message, "The user has been banned") {
		t.Errorf("%d %+v", status, no)
	}
	if j := root.ended(id); j.State != fts.Canceled || j.Reason != "User banned" {
		t.Errorf("%+v", j)
	}
	if status := root.ask("DELETE", "/ban/dn?user_dn=alice", "", nil); status != http.StatusNoContent {
		t.Errorf("%d", status)
	}
	var who fts.User
	if status := u.ask("GET", "/whoami", "", &who); status != http.StatusOK || who.UserDN != "alice" {
		t.Errorf("%d %+v", status, who)
	}
}
