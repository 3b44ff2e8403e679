package coordinator

import (
	"bytes"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/transfertest"
)

// stock writes files into the folder of a real server, and adds them to the catalog.
func (h *service) stock(dataset, site string, s *lab.System, files int, size int) [][]byte {
	h.T.Helper()
	in := transfer.NewFiles{Dataset: dataset, Site: site, By: "the test"}
	var all [][]byte
	for i := range files {
		data := bytes.Repeat(fmt.Appendf(nil, "%015d\n", i), size/16)
		name := fmt.Sprintf("%s/f%d", dataset, i)
		path := filepath.Join(s.Data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			h.T.Fatal(err)
		}
		writeOwned(h.T, path, data)
		all = append(all, data)
		in.Files = append(in.Files, transfer.NewFile{File: catalog.File{Name: name, Size: int64(len(data)),
			Adler: fmt.Sprintf("%08x", adler32.Checksum(data))}})
	}
	for some := range slices.Chunk(in.Files, 1000) {
		in.Files = some
		if _, err := h.Client.AddFiles(h.T.Context(), in); err != nil {
			h.T.Fatal(err)
		}
	}
	return all
}

func (h *service) addSite(name, url string) catalog.Site {
	h.T.Helper()
	s, err := h.Client.AddSite(h.T.Context(), transfer.NewSite{Name: name, URL: url})
	if err != nil {
		h.T.Fatal(err)
	}
	return s
}

// Two real XRootD servers copy from each other without an agent. Files that cannot be copied are
// reported with their reasons.
func TestXRootDCopiesToXRootD(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			x := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true})
			y := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true, Authority: x})
			h := start(t, Config{Approve: -1, SiteCA: x.CAFile})
			for name, s := range map[string]*lab.System{"X": x, "Y": y} {
				if site := h.addSite(name, s.URLs["https"]); !site.Up {
					t.Fatalf("%+v", site)
				}
			}
			all := h.stock("/run1", "X", x, 10, 1_000_000)
			require.NoError(t, os.Remove(filepath.Join(x.Data, "run1/f3")))
			require.NoError(t, os.WriteFile(filepath.Join(x.Data, "run1/f4"), make([]byte, len(all[4])), 0o644))
			q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "Y", Tries: 2})
			require.NoError(t, err)
			q = h.WaitEnd(q.ID)
			if q.Status != transfer.Partial || q.Count.Done != 8 || q.Count.Failed != 2 {
				t.Errorf("%+v", q)
				h.Log(q.ID)
			}
			failed, err := h.Client.Items(t.Context(), q.ID, transfer.FileFailed, 0, 0)
			if err != nil || len(failed) != 2 || !strings.Contains(failed[0].Reason, "X does not have the file") ||
				!strings.Contains(failed[1].Reason, "adler32") {
				t.Errorf("%+v, %v", failed, err)
			}
			for i, data := range all {
				got, err := os.ReadFile(filepath.Join(y.Data, fmt.Sprintf("run1/f%d", i)))
				if i == 3 || i == 4 {
					if err == nil {
						t.Errorf("file %d is there", i)
					}
				} else if !bytes.Equal(got, data) {
					t.Errorf("file %d: %d bytes, %v", i, len(got), err)
				}
			}
			left, err := filepath.Glob(filepath.Join(y.Data, "run1", ".weir*"))
			if err != nil || len(left) > 0 {
				t.Errorf("temporaries are left: %v, %v", left, err)
			}
			if err := os.Remove(filepath.Join(y.Data, "run1/f5")); err != nil { // without an update of the catalog
				t.Fatal(err)
			}
			again, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "Y", Tries: 2})
			require.NoError(t, err)
			if again = h.WaitEnd(again.ID); again.Count.Skipped != 7 || again.Count.Done != 1 {
				t.Errorf("once more: %+v", again)
				h.Log(again.ID)
			}
			attempts, err := h.Client.Attempts(t.Context(), q.ID, 0, 0)
			if err != nil || len(attempts) < 10 || attempts[0].Mode != transfer.Third || !attempts[0].Verified ||
				attempts[0].Moved != int64(len(all[0])) {
				t.Errorf("%+v, %v", attempts, err)
			}
		})
	}
}

