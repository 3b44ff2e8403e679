package coordinator

import (
	"os"
	"testing"
	"time"

	"weir/lab"
	"weir/transfer"
)

// Two XRootD 6.2 as their documentation configures them compute four checksums at a
// time, and let further questions wait for 30 s: the coordinator asks no faster than
// that. It copies at a quarter, at least, of the rate that it reaches where the
// servers compute all that they are asked for.
func TestChecksumsThatServersHold(t *testing.T) {
	files := 600
	if os.Getenv("WEIR_LONG") != "" {
		files = 10_000
	}
	rate := map[string]float64{}
	for name, conf := range map[string]string{"free": "xrootd.chksum max 64 adler32", "limited": "xrootd.chksum adler32"} {
		x := lab.StartXRootD(t, lab.XRootDConfig{Version: "6.2", Copies: true, Extra: conf})
		y := lab.StartXRootD(t, lab.XRootDConfig{Version: "6.2", Copies: true, Extra: conf, Authority: x})
		h := start(t, Config{Approve: -1, SiteCA: x.CAFile})
		from, to := "X-"+name, "Y-"+name
		h.addSite(from, x.URLs["https"])
		h.addSite(to, y.URLs["https"])
		h.stock("/"+name, from, x, files, 1<<16)
		began := time.Now()
		q, err := h.admin.Submit(t.Context(), transfer.Submission{Dataset: "/" + name, To: to, Tries: 2})
		if err != nil {
			t.Fatal(err)
		}
		if q = h.ended(q.ID); q.Count.Done != int64(files) {
			t.Fatalf("%s: %+v", name, q)
		}
		rate[name] = float64(files) / time.Since(began).Seconds()
		t.Logf("%s: %d files in %v, %.0f/s", conf, files, time.Since(began), rate[name])
	}
	if rate["limited"] < rate["free"]/4 {
		t.Errorf("%.0f files/s instead of %.0f", rate["limited"], rate["free"])
	}
}
