package coordinator

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer/access"
	"weir/transfer/fts"
)

// A multihop job copies a file from hop to hop and verifies each copy. It removes only the
// intermediate copies that it made. FTS's command submits the job.
func TestFTSMultihop(t *testing.T) {
	t.Parallel()
	bin := labtest.FTS(t)
	p := startFTS(t, "")
	u := p.ftsUser("alice", access.MaySubmit)
	data := bytes.Repeat([]byte("hop\n"), 20_000)
	p.put(p.x, "q/f", data)
	x, y := p.x.URLs["https"], p.y.URLs["https"]
	hops := func(urls ...string) string {
		var files []string
		for i := range urls[1:] {
			files = append(files, fmt.Sprintf(`{"sources":[%q],"destinations":[%q],"checksum":"ADLER32:%s","source_tokens":["unused"],
				"destination_tokens":["unused"]}`, urls[i], urls[i+1], adlerOf(data)))
		}
		return `{"files":[` + strings.Join(files, ",") + `]`
	}
	there := func(s *lab.System, name string) bool {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(s.Data, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil && bytes.Equal(got, data)
	}
	bulk := filepath.Join(t.TempDir(), "bulk.json")
	require.NoError(t, os.WriteFile(bulk, []byte(hops(x+"/q/f", y+"/q/way", x+"/q/way2", y+"/q/end")+"}"), 0o600))
	out, err := p.ftsCommand(bin, []string{"--fts-access-token", u.raw}, "fts-rest-transfer-submit", "-b", "-i", "1", "--multi-hop",
		"--compare-checksum", "-f", bulk)
	if err != nil || !strings.Contains(out, "Job finished with state FINISHED") {
		t.Fatalf("%v\n%s", err, out)
	}
	if !there(p.y, "q/end") || there(p.y, "q/way") || there(p.x, "q/way2") || !there(p.x, "q/f") {
		t.Errorf("end %v, way %v, second way %v, source %v", there(p.y, "q/end"), there(p.y, "q/way"), there(p.x, "q/way2"), there(p.x, "q/f"))
	}
	_, id, _ := strings.Cut(out, "Job id: ")
	id, _, _ = strings.Cut(id, "\n")
	var j ftsJob
	if status := u.ask("GET", "/jobs/"+id, "", &j); status != http.StatusOK || j.Type != "H" {
		t.Errorf("%d %+v", status, j)
	}
	var removed []fts.DeletionAnswer
	if status := u.ask("GET", "/jobs/"+id+"/dm", "", &removed); status != http.StatusOK || len(removed) != 2 ||
		removed[0].State != fts.Finished || removed[0].Source != y+"/q/way" {
		t.Errorf("%d %+v", status, removed)
	}

	// Intermediate copies that existed before the job, or that Rucio manages, are kept.
	p.put(p.y, "q/kept", data)
	id = u.submit(hops(x+"/q/f", y+"/q/kept", x+"/q/end2") + `,"params":{"multihop":true}}`)
	if j := u.ended(id); j.State != fts.Finished || !there(p.y, "q/kept") || !there(p.x, "q/end2") {
		t.Errorf("kept %v: %+v", there(p.y, "q/kept"), j)
	}
	id = u.submit(hops(x+"/q/f", y+"/q/rucio", x+"/q/end3") + `,"params":{"multihop":true,"job_metadata":{"issuer":"rucio"}}}`)
	if j := u.ended(id); j.State != fts.Finished || !there(p.y, "q/rucio") || !there(p.x, "q/end3") {
		t.Errorf("kept %v: %+v", there(p.y, "q/rucio"), j)
	}

	// If a hop fails, the hops after it are not used, and the intermediate copies before it are
	// removed.
	p.put(p.y, "q/taken", []byte("another file"))
	id = u.submit(hops(x+"/q/f", y+"/q/way3", x+"/q/way4", y+"/q/taken", x+"/q/never") + `,"params":{"multihop":true,"retry":-1,
		"overwrite_hop":false}}`)
	j = u.ended(id)
	want := []string{fts.Finished, fts.Finished, fts.Failed, fts.NotUsed}
	if got := u.states(id); !slices.Equal(got, want) || j.State != fts.Failed {
		t.Errorf("%q instead of %q: %+v", got, want, j)
	}
	if there(p.y, "q/way3") || there(p.x, "q/way4") || there(p.x, "q/never") {
		t.Errorf("%v %v %v", there(p.y, "q/way3"), there(p.x, "q/way4"), there(p.x, "q/never"))
	}
	// overwrite_hop replaces intermediate copies.
	id = u.submit(hops(x+"/q/f", y+"/q/taken", x+"/q/end4") + `,"params":{"multihop":true,"overwrite_hop":true,"retry":-1}}`)
	if j := u.ended(id); j.State != fts.Finished || !there(p.x, "q/end4") {
		t.Errorf("%+v", j)
	}
	var no struct{ Message string }
	for _, body := range []string{hops(x+"/q/f", y+"/a") + `,"params":{"multihop":true}}`,
		fmt.Sprintf(`{"files":[{"sources":["%s/a"],"destinations":["%s/b"]},{"sources":["%s/c"],"destinations":["%s/d"]}],
			"params":{"multihop":true}}`, x, y, y, x)} {
		want := http.StatusBadRequest
		if strings.Contains(body, "q/f") {
			want = http.StatusOK // a single hop is accepted
		}
		if status := u.ask("POST", "/jobs", body, &no); status != want {
			t.Errorf("%s: %d %+v", body, status, no)
		}
	}
}
