package coordinator

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/tpc"
	"weir/transfer/access"
	"weir/transfer/fts"
	"weir/transfer/fts/rest"
)

// A link has no more concurrent copies than the limit of an administrator, also after a restart.
func TestFTSConfigLink(t *testing.T) {
	t.Parallel()
	p := startFTS(t, "")
	u, root := p.ftsUser("alice", access.MaySubmit), p.ftsUser("root", access.MayAdmin)
	var files []string
	for i := range 5 {
		name := fmt.Sprintf("g/f%d", i)
		p.put(p.x, name, bytes.Repeat([]byte("link\n"), 20_000))
		files = append(files, p.pair(name, ""))
	}
	var link map[string]any
	status := root.ask("POST", "/config/links", `{"symbolicname":"all","source":"*","destination":"*","min_active":1,"max_active":2}`, &link)
	if status != http.StatusCreated || link["max_active"] != 2.0 || link["source"] != "*" {
		t.Errorf("%d %+v", status, link)
	}
	p.End()
	p.Begin()
	for _, one := range []*ftsUser{u, root} {
		one.http.CloseIdleConnections()
	}
	if err := p.x.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	id := u.submit(`{"files":[` + strings.Join(files, ",") + `]}`)
	active := func() (n int) {
		var files []ftsFile
		u.ask("GET", "/jobs/"+id+"/files", "", &files)
		for _, f := range files {
			if f.State == fts.Active {
				n++
			}
		}
		return n
	}
	until(t, "two copies run", func() bool { return active() == 2 })
	until(t, "the limit is the reason", func() bool {
		return strings.Contains(p.explained(), "has the 2 copies at once that an administrator allows")
	})
	if n := active(); n != 2 {
		t.Errorf("%d copies", n)
	}
	var links []map[string]any
	status = root.ask("GET", "/config/links", "", &links)
	if status != http.StatusOK || len(links) != 1 || links[0]["symbolicname"] != "all" {
		t.Errorf("%d %+v", status, links)
	}
	root.gone("DELETE", "/config/links/all")
	until(t, "the others run as well", func() bool { return active() == 5 })
	if err := p.x.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if j := u.ended(id); j.State != fts.Finished {
		t.Errorf("%+v", j)
	}
	var current, evolution []fts.OptimizerAnswer
	if status := u.ask("GET", "/optimizer/current", "", &current); status != http.StatusOK || len(current) != 1 || current[0].Active < 2 ||
		current[0].Why == "" || !strings.HasPrefix(current[0].Source, "https://") {
		t.Errorf("%d %+v", status, current)
	}
	if status := u.ask("GET", "/optimizer/evolution?source_se=none", "", &evolution); status != http.StatusOK || len(evolution) != 0 {
		t.Errorf("%d %+v", status, evolution)
	}
	var old ftsJob
	if status := u.ask("GET", "/archive/"+id, "", &old); status != http.StatusOK || old.ID != id || len(old.Files) != 5 {
		t.Errorf("%d %+v", status, old)
	}
}

// gone sends a request and checks that the response has status 204.
func (u *ftsUser) gone(method, path string) {
	u.h.T.Helper()
	req, err := http.NewRequestWithContext(u.h.T.Context(), method, u.h.URL()+rest.Path+path, http.NoBody)
	if err != nil {
		u.h.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+u.raw)
	res, err := u.http.Do(req)
	if err != nil || res.StatusCode != http.StatusNoContent || res.Body.Close() != nil {
		u.h.T.Errorf("%s %s: %v, %v", method, path, res, err)
	}
}