// An agent pulls from XRootD and pushes to it over TLS, with an authority that coordinator and
// agent trust.
func TestAgentsAndXRootD(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			x := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true})
			h := start(t, Config{Approve: -1, SiteCA: x.CAFile})
			h.addSite("X", x.URLs["https"])
			a := h.Agent("A", nil)
			all := h.stock("/run1", "X", x, 5, 300_000)
			a.Write("/run2", 5, 300_000)
			h.Scan("/run2", "A", "/run2")
			for dataset, to := range map[string]string{"/run1": "A", "/run2": "X"} {
				q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: dataset, To: to, Tries: 2})
				require.NoError(t, err)
				if q = h.WaitEnd(q.ID); q.Status != transfer.Completed {
					t.Errorf("%s: %+v", dataset, q)
					h.Log(q.ID)
				}
			}
			for i := range 5 {
				same(t, fmt.Sprintf("/run2/f%d", i), a, &transfertest.Agent{T: t, Root: x.Data})
				if got, err := os.ReadFile(filepath.Join(a.Root, fmt.Sprintf("run1/f%d", i))); !bytes.Equal(got, all[i]) {
					t.Errorf("file %d: %v", i, err)
				}
			}
		})
	}
}

// A site that is down is reported as such, and used again when it is back. Meanwhile its files come
// from other sites, or wait and report the reason.
func TestSitesGoAndComeBack(t *testing.T) {
	t.Parallel()
	x := labtest.Start(t, lab.XRootDConfig{Copies: true})
	y := labtest.Start(t, lab.XRootDConfig{Copies: true, Authority: x})
	h := start(t, Config{Approve: -1, SiteCA: x.CAFile})
	h.addSite("X", "https://127.0.0.1:1/data")
	h.addSite("Y", y.URLs["https"])
	h.stock("/run1", "X", x, 2, 1000)
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "Y"})
	require.NoError(t, err)
	var e transfer.Explanation
	until(t, "it waits for a source", func() bool {
		if e, err = h.Client.Explain(t.Context(), q.ID, ""); err != nil {
			t.Fatal(err)
		}
		return len(e.Reasons) == 1 && e.Reasons[0].Files == 2 && strings.Contains(e.Reasons[0].Text, "X is down: it could not be reached")
	})
	h.addSite("X", x.URLs["https"]) // the site has moved
	if q = h.WaitEnd(q.ID); q.Status != transfer.Completed {
		t.Errorf("%+v", q)
	}
}

// The temporary file of a copy is removed by the next coordinator if its coordinator was killed.
func TestKilledCoordinatorLeavesNoTemporary(t *testing.T) {
	t.Parallel()
	x := labtest.Start(t, lab.XRootDConfig{Copies: true})
	slow := startSlow(t, 2<<20)
	conf := Config{State: t.TempDir(), Lease: 3 * time.Second}
	h, kill := spawned(t, &conf)
	h.addSite("S", slow.url)
	h.addSite("X", x.URLs["http"])
	all := h.stock("/run1", "S", slow.System, 1, 8<<20)
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "X", Tries: 20})
	require.NoError(t, err)
	until(t, "it is on its way", func() bool { return len(hidden(t, filepath.Join(x.Data, "run1"))) == 1 })
	kill()
	spawn(t, conf)
	until(t, "it ends", func() bool {
		q = insist(t, func() (transfer.Request, error) { return h.Client.Request(t.Context(), q.ID) })
		return q.Status.Ended()
	})
	got, err := os.ReadFile(filepath.Join(x.Data, "run1/f0"))
	if q.Status != transfer.Completed || q.Count.Attempts < 2 || !bytes.Equal(got, all[0]) {
		t.Errorf("%+v, %v", q, err)
		h.Log(q.ID)
	}
	if left := hidden(t, filepath.Join(x.Data, "run1")); len(left) > 0 {
		t.Errorf("temporaries are left: %v", left)
	}
}

// The temporary files at a site that was killed during copies are removed when the site is back,
// independently of the state of their request.
func TestKilledSiteLeavesNoTemporary(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			x := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true})
			slow := startSlow(t, 2<<20)
			h := start(t, Config{Approve: -1, SiteCA: x.CAFile})
			h.addSite("S", slow.url)
			h.addSite("X", x.URLs["https"])
			h.stock("/run1", "S", slow.System, 4, 8<<20)
			q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "X", Tries: 20})
			require.NoError(t, err)
			until(t, "all are on their way", func() bool { return len(hidden(t, filepath.Join(x.Data, "run1"))) == 4 })
			x.Kill()
			if len(hidden(t, filepath.Join(x.Data, "run1"))) == 0 {
				t.Error("the site was killed, and has no temporary: nothing is tried here")
			}
			if _, err := h.Client.Cancel(t.Context(), q.ID, ""); err != nil {
				t.Fatal(err)
			}
			if q = h.WaitEnd(q.ID); q.Status != transfer.Cancelled { // the removal of the temporary files has failed by now
				t.Errorf("%+v", q)
			}
			require.NoError(t, x.Restart(t.Context()))
			until(t, "no temporary is left", func() bool { return len(hidden(t, filepath.Join(x.Data, "run1"))) == 0 })
		})
	}
}
