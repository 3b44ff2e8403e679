package coordinator

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/transfer/access"
)

// bulk returns a submission of n files, as large as a submission of Rucio.
func bulk(job, n int) string {
	var b strings.Builder
	b.WriteString(`{"files":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"sources":["http://127.0.0.1:9/store/test/%d/f%d"],"destinations":["http://127.0.0.2:9/store/test/%d/f%d"],
			"metadata":{"request_id":"d6b6c0c4e5a94d6ca2c8b7d1a3f0%08d","scope":"test","name":"f%d","activity":"User Subscriptions",
			"request_type":"TRANSFER","src_type":"DISK","dst_type":"DISK","src_rse":"A","dst_rse":"B","filesize":1048576,"adler32":"04000401"},
			"filesize":1048576,"checksum":"ADLER32:04000401","selection_strategy":"orderly","activity":"User Subscriptions"}`, job, i, job, i, i, i)
	}
	b.WriteString(`],"params":{"verify_checksum":"both","overwrite":true,"priority":3,"job_metadata":{"issuer":"rucio"}}}`)
	return b.String()
}

// Jobs of many files are accepted and polled while all of their files are open. WEIR_FTS_JOBS=10
// submits 100,000 files.
func TestFTSManyFiles(t *testing.T) {
	tier.Full(t, "a hundred thousand files")
	tier.Slow(t, "submits thousands of files")
	jobs, files := 1, 2000
	if n, err := strconv.Atoi(os.Getenv("WEIR_FTS_JOBS")); err == nil {
		jobs, files = n, 10_000
	}
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback})
	u := h.ftsUser("rucio", access.MaySubmit)
	var ids []string
	var took time.Duration
	for i := range jobs {
		body := bulk(i, files)
		begun := time.Now()
		ids = append(ids, u.submit(body))
		took += time.Since(begun)
	}
	var polls []time.Duration
	for range 20 {
		for _, id := range ids {
			begun := time.Now()
			var j ftsJob
			if status := u.ask("GET", "/jobs/"+id, "", &j); status != http.StatusOK || j.Ended != "" {
				t.Fatalf("%d %+v", status, j)
			}
			polls = append(polls, time.Since(begun))
		}
	}
	begun := time.Now()
	var j ftsJob
	if status := u.ask("GET", "/jobs/"+ids[0]+"?files=file_state,source_surl,file_metadata", "", &j); status != http.StatusOK ||
		len(j.Files) != files || j.Files[files-1].Meta["name"] != fmt.Sprintf("f%d", files-1) {
		t.Errorf("%d: %d files", status, len(j.Files))
	}
	all := time.Since(begun)
	slices.SortFunc(polls, func(a, b time.Duration) int { return cmp.Compare(a, b) })
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d jobs of %d files: %.0f files/s accepted; a poll without files took %v (median) and %v (p99), one with all files of a job %v; "+
		"%d MB of heap", jobs, files, float64(jobs*files)/took.Seconds(), polls[len(polls)/2], polls[len(polls)*99/100], all, m.HeapSys>>20)
	if status := h.ftsUser("admin", access.MayAdmin).ask("DELETE", "/jobs/all", "", &map[string]int{}); status != http.StatusOK {
		t.Errorf("cancelled: %d", status)
	}
	if j := u.ended(ids[0]); j.State != "CANCELED" {
		t.Errorf("%+v", j)
	}
}
