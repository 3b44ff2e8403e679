package coordinator

import (
	"os"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer"
)

// Two XRootD 6.2 servers, configured as in their documentation, compute four checksums at a time
// and delay further requests by 30 s. The coordinator sends requests no faster than this. It copies
// at no less than a quarter of the rate that it reaches with servers that compute all requested
// checksums at once. The best of up to three pairs of runs counts, because other load of the
// machine may slow down one run of a pair.
func TestChecksumsThatServersHold(t *testing.T) {
	tier.Full(t, "XRootD 6.2, which limits checksums")
	files := 600
	if os.Getenv("WEIR_LONG") != "" {
		files = 10_000
	}
	best := 0.0
	for try := 0; try < 3 && best < 0.25; try++ {
		rate := map[string]float64{}
		for name, conf := range map[string]string{"free": "xrootd.chksum max 64 adler32", "limited": "xrootd.chksum adler32"} {
			rate[name] = rateOf(t, conf, files)
		}
		best = max(best, rate["limited"]/rate["free"])
	}
	if best < 0.25 {
		t.Errorf("the limited servers reach %.2f of the rate of the others", best)
	}
}

// rateOf copies files between two servers with a configuration and returns the number of files per
// second.
func rateOf(t *testing.T, conf string, files int) float64 {
	t.Helper()
	x := labtest.Start(t, lab.XRootDConfig{Version: "6.2", Copies: true, Extra: conf})
	y := labtest.Start(t, lab.XRootDConfig{Version: "6.2", Copies: true, Extra: conf, Authority: x})
	h := start(t, Config{Approve: -1, SiteCA: x.CAFile})
	h.addSite("X", x.URLs["https"])
	h.addSite("Y", y.URLs["https"])
	h.stock("/run", "X", x, files, 1<<16)
	began := time.Now()
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run", To: "Y", Tries: 2})
	require.NoError(t, err)
	if q = h.WaitEnd(q.ID); q.Count.Done != int64(files) {
		t.Fatalf("%s: %+v", conf, q)
	}
	took := time.Since(began)
	t.Logf("%s: %d files in %v", conf, files, took)
	return float64(files) / took.Seconds()
}
