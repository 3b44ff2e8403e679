package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tpc"
	"weir/internal/wire"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer/access"
	"weir/transfer/fts"
	"weir/transfer/fts/rest"
	"weir/transfer/state"
)

// A ftsUser is a client of the API of FTS.
type ftsUser struct {
	h    *service
	raw  string
	http *http.Client
}

func (h *service) ftsUser(name string, roles ...string) *ftsUser {
	h.T.Helper()
	to := &http.Transport{TLSClientConfig: wire.Pinned(h.Pin())}
	h.T.Cleanup(to.CloseIdleConnections)
	return &ftsUser{h, h.NewToken(name, roles...), &http.Client{Transport: to}}
}

// ask sends a request, decodes the body of the response into out and returns the status.
func (u *ftsUser) ask(method, path, body string, out any) int {
	u.h.T.Helper()
	req, err := http.NewRequestWithContext(u.h.T.Context(), method, u.h.URL()+rest.Path+path, strings.NewReader(body))
	if err != nil {
		u.h.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+u.raw)
	res, err := u.http.Do(req)
	if err != nil {
		u.h.T.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		u.h.T.Fatal(err)
	}
	if err := json.Unmarshal(text, out); err != nil && out != nil {
		u.h.T.Fatalf("%s %s: %d %s: %v", method, path, res.StatusCode, text, err)
	}
	return res.StatusCode
}

// An ftsJob is a job in the format that FTS's clients receive.
type ftsJob struct {
	ID      string         `json:"job_id"`
	State   string         `json:"job_state"`
	Type    string         `json:"job_type"`
	Status  string         `json:"http_status"`
	Message string         `json:"http_message"`
	Reason  string         `json:"reason"`
	Ended   string         `json:"job_finished"`
	Meta    map[string]any `json:"job_metadata"`
	Files   []ftsFile      `json:"files"`
	Prio    int            `json:"priority"`
}

type ftsFile struct {
	ID     int64          `json:"file_id"`
	Index  int            `json:"file_index"`
	State  string         `json:"file_state"`
	Source string         `json:"source_surl"`
	Dest   string         `json:"dest_surl"`
	Reason string         `json:"reason"`
	Start  string         `json:"start_time"`
	Finish string         `json:"finish_time"`
	Size   int64          `json:"filesize"`
	Meta   map[string]any `json:"file_metadata"`
}

func (u *ftsUser) submit(body string) string {
	u.h.T.Helper()
	var out struct {
		ID      string `json:"job_id"`
		Message string `json:"message"`
	}
	if status := u.ask("POST", "/jobs", body, &out); status != http.StatusOK || len(out.ID) != 36 {
		u.h.T.Fatalf("%d %+v", status, out)
	}
	return out.ID
}

// ended waits for the end of a job.
func (u *ftsUser) ended(id string) (j ftsJob) {
	u.h.T.Helper()
	until(u.h.T, "the job ends", func() bool {
		j = ftsJob{}
		path := "/jobs/" + id + "?files=file_id,file_index,file_state,dest_surl,finish_time,start_time,staging_start,staging_finished,reason," +
			"source_surl,file_metadata,filesize"
		if status := u.ask("GET", path, "", &j); status != http.StatusOK || j.Status != "200 Ok" {
			u.h.T.Fatalf("%d %+v", status, j)
		}
		return j.Ended != ""
	})
	return j
}

// A ftsPair is a coordinator with two real servers that copy from each other.
type ftsPair struct {
	*service
	x, y *lab.System
}

func startFTS(t *testing.T, auth string, more ...func(*Config)) *ftsPair {
	t.Helper()
	x := labtest.Start(t, lab.XRootDConfig{Copies: true, Auth: auth})
	y := labtest.Start(t, lab.XRootDConfig{Copies: true, Auth: auth, Authority: x})
	conf := Config{Approve: -1, SiteCA: x.CAFile, JobArea: tpc.Loopback}
	for _, set := range more {
		set(&conf)
	}
	return &ftsPair{start(t, conf), x, y}
}

// fileTokens returns a token to read at x, a token to write at y, and an invalid token of x.
func (p *ftsPair) fileTokens() (read, write, wrong string) {
	p.T.Helper()
	read, err1 := p.x.Token(time.Hour, "storage.read:/")
	write, err2 := p.y.Token(time.Hour, "storage.modify:/ storage.read:/")
	wrong, err3 := p.x.BrokenToken()
	if err := errors.Join(err1, err2, err3); err != nil {
		p.T.Fatal(err)
	}
	return read, write, wrong
}

