package coordinator

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
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
	"weir/transfer"
	"weir/transfer/access"
)

// modes returns the modes in which files of a request were transferred.
func (h *service) modes(request int64) (all []transfer.Mode) {
	h.T.Helper()
	attempts, err := h.Client.Attempts(h.T.Context(), request, 0, 0)
	if err != nil {
		h.T.Fatal(err)
	}
	for _, a := range attempts {
		if a.Fault == "" && (!a.Verified || a.Existed) {
			h.T.Errorf("not verified: %+v", a)
		}
		all = append(all, a.Mode)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// metric returns the sum of a metric's series whose labels contain a text.
func (h *service) metric(name, labels string) (sum float64) {
	h.T.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: wire.Pinned(h.Pin()), DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(h.T.Context(), http.MethodGet, h.URL()+"/metrics", http.NoBody)
	if err != nil {
		h.T.Fatal(err)
	}
	raw, err := h.Admin()
	if err != nil {
		h.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+raw)
	res, err := client.Do(req)
	if err != nil {
		h.T.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.T.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, name+"{") && strings.Contains(line, labels) {
			var n float64
			if _, err := fmt.Sscan(line[strings.LastIndex(line, " "):], &n); err != nil {
				h.T.Error(err)
			}
			sum += n
		}
	}
	return sum
}

// If servers cannot copy from each other, the bytes pass through the coordinator, with the
// guarantees of other copies. XRootD without its plugin reports checksums. nginx, Apache and rclone
// do not, so that their files are read back.
func TestStreamedCopies(t *testing.T) {
	t.Parallel()
	x := labtest.Start(t, lab.XRootDConfig{Config: lab.Config{TLS: true}})
	servers := map[string]*lab.System{"X": x, "nginx": labtest.Start(t, lab.NginxConfig{})}
	for _, name := range labtest.WebDAVServers() {
		servers[name] = labtest.Start(t, lab.FolderConfig{Server: name, WebDAV: true})
	}
	h := start(t, Config{Approve: -1, SiteCA: x.CAFile})
	h.addSite("X", x.URLs["https"])
	for name, s := range servers {
		if name != "X" {
			h.addSite(name, s.URL)
		}
	}
	for _, pair := range [][2]string{
		{"X", "nginx"}, {"nginx", "X"}, {"nginx", "apache2"}, {"apache2", "rclone"}, {"rclone", "X"}, {"X", "X2"},
	} {
		t.Run(pair[0]+" to "+pair[1], func(t *testing.T) {
			t.Parallel()
			from, to, dataset := servers[pair[0]], servers[pair[1]], "/"+pair[0]+"-"+pair[1]
			if pair[1] == "X2" {
				to = labtest.Start(t, lab.XRootDConfig{Config: lab.Config{TLS: true}, Authority: x})
				h.addSite("X2", to.URLs["https"])
			}
			all := h.stock(dataset, pair[0], from, 4, 3_000_000)
			require.NoError(t, os.Remove(filepath.Join(from.Data, dataset, "f2")))
			require.NoError(t, os.WriteFile(filepath.Join(from.Data, dataset, "f3"), make([]byte, len(all[3])), 0o644))
			q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: dataset, To: pair[1], Tries: 2})
			require.NoError(t, err)
			if q = h.WaitEnd(q.ID); q.Status != transfer.Partial || q.Count.Done != 2 {
				t.Errorf("%+v", q)
				h.Log(q.ID)
			}
			failed, err := h.Client.Items(t.Context(), q.ID, transfer.FileFailed, 0, 0)
			if err != nil || len(failed) != 2 || !strings.Contains(failed[0].Reason, "does not have the file") ||
				!strings.Contains(failed[1].Reason, "corrupt") {
				t.Errorf("%+v, %v", failed, err)
			}
			for i, data := range all[:2] {
				got, err := os.ReadFile(filepath.Join(to.Data, dataset, fmt.Sprintf("f%d", i)))
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("file %d: %d bytes, %v", i, len(got), err)
				}
			}
			if modes := h.modes(q.ID); !slices.Contains(modes, transfer.Streamed) {
				t.Errorf("modes %v", modes)
			}
			if left := hidden(t, filepath.Join(to.Data, dataset)); len(left) > 0 {
				t.Errorf("temporaries are left: %v", left)
			}
			labels := fmt.Sprintf(`source="%s",dest="%s"`, pair[0], pair[1])
			if n := h.metric("weir_transfer_streamed_bytes_total", labels); n < 6_000_000 {
				t.Errorf("%v bytes are counted", n)
			}
			if n := h.metric("weir_transfer_streamed_attempts_total", labels+`,outcome="done"`); n != 2 {
				t.Errorf("%v attempts are counted", n)
			}
		})
	}
}

