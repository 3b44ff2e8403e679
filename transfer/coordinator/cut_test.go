package coordinator

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/wire"
	"weir/lab"
	"weir/lab/labtest"
	"weir/serve"
	"weir/serve/servetest"
	"weir/transfer"
	realagent "weir/transfer/agent"
	"weir/transfer/transfertest"
)

// An XRootD pushes a file to an endpoint that starts no copies, and an endpoint pushes a file to an
// XRootD without COPY. The end that supports third-party copies moves the bytes.
func TestThirdPartiesPush(t *testing.T) {
	t.Parallel()
	x := labtest.Start(t, lab.XRootDConfig{Copies: true})
	y := labtest.Start(t, lab.XRootDConfig{})
	h := start(t, Config{Approve: -1, SiteCA: x.CAFile})
	h.addSite("X", x.URLs["http"])
	h.addSite("Y", y.URLs["http"])
	a, b := h.Agent("A", transfertest.Endpoint()), h.Agent("B", transfertest.PassiveEndpoint())
	all := h.stock("/run1", "X", x, 3, 3_000_000)
	a.Write("/run2", 3, 3_000_000)
	a.Put("run2/empty", nil)
	h.Scan("/run2", "A", "/run2")
	for dataset, to := range map[string]string{"/run1": "B", "/run2": "Y"} {
		q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: dataset, To: to, Mode: transfer.Third, Tries: 1})
		require.NoError(t, err)
		if q = h.WaitEnd(q.ID); q.Status != transfer.Completed {
			t.Errorf("%s: %+v", dataset, q)
			h.Log(q.ID)
		}
		attempts, err := h.Client.Attempts(t.Context(), q.ID, 0, 0)
		if err != nil || len(attempts) < 3 || attempts[0].Mode != transfer.Third || !attempts[0].Verified {
			t.Errorf("%+v, %v", attempts, err)
		}
	}
	for i := range 3 {
		if got, err := os.ReadFile(filepath.Join(b.Root, fmt.Sprintf("run1/f%d", i))); err != nil || !bytes.Equal(got, all[i]) {
			t.Errorf("file %d: %d bytes, %v", i, len(got), err)
		}
		same(t, fmt.Sprintf("/run2/f%d", i), a, &transfertest.Agent{T: t, Root: y.Data})
	}
	if info, err := os.Stat(filepath.Join(y.Data, "run2/empty")); err != nil || info.Size() != 0 {
		t.Errorf("the empty file: %v", err)
	}
	for _, dir := range []string{filepath.Join(b.Root, "run1"), filepath.Join(y.Data, "run2")} {
		if left := temporaries(t, dir); len(left) > 0 {
			t.Errorf("temporaries are left: %v", left)
		}
	}
}

// temporaries returns the temporary files of weir in a folder, without the record of folders of an
// endpoint.
func temporaries(t *testing.T, dir string) (all []string) {
	t.Helper()
	for _, f := range hidden(t, dir) {
		if strings.HasSuffix(f, ".part") {
			all = append(all, f)
		}
	}
	return all
}

// hidden returns the files and folders in dir whose names begin with .weir.
func hidden(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".weir*"))
	require.NoError(t, err)
	return found
}

// A slow is a server of weir with a limited rate.
type slow struct {
	*lab.System
	url string
}

func startSlow(t *testing.T, rate int64) *slow {
	t.Helper()
	dir := t.TempDir()
	return &slow{&lab.System{Data: dir}, servetest.Start(t, serve.Config{Dir: dir, Rate: rate})}
}

// figure returns a metric of the server.
func (s *slow) figure(t *testing.T, name string) (n float64) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/metrics", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			_, _ = fmt.Sscan(rest, &n)
		}
	}
	return n
}

// A third-party copy that is cancelled in progress is aborted: the slow end sends or receives no
// more data, no matter which end moves the bytes. The temporary file is removed, and no file has
// the final name.
func TestCancelReachesThirdParties(t *testing.T) {
	t.Parallel()
	const size, rate = 64 << 20, 4 << 20
	for name, tt := range map[string]struct{ agent, push bool }{
		"XRootD pulls": {false, false}, "XRootD pushes": {false, true}, "a door pulls": {true, false}, "a door pushes": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, Config{Approve: -1})
			s := startSlow(t, rate)
			h.addSite("S", s.url)
			var fast *lab.System
			if tt.agent {
				fast = &lab.System{Data: h.Agent("F", transfertest.Endpoint()).Root}
			} else {
				fast = labtest.Start(t, lab.XRootDConfig{Copies: true})
				h.addSite("F", fast.URLs["http"])
			}
			from, to, dest, bytes := s.System, "F", fast.Data, "weir_serve_payload_sent_bytes_total"
			if tt.push {
				from, to, dest, bytes = fast, "S", s.Data, "weir_serve_payload_received_bytes_total"
			}
			h.stock("/run1", map[bool]string{false: "S", true: "F"}[tt.push], from, 1, size)
			before := s.figure(t, bytes)
			q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: to, Mode: transfer.Third})
			require.NoError(t, err)
			moved := func() float64 { return s.figure(t, bytes) - before }
			until(t, "some of it has moved", func() bool { return moved() > size/16 && len(temporaries(t, filepath.Join(dest, "run1"))) > 0 })
			cancelled := time.Now()
			if _, err := h.Client.Cancel(t.Context(), q.ID, ""); err != nil {
				t.Fatal(err)
			}
			if q = h.WaitEnd(q.ID); q.Status != transfer.Cancelled || q.Count.Cancelled != 1 {
				t.Errorf("%+v", q)
				h.Log(q.ID)
			}
			told := time.Since(cancelled)
			until(t, "nobody reads or writes at the slow end", func() bool { return s.figure(t, "weir_serve_requests_in_flight") <= 1 })
			quiet, all := time.Since(cancelled), moved()
			until(t, "no temporary is left", func() bool { return len(temporaries(t, filepath.Join(dest, "run1"))) == 0 })
			if all >= size {
				t.Errorf("all %v bytes were moved", all)
			}
			if now := moved(); now != all {
				t.Errorf("it goes on: %v bytes, then %v", all, now)
			}
			if _, err := os.Stat(filepath.Join(dest, "run1/f0")); err == nil {
				t.Error("the file is there")
			}
			t.Logf("the request ended %v after it was cancelled, the last byte went after %v, %.0f of %d", told, quiet, all, size)
		})
	}
}