// put writes a file into the folder of a server.
func (p *ftsPair) put(s *lab.System, name string, data []byte) {
	p.T.Helper()
	path := filepath.Join(s.Data, name)
	// the server's user writes to the folder as well
	dir := filepath.Dir(path)
	require.NoError(p.T, errors.Join(os.MkdirAll(dir, 0o777), os.Chmod(dir, 0o777)))
	writeOwned(p.T, path, data)
}

// writeOwned writes a file that the server's user may write, so that XRootD stores its checksum in an attribute, as a server does with
// its own files. Otherwise it computes the checksum for each request, and after two requests at a time it may never respond to
// requests for one of the files again (XrdOucTable::Remove loses running jobs).
func writeOwned(t testing.TB, path string, data []byte) {
	t.Helper()
	require.NoError(t, errors.Join(os.WriteFile(path, data, 0o644), os.Chmod(path, 0o666)))
}

func adlerOf(data []byte) string { return fmt.Sprintf("%08x", adler32.Checksum(data)) }

// pair returns a file of a submission, with more as further fields.
func (p *ftsPair) pair(name string, more string) string {
	return fmt.Sprintf(`{"sources":[%q],"destinations":[%q]%s}`, davs(p.x.URLs["https"])+"/"+name, p.y.URLs["https"]+"/"+name, more)
}

func davs(url string) string { return "davs" + strings.TrimPrefix(url, "https") }

// The files of a job are copied between two real servers that nobody has registered. The job has
// the form of Rucio's jobs, with a missing source, a corrupt source, a destination that exists, an
// unknown size, and a second source.
func TestFTSJob(t *testing.T) {
	t.Parallel()
	p := startFTS(t, "")
	u := p.ftsUser("rucio", access.MaySubmit)
	data := map[string][]byte{}
	for _, name := range []string{"f0", "unsized", "corrupt", "taken", "replaced", "second"} {
		data[name] = bytes.Repeat([]byte(name+"\n"), 20_000)
		p.put(p.x, "a/"+name, data[name])
	}
	p.put(p.x, "a/corrupt", make([]byte, len(data["corrupt"])))
	p.put(p.y, "a/taken", []byte("another file"))
	more := func(name string) string {
		return fmt.Sprintf(`,"filesize":%d,"checksum":"ADLER32:%s","activity":"User Subscriptions","metadata":{"request_id":%q}`, len(data[name]),
			adlerOf(data[name]), name)
	}
	second := fmt.Sprintf(`{"sources":[%q,%q],"destinations":[%q],"selection_strategy":"orderly"%s}`, p.y.URLs["https"]+"/a/none",
		p.x.URLs["https"]+"/a/second", p.y.URLs["https"]+"/a/second", more("second"))
	params := `"params":{"account":"root","verify_checksum":"both","copy_pin_lifetime":null,"bring_online":null,
		"job_metadata":{"issuer":"rucio"},
		"overwrite":%v,"overwrite_when_only_on_disk":false,"priority":4,"s3alternate":true,"max_time_in_queue":168,"timeout":600,
		"dst_file_report":true}`
	id := u.submit(`{"files":[` + strings.Join([]string{p.pair("a/f0", more("f0")), p.pair("a/unsized", ""),
		p.pair("a/corrupt", more("corrupt")),
		p.pair("a/taken", more("taken")), p.pair("a/missing", more("f0")), second}, ",") + `],` + fmt.Sprintf(params, false) + `}`)
	j := u.ended(id)
	if j.State != "FINISHEDDIRTY" || j.Type != "R" || j.Prio != 4 || j.Meta["issuer"] != "rucio" || len(j.Files) != 7 {
		t.Errorf("%+v", j)
	}
	want := []struct{ name, state, reason string }{
		{"f0", "FINISHED", ""}, {"unsized", "FINISHED", ""}, {"corrupt", "FAILED", "SOURCE CHECKSUM MISMATCH"},
		{"taken", "FAILED", "Destination file exists and overwrite is not enabled"}, {"missing", "FAILED", "SOURCE [2]"},
		{"second", "FAILED", "does not have the file"}, {"second", "FINISHED", ""},
	}
	for i, f := range j.Files {
		w := want[min(i, len(want)-1)]
		if f.State != w.state || !strings.Contains(f.Reason, w.reason) || (f.Reason == "") != (w.reason == "") {
			t.Errorf("%s: %+v", w.name, f)
		}
		if f.State == "FINISHED" {
			got, err := os.ReadFile(filepath.Join(p.y.Data, "a", w.name))
			if err != nil || !bytes.Equal(got, data[w.name]) || f.Size != int64(len(got)) {
				t.Errorf("%s: %d bytes, %v: %+v", w.name, len(got), err, f)
			}
			if _, err := time.Parse("2006-01-02T15:04:05", f.Finish); err != nil || f.Start == "" {
				t.Errorf("times of %s: %q to %q", w.name, f.Start, f.Finish)
			}
		}
	}
	if j.Files[0].Meta["request_id"] != "f0" || !strings.HasPrefix(j.Files[0].Source, "davs://") {
		t.Errorf("not as it was submitted: %+v", j.Files[0])
	}
	there, _ := j.Files[3].Meta["dst_file"].(map[string]any)
	if there["file_size"] != 12.0 || there["checksum_type"] != "ADLER32" || there["checksum_value"] != adlerOf([]byte("another file")) ||
		j.Files[3].Meta["request_id"] != "taken" || j.Files[0].Meta["dst_file"] != nil {
		t.Errorf("what is in the way: %+v", j.Files[3].Meta)
	}
	var retries []struct {
		Reason string `json:"reason"`
	}
	if status := u.ask("GET", fmt.Sprintf("/jobs/%s/files/%d/retries", id, j.Files[4].ID), "", &retries); status != http.StatusOK ||
		len(retries) == 0 || !strings.Contains(retries[0].Reason, "SOURCE") {
		t.Errorf("%d %+v", status, retries)
	}

	// overwrite replaces another file, after the new file was verified.
	id = u.submit(`{"files":[` + p.pair("a/taken", more("taken")) + `],` + fmt.Sprintf(params, true) + `}`)
	if j := u.ended(id); j.State != "FINISHED" {
		t.Errorf("%+v", j)
	}
	if got, err := os.ReadFile(filepath.Join(p.y.Data, "a/taken")); err != nil || !bytes.Equal(got, data["taken"]) {
		t.Errorf("not replaced: %d bytes, %v", len(got), err)
	}
	if left, err := filepath.Glob(filepath.Join(p.y.Data, "a", ".weir*")); err != nil || len(left) > 0 {
		t.Errorf("temporaries are left: %v, %v", left, err)
	}

	// A list may contain unknown jobs.
	var list []ftsJob
	if status := u.ask("GET", "//jobs/"+id+",00000000-0000-0000-0000-000000000000", "", &list); status != http.StatusMultiStatus ||
		len(list) != 2 || list[0].Status != "200 Ok" || list[1].Status != "404 Not Found" {
		t.Errorf("%d %+v", status, list)
	}
	var one ftsJob
	if status := u.ask("DELETE", "/jobs/"+id, "", &one); status != http.StatusOK || one.Status != "304 Not Modified" ||
		one.State != "FINISHED" {
		t.Errorf("%d %+v", status, one)
	}
}