// Jobs of the API of FTS3 are streamed with the tokens of their files, even if neither size nor
// checksum is known.
func TestStreamedJobs(t *testing.T) {
	t.Parallel()
	x := labtest.Start(t, lab.XRootDConfig{Auth: "ztn"})
	y := labtest.Start(t, lab.XRootDConfig{Auth: "ztn", Authority: x})
	nginx, other := labtest.Start(t, lab.NginxConfig{}), labtest.Start(t, lab.NginxConfig{})
	p := &ftsPair{start(t, Config{Approve: -1, SiteCA: x.CAFile, JobArea: tpc.Loopback}), x, y}
	u := p.ftsUser("rucio", access.MaySubmit)
	data := bytes.Repeat([]byte("streamed with tokens\n"), 50_000)
	p.put(x, "c/f", data)
	p.put(x, "c/g", data)
	p.put(x, "c/empty", nil)
	p.put(nginx, "c/h", data)
	read, write, wrong := p.fileTokens()
	tokens := func(source, dest string) string {
		return fmt.Sprintf(`,"source_tokens":[%q],"destination_tokens":[%q]`, source, dest)
	}
	id := u.submit(`{"files":[` + strings.Join([]string{p.pair("c/f", tokens(read, write)), p.pair("c/empty", tokens(read, write)),
		p.pair("c/g", tokens(wrong, write))}, ",") + `],"params":{"verify_checksum":"both","retry":-1}}`)
	j := u.ended(id)
	if j.State != "FINISHEDDIRTY" || j.Files[0].State != "FINISHED" || j.Files[1].State != "FINISHED" || j.Files[2].State != "FAILED" ||
		!strings.Contains(j.Files[2].Reason, "Permission denied") {
		t.Errorf("%+v", j)
	}
	for name, want := range map[string][]byte{"f": data, "empty": {}} {
		if got, err := os.ReadFile(filepath.Join(y.Data, "c", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	id = u.submit(fmt.Sprintf(`{"files":[{"sources":["%s/c/h"],"destinations":["%s/new/folder/h"]}],"params":{"verify_checksum":"both"}}`,
		nginx.URL, other.URL))
	if j := u.ended(id); j.State != "FINISHED" {
		t.Errorf("%+v", j)
	}
	if got, err := os.ReadFile(filepath.Join(other.Data, "new/folder/h")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A streamed copy that is cancelled while it is running ends, and leaves no temporary file. Copies
// beyond the limit wait.
func TestStreamedCopiesEnd(t *testing.T) {
	t.Parallel()
	slow, nginx := startSlow(t, 2<<20), labtest.Start(t, lab.NginxConfig{})
	h := start(t, Config{Approve: -1, Streamed: 1})
	h.addSite("S", slow.url)
	h.addSite("N", nginx.URL)
	h.stock("/long", "S", slow.System, 3, 16<<20)
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/long", To: "N"})
	require.NoError(t, err)
	until(t, "one is on its way", func() bool { return h.metric("weir_transfer_moved_bytes_total", `source="S"`) > 1<<20 })
	moving := 0
	for _, p := range h.leases.Unrenewed(h.now().Add(time.Hour)) {
		if p.Moved > 0 {
			moving++
		}
	}
	if moving != 1 {
		t.Errorf("%d copies at once", moving)
	}
	if _, err := h.Client.Cancel(t.Context(), q.ID, "the test"); err != nil {
		t.Fatal(err)
	}
	if q = h.WaitEnd(q.ID); q.Status != transfer.Cancelled || q.Count.Done != 0 {
		t.Errorf("%+v", q)
	}
	until(t, "the source sends no more", func() bool { return slow.figure(t, "weir_serve_requests_in_flight") <= 1 })
	if left := hidden(t, filepath.Join(nginx.Data, "long")); len(left) > 0 {
		t.Errorf("temporaries are left: %v", left)
	}
}

// If streamed copies are disabled, files report why they cannot be copied.
func TestStreamedCopiesForbidden(t *testing.T) {
	t.Parallel()
	a, b := labtest.Start(t, lab.NginxConfig{}), labtest.Start(t, lab.NginxConfig{})
	h := start(t, Config{Approve: -1, Streamed: -1})
	h.addSite("A", a.URL)
	h.addSite("B", b.URL)
	h.stock("/run1", "A", a, 1, 1000)
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "B"})
	require.NoError(t, err)
	if q = h.WaitEnd(q.ID); q.Status != transfer.Failed {
		t.Errorf("%+v", q)
	}
	failed, err := h.Client.Items(t.Context(), q.ID, transfer.FileFailed, 0, 0)
	if err != nil || len(failed) != 1 || !strings.Contains(failed[0].Reason, "COPY") || failed[0].Fault != transfer.ModeUnsupported {
		t.Errorf("%+v, %v", failed, err)
	}
}
