package coordinator

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab/labtest"
	"weir/transfer/access"
	"weir/transfer/fts"
)

// FTS's command removes files and verifies each removal. A missing file is not a failure, and a
// folder is not removed.
func TestFTSDelete(t *testing.T) {
	t.Parallel()
	bin := labtest.FTS(t)
	p := startFTS(t, "")
	u := p.ftsUser("alice", access.MaySubmit)
	for _, name := range []string{"h/a", "h/b c", "h/d/inside", "h/stays"} {
		p.put(p.x, name, []byte(name))
	}
	at := p.x.URLs["https"] + "/h/"
	list := filepath.Join(t.TempDir(), "list")
	text := at + "a\n" + davs(at) + "b%20c\n" + at + "none\n\n" + at + "a\n"
	require.NoError(t, os.WriteFile(list, []byte(text), 0o600))
	out, err := p.ftsCommand(bin, []string{"--fts-access-token", u.raw}, "fts-rest-delete-submit", "-b", "-i", "1", "-f", list)
	if err != nil || !strings.Contains(out, "Job finished with state FINISHED") {
		t.Fatalf("%v\n%s", err, out)
	}
	_, id, _ := strings.Cut(out, "Job id: ")
	id, _, _ = strings.Cut(id, "\n")
	var files []fts.DeletionAnswer
	if status := u.ask("GET", "/jobs/"+id+"/dm", "", &files); status != http.StatusOK || len(files) != 3 {
		t.Fatalf("%d %+v", status, files)
	}
	for _, f := range files {
		if f.State != fts.Finished || f.Reason != nil || f.Ended == nil {
			t.Errorf("%+v", f)
		}
	}
	var none []ftsFile
	if status := u.ask("GET", "/jobs/"+id+"/files", "", &none); status != http.StatusOK || len(none) != 0 {
		t.Errorf("%d %+v", status, none)
	}
	left := func(name string) bool {
		_, err := os.Stat(filepath.Join(p.x.Data, "h", name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	if left("a") || left("b c") || !left("stays") {
		t.Errorf("a %v, b c %v, stays %v", left("a"), left("b c"), left("stays"))
	}
	id = u.submit(fmt.Sprintf(`{"delete":[%q,{"surl":%q,"metadata":{"n":1}}]}`, at+"d", at+"a"))
	if j := u.ended(id); j.State != fts.FinishedDirty {
		t.Errorf("%+v", j)
	}
	files = nil
	if status := u.ask("GET", "/jobs/"+id+"/dm", "", &files); status != http.StatusOK || len(files) != 2 ||
		files[0].State != fts.Failed || !strings.Contains(*files[0].Reason, "it is a folder") || string(files[1].Metadata) != `{"n":1}` {
		t.Errorf("%d %+v", status, files)
	}
	if !left("d/inside") {
		t.Error("a file in the folder was removed")
	}
	var no struct{ Message string }
	for _, body := range []string{`{"delete":[7]}`, `{"delete":"x"}`, `{"delete":[""]}`, `{"delete":["root://a//b"]}`,
		`{"delete":["https://a/b/"]}`,
		`{"delete":["https://a/b"],"files":[{}]}`, `{"delete":[{"surl":"http://a/b","token":"x"}]}`, `{"delete":[{"surl":"http://a/b","x":1}]}`} {
		if status := u.ask("POST", "/jobs", body, &no); status != http.StatusBadRequest || no.Message == "" {
			t.Errorf("%s: %d %+v", body, status, no)
		}
	}
	id = u.submit(`{"delete":["http://127.0.0.1:9/x"]}`)
	var j ftsJob
	if status := u.ask("DELETE", "/jobs/"+id, "", &j); status != http.StatusOK || j.State != fts.Canceled {
		t.Errorf("%d %+v", status, j)
	}
}

// If an endpoint requires a token for a removal, it receives the token of the file and no other
// token.
func TestFTSDeleteToken(t *testing.T) {
	t.Parallel()
	p := startFTS(t, "ztn")
	u := p.ftsUser("alice", access.MaySubmit)
	p.put(p.x, "i/a", []byte("a"))
	p.put(p.x, "i/b", []byte("b"))
	raw, err := p.x.Token(time.Hour, "storage.modify:/ storage.read:/")
	require.NoError(t, err)
	at := p.x.URLs["https"] + "/i/"
	id := u.submit(fmt.Sprintf(`{"delete":[{"surl":%q,"token":%q},%q],"params":{"retry":-1}}`, at+"a", raw, at+"b"))
	if j := u.ended(id); j.State != fts.FinishedDirty {
		t.Errorf("%+v", j)
	}
	for name, want := range map[string]bool{"a": false, "b": true} {
		if _, err := os.Stat(filepath.Join(p.x.Data, "i", name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// strict_copy copies without checking checksums or the destination; a wrong size fails the file.
// retry_delay is the pause between two attempts.
func TestFTSStrictCopyAndRetryDelay(t *testing.T) {
	t.Parallel()
	p := startFTS(t, "")
	u := p.ftsUser("alice", access.MaySubmit)
	data := []byte(strings.Repeat("strict\n", 1000))
	p.put(p.x, "k/a", data)
	p.put(p.y, "k/other", []byte("another file"))
	p.put(p.x, "k/other", data)
	sum := `,"checksum":"ADLER32:00000001"`
	id := u.submit(`{"files":[` + p.pair("k/a", sum) + "," + p.pair("k/other", "") + `],"params":{"strict_copy":true,"verify_checksum":"both",
		"retry":-1}}`)
	j := u.ended(id)
	if j.State != fts.FinishedDirty || j.Files[0].State != fts.Finished || !strings.Contains(j.Files[1].Reason, "overwrite is not enabled") {
		t.Errorf("%+v", j)
	}
	if got, err := os.ReadFile(filepath.Join(p.y.Data, "k/a")); err != nil || string(got) != string(data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	id = u.submit(`{"files":[` + p.pair("k/a", `,"filesize":5`) + `],"params":{"strict_copy":true,"overwrite":true,"retry":-1}}`)
	if j := u.ended(id); j.State != fts.Failed {
		t.Errorf("%+v", j)
	}

	p.put(p.x, "k/delayed", data)
	began := time.Now()
	// The server's user has no write permission in the destination folder.
	folder := filepath.Join(p.y.Data, "locked")
	require.NoError(t, errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(filepath.Join(folder, "x"), nil, 0o600)))
	id = u.submit(fmt.Sprintf(`{"files":[{"sources":[%q],"destinations":[%q]}],"params":{"retry":1,"retry_delay":2}}`,
		p.x.URLs["https"]+"/k/delayed", p.y.URLs["https"]+"/locked/delayed"))
	if j := u.ended(id); j.State != fts.Failed || time.Since(began) < 2*time.Second {
		t.Errorf("%v: %+v", time.Since(began), j)
	}
	var job map[string]any
	if status := u.ask("GET", "/jobs/"+id, "", &job); status != http.StatusOK || job["retry_delay"] != 2.0 {
		t.Errorf("%d %+v", status, job)
	}
}