// Jobs wait for endpoints that do not respond, can be cancelled, have the id that the client chose,
// and survive a restart of the coordinator.
func TestFTSWaitingJob(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback})
	u, other := h.ftsUser("rucio", access.MaySubmit), h.ftsUser("somebody", access.MaySubmit)
	closed := "http://127.0.0.1:9" // the discard port: nothing listens there
	body := fmt.Sprintf(`{"files":[{"sources":["%s/a"],"destinations":["%s/b"],"filesize":10}],
		"params":{"id_generator":"deterministic","sid":"s1"}}`,
		closed, closed)
	var who struct {
		Base string   `json:"base_id"`
		VOs  []string `json:"vos"`
		DN   []string `json:"dn"`
	}
	if status := u.ask("GET", "/whoami", "", &who); status != http.StatusOK || who.DN[0] != "rucio" || who.Base != fts.BaseID ||
		len(who.VOs) != 1 {
		t.Errorf("%d %+v", status, who)
	}
	id := u.submit(body)
	if want := fts.DeterministicID(who.VOs[0], "s1"); id != want {
		t.Errorf("id %s instead of %s", id, want)
	}
	var no struct{ Status, Message string }
	if status := u.ask("POST", "/jobs", body, &no); status != http.StatusConflict || no.Status != "409 Conflict" {
		t.Errorf("%d %+v", status, no)
	}
	var jobs []ftsJob
	if status := u.ask("GET", "/jobs", "", &jobs); status != http.StatusOK || len(jobs) != 1 || jobs[0].ID != id {
		t.Errorf("%d %+v", status, jobs)
	}
	if status := other.ask("GET", "/jobs?state_in=SUBMITTED,ACTIVE", "", &jobs); status != http.StatusOK || len(jobs) != 0 {
		t.Errorf("%d %+v", status, jobs)
	}
	var refused struct{ Message string }
	if status := other.ask("GET", "/jobs?user_dn=rucio", "", &refused); status != http.StatusForbidden {
		t.Errorf("%d %+v", status, refused)
	}
	var j ftsJob
	if status := other.ask("DELETE", "/jobs/"+id, "", &j); status != http.StatusForbidden {
		t.Errorf("%d %+v", status, j)
	}
	var changed []struct {
		Prio int `json:"priority"`
	}
	if status := u.ask("POST", "/jobs/"+id, `{"params":{"priority":5}}`, &j); status != http.StatusOK || j.Prio != 5 ||
		u.ask("GET", "/jobs/"+id+"/files", "", &changed) != http.StatusOK || changed[0].Prio != 5 {
		t.Errorf("%d %+v", status, j)
	}
	h.End()
	u.http.CloseIdleConnections() // the client does not repeat a DELETE
	h.Begin()
	if status := u.ask("DELETE", "/jobs/"+id, "", &j); status != http.StatusOK || j.State != "CANCELED" {
		t.Errorf("%d %+v", status, j)
	}
	if j := u.ended(id); j.State != "CANCELED" || j.Files[0].State != "CANCELED" || j.Reason == "" {
		t.Errorf("%+v", j)
	}
}