// Settings are returned as they were set. Invalid settings are refused with a reason.
func TestFTSConfig(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback, Shares: map[string]float64{"Production": 3}})
	u, root := h.ftsUser("alice", access.MaySubmit), h.ftsUser("root", access.MayAdmin)
	var no struct{ Message string }
	for _, c := range []struct{ method, path, body, word string }{
		{"POST", "/config/se", `{`, "Malformed"}, {"POST", "/config/se", `{}`, "Malformed"},
		{"POST", "/config/global", `null`, "Malformed"}, {"POST", "/config/se", `{"x y":{}}`, "storage"},
		{"POST", "/config/se", `{"https://a":{"se_info":{"inbound_max_active":-1}}}`, "inbound_max_active"},
		{"POST", "/config/se", `{"https://a":{"se_info":{"inbound_max_throughput":5}}}`, "not throughput"},
		{"POST", "/config/se", `{"https://a":{"se_info":{"flavor":5}}}`, "flavor"},
		{"POST", "/config/se", `{"https://a":{"operations":{"atlas":{"staging":5}}}}`, "operations"},
		{"DELETE", "/config/se", "", "Missing storage"},
		{"POST", "/config/links", `{}`, "symbolicname"},
		{"POST", "/config/links", `{"symbolicname":"l","min_active":3,"max_active":2}`, "lower"},
		{"POST", "/config/links", `{"symbolicname":"l","source":"here"}`, "storage"}, {"POST", "/config/links", `{"symbolicname":[]}`, "text"},
		{"POST", "/config/links", `{"symbolicname":"l","max_active":"many"}`, "max_active"},
		{"POST", "/config/links", `{"symbolicname":"l","optimizer_mode":2}`, "optimizer_mode"},
		{"POST", "/config/global", `{"vo_name":"atlas","retry":1}`, "vo_name"}, {"POST", "/config/global", `{"retry":100}`, "retry"},
		{"POST", "/config/global", `{"sec_per_mb":3}`, "sec_per_mb"}, {"POST", "/config/global", `[]`, "Malformed"},
		{"POST", "/config/activity_shares", `{"vo":"weir","share":{"a":0}}`, "weights"},
		{"POST", "/config/activity_shares", `{"vo":"atlas","share":{"a":1}}`, "use weir"},
		{"POST", "/config/activity_shares", `{"vo":"weir","share":"a"}`, "JSON object"},
		{"POST", "/config/activity_shares", `{"vo":"weir"}`, "Missing share"},
	} {
		if status := root.ask(c.method, c.path, c.body, &no); status != http.StatusBadRequest || !strings.Contains(no.Message, c.word) {
			t.Errorf("%s: %d %+v", c.body, status, no)
		}
		if status := u.ask(c.method, c.path, c.body, &no); status != http.StatusForbidden {
			t.Errorf("%s %s: %d", c.method, c.path, status)
		}
	}
	if status := root.ask("GET", "/config/links/none", "", &no); status != http.StatusNotFound {
		t.Errorf("%d %+v", status, no)
	}
	var done struct{}
	var list []struct{}
	body := `{"davs://SE.example.org":{"se_info":{"inbound_max_active":5,"outbound_max_active":"7","udt":false,"ipv6":null}}}`
	if status := root.ask("POST", "/config/se", body, &list); status != http.StatusOK {
		t.Errorf("%d", status)
	}
	var elements map[string]map[string]map[string]any
	status := root.ask("GET", "/config/se", "", &elements)
	info := elements["https://se.example.org"]["se_info"]
	if status != http.StatusOK || len(elements) != 1 || info["inbound_max_active"] != 5.0 || info["outbound_max_active"] != 7.0 {
		t.Errorf("%d %+v", status, elements)
	}
	root.gone("DELETE", "/config/se?se=https://se.example.org")
	elements = nil
	if status := root.ask("GET", "/config/se", "", &elements); status != http.StatusOK || len(elements) != 0 {
		t.Errorf("%d %+v", status, elements)
	}

	// Storage elements have several names.
	body = `{"xroots://SE.example.org.:1094/":{"se_info":{"inbound_max_active":5}}}`
	if status := root.ask("POST", "/config/se", body, &list); status != http.StatusOK {
		t.Errorf("%d", status)
	}
	status = root.ask("GET", "/config/se?se=xroots://se.example.org", "", &elements)
	if status != http.StatusOK || elements["roots://se.example.org"]["se_info"]["inbound_max_active"] != 5.0 {
		t.Errorf("%d %+v", status, elements)
	}
	root.gone("DELETE", "/config/se?se=roots://se.example.org:1094")
	var link map[string]any
	body = `{"symbolicname":"l","source":"xroot://SE.example.org","destination":"http://[0::1]:80"}`
	if status := root.ask("POST", "/config/links", body, &link); status != http.StatusCreated || link["source"] != "root://se.example.org" ||
		link["destination"] != "http://::1" {
		t.Errorf("%d %+v", status, link)
	}

	// Global settings are the defaults of jobs.
	if status := root.ask("POST", "/config/global", `{"retry":2,"max_time_queue":3,"global_timeout":60}`, &done); status != http.StatusOK {
		t.Errorf("%d", status)
	}
	var global map[string]map[string]any
	if status := root.ask("GET", "/config/global", "", &global); status != http.StatusOK || global["*"]["retry"] != 2.0 {
		t.Errorf("%d %+v", status, global)
	}
	id := u.submit(`{"files":[{"sources":["http://127.0.0.1:9/a"],"destinations":["http://127.0.0.1:9/b"]}]}`)
	jobs, err := h.queue.Read.Jobs(t.Context(), []string{id})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	part := jobs[0].Parts[0]
	if d := part.Expires.Sub(jobs[0].Made); part.Tries != 3 || d > 3*time.Hour || d < 3*time.Hour-time.Minute {
		t.Errorf("%v: %+v", d, part)
	}

	// The weights of activities are set and reset.
	var shares map[string]fts.Shares
	if status := root.ask("GET", "/config/activity_shares", "", &shares); status != http.StatusOK || shares["weir"].Share["Production"] != 3 {
		t.Errorf("%d %+v", status, shares)
	}
	body = `{"vo":"weir","share":[{"Production":0.5},{"default":0.25}]}`
	if status := root.ask("POST", "/config/activity_shares", body, &done); status != http.StatusOK {
		t.Errorf("%d", status)
	}
	var one fts.Shares
	status = root.ask("GET", "/config/activity_shares/weir", "", &one)
	if status != http.StatusOK || one.Share["default"] != 0.25 || !one.Active {
		t.Errorf("%d %+v", status, one)
	}
	root.gone("DELETE", "/config/activity_shares/weir")
	if status := root.ask("GET", "/config/activity_shares/weir", "", &one); status != http.StatusOK || one.Share["Production"] != 3 {
		t.Errorf("%d %+v", status, one)
	}
}