// An XRootD detects only after some seconds that its push was aborted. The data that it has written
// by then is removed as well.
func TestCancelOfAPushThatGoesOn(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	h := start(t, Config{Approve: -1})
	s := startSlow(t, size/2)
	h.addSite("S", s.url)
	x := labtest.Start(t, lab.XRootDConfig{Copies: true})
	h.addSite("X", x.URLs["http"])
	h.stock("/run1", "X", x, 1, size)
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "S", Mode: transfer.Third})
	require.NoError(t, err)
	const bytes = "weir_serve_payload_received_bytes_total"
	until(t, "some of it has moved", func() bool { return s.figure(t, bytes) > size/4 })
	if _, err := h.Client.Cancel(t.Context(), q.ID, ""); err != nil {
		t.Fatal(err)
	}
	if q = h.WaitEnd(q.ID); q.Status != transfer.Cancelled {
		t.Errorf("%+v", q)
	}
	until(t, "nobody writes", func() bool { return s.figure(t, "weir_serve_requests_in_flight") <= 1 })
	if through := s.figure(t, bytes) >= size; through && len(temporaries(t, filepath.Join(s.Data, "run1"))) == 0 {
		t.Error("it was through, and there is nothing")
	}
	until(t, "what it brought is removed", func() bool { return len(temporaries(t, filepath.Join(s.Data, "run1"))) == 0 })
}

// The endpoints of two agents, each with its own certificate, copy from each other. The coordinator
// sends the pin of the other endpoint to the endpoint that moves the bytes.
func TestThirdPartiesKnowPins(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1})
	var agents []*transfertest.Agent
	for _, site := range []string{"A", "B"} {
		dir := t.TempDir()
		if _, err := wire.Keep(dir); err != nil {
			t.Fatal(err)
		}
		own := filepath.Join(dir, "identity.pem")
		p := &transfertest.Agent{T: t, Root: t.TempDir()}
		h.StartAgent(p, site, &realagent.EndpointOptions{Listen: "127.0.0.1:0", CertFile: own, KeyFile: own, Private: true, Peers: []string{"*"}})
		agents = append(agents, p)
	}
	agents[0].Write("/run1", 3, 100_000)
	h.Scan("/run1", "A", "/run1")
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "B", Mode: transfer.Third, Tries: 1})
	require.NoError(t, err)
	if q = h.WaitEnd(q.ID); q.Status != transfer.Completed {
		t.Errorf("%+v", q)
		h.Log(q.ID)
	}
	for i := range 3 {
		same(t, fmt.Sprintf("/run1/f%d", i), agents[0], agents[1])
	}
}

// Third-party copies that a coordinator aborts when it ends use no attempt: a file with a limit of
// one attempt arrives after a restart.
func TestEndOfTheCoordinatorIsNoTry(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1})
	s, d := startSlow(t, 4<<20), startSlow(t, 0)
	h.addSite("S", s.url)
	h.addSite("D", d.url)
	h.stock("/run1", "S", s.System, 1, 8<<20)
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "D", Tries: 1})
	require.NoError(t, err)
	until(t, "it is on its way", func() bool {
		items, err := h.Client.Items(t.Context(), q.ID, transfer.Leased, 0, 0)
		return err == nil && len(items) == 1 && items[0].Moved > 0
	})
	h.End()
	h.Begin()
	if q = h.WaitEnd(q.ID); q.Status != transfer.Completed {
		t.Errorf("%+v", q)
		h.Log(q.ID)
	}
	attempts, err := h.Client.Attempts(t.Context(), q.ID, 0, 0)
	if err != nil || len(attempts) != 2 || attempts[0].Fault != transfer.MoverStopped {
		t.Errorf("%+v, %v", attempts, err)
	}
}