// Unsupported and invalid submissions are refused with a reason.
func TestFTSRefusals(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1, JobArea: tpc.Public})
	u := h.ftsUser("rucio", access.MaySubmit)
	file := `{"sources":["https://a.example.org/f"],"destinations":["https://b.example.org/f"]%s}`
	pair := func(s, d string) string { return fmt.Sprintf(`{"files":[{"sources":[%q],"destinations":[%q]}]}`, s, d) }
	params := func(p string) string { return `{"files":[` + fmt.Sprintf(file, "") + `],"params":{` + p + `}}` }
	good := "https://b.example.org/f"
	for _, c := range []struct {
		body   string
		status int
		word   string
	}{
		{`{`, 400, "Badly formatted JSON"}, {`{}`, 400, "No transfers"}, {`{"files":[{}]}`, 400, "sources"}, {`[]`, 400, "JSON"},
		{`{"files":[` + fmt.Sprintf(file, `,"hops":3`) + `]}`, 400, "hops"},
		{`{"files":[` + fmt.Sprintf(file, "") + "," + fmt.Sprintf(file, "") + `]}`, 409, "duplicated"},
		{`{"files":[` + fmt.Sprintf(file, `,"checksum":"SHA1:da39a3ee5e6b4b0d3255bfef95601890afd80709"`) + `]}`, 400, "SHA256"},
		{`{"files":[` + fmt.Sprintf(file, `,"checksum":"MD5"`) + `]}`, 400, "MD5:VALUE"},
		{`{"files":[` + fmt.Sprintf(file, `,"checksum":"MD5:d41d8cd98f00b204"`) + `]}`, 400, "32 hex"},
		{`{"files":[` + fmt.Sprintf(file, `,"checksum":"ADLER32:xyz"`) + `]}`, 400, "hex"},
		{`{"files":[` + fmt.Sprintf(file, `,"filesize":-1`) + `]}`, 400, "filesize"},
		{`{"files":[` + fmt.Sprintf(file, `,"selection_strategy":"best"`) + `]}`, 400, "not supported"},
		{`{"files":[` + fmt.Sprintf(file, `,"source_tokens":["secret-token"]`) + `]}`, 400, "Both source_tokens"},
		{params(`"bring_online":"soon"`), 400, "bring_online"}, {params(`"archive_timeout":{}`), 400, "archive_timeout"},
		{params(`"fail_nearline":true`), 400, "tape"}, {params(`"overwrite_hop":true`), 400, "requires multihop"},
		{params(`"overwrite_hop":true,"multihop":true,"overwrite":true`), 400, "Incompatible"},
		{params(`"strict_copy":[]`), 400, "strict_copy"}, {params(`"retry_delay":"soon"`), 400, "retry_delay"},
		{params(`"gridftp":"nostreams:5"`), 400, "GridFTP"},
		{params(`"verify_checksum":"perhaps"`), 400, "verify_checksum"}, {params(`"nonsense":1`), 400, "nonsense"},
		{params(`"overwrite":true,"overwrite_on_retry":true`), 400, "Incompatible"}, {params(`"sid":"x"`), 400, "id_generator"},
		{params(`"max_time_in_queue":"soon"`), 400, "max_time_in_queue"},
		{pair("gsiftp://a.example.org//f", good), 400, "scheme gsiftp"}, {pair("root://127.0.0.1//f", good), 400, "this machine"},
		{pair("file:///etc/passwd", good), 400, "local files"},
		{pair("https://a.example.org", good), 400, "path"}, {pair("https://user:secret-token@a.example.org/f", good), 400, "user"},
		{pair("https://a.example.org/x/../f", good), 400, ".."}, {pair("https://a.example.org/f?authz=secret-token", good), 400, "?"},
		{pair("http://127.0.0.1:80/f", good), 400, "this machine"}, {pair("http://169.254.169.254/latest/meta-data", good), 400, "this machine"},
		{pair("https://[::1]/f", good), 400, "this machine"}, {pair("https://10.0.0.1/f", good), 400, "private"},
		{pair(good, good), 400, "same source and destination"},
	} {
		var out struct{ Status, Message string }
		if status := u.ask("POST", "/jobs", c.body, &out); status != c.status || !strings.Contains(out.Message, c.word) ||
			strings.Contains(out.Message, "secret") || !strings.HasPrefix(out.Status, fmt.Sprint(c.status)) {
			t.Errorf("%s: %d %+v", c.body, status, out)
		}
	}
	var out struct{ Message string }
	if status := h.ftsUser("reader", access.MayRead).ask("POST", "/jobs", params(""), &out); status != http.StatusForbidden {
		t.Errorf("%d %+v", status, out)
	}
	if status := u.ask("GET", "/nothing", "", &out); status != http.StatusNotFound || out.Message == "" {
		t.Errorf("%d %+v", status, out)
	}
}

// Each file has a token for its source and a token for its destination, which servers that require
// tokens accept. A wrong token fails only its own file, and the database contains no token in plain
// text.
func TestFTSTokens(t *testing.T) {
	t.Parallel()
	p := startFTS(t, "ztn")
	u := p.ftsUser("rucio", access.MaySubmit)
	data := bytes.Repeat([]byte("with tokens\n"), 10_000)
	p.put(p.x, "c/f", data)
	p.put(p.x, "c/g", data)
	read, write, wrong := p.fileTokens()
	tokens := func(source string) string {
		return fmt.Sprintf(`,"filesize":%d,"checksum":"ADLER32:%s","source_tokens":[%q],"destination_tokens":[%q]`, len(data),
			adlerOf(data), source, write)
	}
	id := u.submit(`{"files":[` + p.pair("c/f", tokens(read)) + "," + p.pair("c/g", tokens(wrong)) +
		`],"params":{"verify_checksum":"both","retry":-1}}`)
	j := u.ended(id)
	if j.State != "FINISHEDDIRTY" || j.Files[0].State != "FINISHED" || j.Files[1].State != "FAILED" ||
		!strings.Contains(j.Files[1].Reason, "Permission denied") {
		t.Errorf("%+v", j)
	}
	if got, err := os.ReadFile(filepath.Join(p.y.Data, "c/f")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	p.End()
	for _, name := range []string{state.TableFile, state.TableFile + "-wal"} {
		text, err := os.ReadFile(filepath.Join(p.conf.State, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, secret := range []string{read, write, wrong} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s has a token in clear", name)
			}
		}
	}
}

// ftsCommand runs a command of FTS's client.
func (h *service) ftsCommand(bin string, identity []string, name string, args ...string) (string, error) {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(h.T.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(bin, "python3"), slices.Concat([]string{filepath.Join(bin, name), "-s", h.URL() + rest.Path,
		"--insecure"}, identity, args)...)
	c.Env = append(os.Environ(), "HOME="+h.T.TempDir(), "PYTHONWARNINGS=ignore")
	out, err := c.CombinedOutput()
	return string(out), err
}

// FTS's own commands submit, wait for, show, list and cancel jobs.
func TestFTSClient(t *testing.T) {
	t.Parallel()
	bin := labtest.FTS(t)
	x := labtest.Start(t, lab.XRootDConfig{Copies: true, Users: true})
	y := labtest.Start(t, lab.XRootDConfig{Copies: true, Users: true, Authority: x})
	p := &ftsPair{start(t, Config{Approve: -1, SiteCA: x.CAFile, CA: x.CAFile, JobArea: tpc.Loopback,
		Names: map[string][]string{labUser: {access.MaySubmit}}}), x, y}
	u := p.ftsUser("alice", access.MaySubmit)
	byToken := []string{"--fts-access-token", u.raw}
	run := func(name string, args ...string) (string, error) { return p.ftsCommand(bin, byToken, name, args...) }
	data := bytes.Repeat([]byte("fts client\n"), 10_000)
	p.put(p.x, "b/f", data)
	out, err := run("fts-rest-whoami")
	if err != nil || !strings.Contains(out, "User DN: alice") || !strings.Contains(out, "VO: weir") {
		t.Errorf("%v\n%s", err, out)
	}
	from, to := p.x.URLs["https"]+"/b/f", p.y.URLs["https"]+"/b/f"
	tokens := []string{"--src-access-token", "unused", "--dst-access-token", "unused"}
	out, err = run("fts-rest-transfer-submit", append(tokens, "-b", "-i", "1", "--compare-checksum", "--file-metadata", "first",
		from, to, "ADLER32:"+adlerOf(data))...)
	if err != nil || !strings.Contains(out, "Job finished with state FINISHED") {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, err := os.ReadFile(filepath.Join(p.y.Data, "b/f")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_, id, _ := strings.Cut(out, "Job id: ")
	id, _, _ = strings.Cut(id, "\n")
	out, err = run("fts-rest-transfer-status", "-j", strings.TrimSpace(id))
	var j ftsJob
	if _, text, found := strings.Cut(out, "{"); err != nil || !found || json.Unmarshal([]byte("{"+text), &j) != nil || j.State != "FINISHED" ||
		len(j.Files) != 1 || j.Files[0].State != "FINISHED" || j.Files[0].Meta["label"] != "first" {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = run("fts-rest-transfer-submit", append(tokens, "--fail-nearline", from, to)...)
	if err == nil || !strings.Contains(out, "weir does not decide by what is on tape") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = run("fts-rest-transfer-submit", append(tokens, "https://127.0.0.1:9/a", "https://127.0.0.1:9/b")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, id, _ = strings.Cut(out, "Job id: ")
	id, _, _ = strings.Cut(id, "\n")
	if out, err = run("fts-rest-transfer-list"); err != nil || !strings.Contains(out, id) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = run("fts-rest-transfer-cancel", id); err != nil || !strings.Contains(out, "CANCELED") {
		t.Errorf("%v\n%s", err, out)
	}
	if j := u.ended(id); j.State != "CANCELED" {
		t.Errorf("%+v", j)
	}
	if out, err = run("fts-rest-server-status"); err != nil || !strings.Contains(out, "active: ") {
		t.Errorf("%v\n%s", err, out)
	}

	// With a certificate the client delegates a proxy before it submits.
	p.put(p.x, "b/g", data)
	out, err = p.ftsCommand(bin, []string{"--cert", x.UserCert, "--key", x.UserKey}, "fts-rest-transfer-submit", "-b", "-i", "1",
		p.x.URLs["https"]+"/b/g", p.y.URLs["https"]+"/b/g")
	if err != nil || !strings.Contains(out, "Job finished with state FINISHED") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The URLs below a site that an administrator has added belong to this site. Each other endpoint
// becomes a site of its own, once.
func TestFTSSites(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback})
	h.addSite("cern", "http://127.0.0.1:9/eos")
	sites := h.registry.URLs()
	of := func(text, wantSite, wantPath string) {
		t.Helper()
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		site, path, err := sites.Of(t.Context(), u)
		if err != nil || site != wantSite || path != wantPath {
			t.Errorf("%s: %q at %q, %v", text, path, site, err)
		}
	}
	of("http://127.0.0.1:9/eos/x/y", "cern", "x/y")
	of("http://127.0.0.1:9//eosx/y", "127.0.0.1-9", "eosx/y")
	of("http://127.0.0.1:9/eos/z", "cern", "z")
	of("http://[::1]:80/z", "1-80", "z")
	of("http://[::1]/z", "1-80", "z")
	h.addSite("mine", "http://[::1]")
	sites = h.registry.URLs()
	of("http://[::1]:80/z", "mine", "z")
	all, err := h.Client.Sites(t.Context())
	if err != nil || len(all) != 4 {
		t.Errorf("%+v, %v", all, err)
	}
}
