package coordinator

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/token"
	"weir/internal/tpc"
	"weir/internal/wire"
	"weir/lab"
	"weir/lab/labtest"
	"weir/serve"
	"weir/serve/servetest"
	"weir/transfer"
	"weir/transfer/catalog"
	tep "weir/transfer/endpoint"
	"weir/transfer/transfertest"
)

// A keeper admits requests with one token, and counts all requests by token and by method.
type keeper struct {
	good  atomic.Value
	mu    sync.Mutex
	shown map[string]int // by token
	calls map[string]int // by method

	denied string // a path at which all operations are denied
}

// May implements serve.Rights.
func (k *keeper) May(_ token.Op, path string) bool {
	return k.denied == "" || path != k.denied && !strings.HasPrefix(path, k.denied+"/")
}

// Most implements serve.Rights.
func (*keeper) Most() (string, int64, bool) { return "", 0, false }

func (k *keeper) check(r *http.Request) (serve.Rights, error) {
	raw, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shown[raw]++
	k.calls[r.Method]++
	if raw == "" || raw != k.good.Load() {
		return nil, errors.New("the token has expired")
	}
	return k, nil
}

func (k *keeper) saw(raw string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.shown[raw]
}

// guarded serves a folder to requests with a token, over HTTP with third-party copies.
func guarded(t *testing.T, good string) (*lab.System, *keeper) {
	t.Helper()
	k := &keeper{shown: map[string]int{}, calls: map[string]int{}}
	k.good.Store(good)
	dir := t.TempDir()
	at := servetest.Start(t, serve.Config{Dir: dir, Authenticate: k.check, Extensions: thirdParty()})
	return &lab.System{Data: dir, URLs: map[string]string{"http": at}}, k
}

// metricsOf returns the metrics of a coordinator.
func metricsOf(t *testing.T, h *service) string {
	t.Helper()
	raw, err := h.Admin()
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL()+"/metrics", http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+raw)
	to := &http.Transport{DisableKeepAlives: true}
	if h.Pin() != "" {
		to.TLSClientConfig = wire.Pinned(h.Pin())
	}
	res, err := (&http.Client{Transport: to}).Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(text)
}

// An expired token of a site fails no file. The files wait with the reason, and continue with
// another token. This applies to a source from which an agent reads, and to a destination that the
// coordinator drives.
func TestExpiredTokenFailsNoFile(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	each(t, func(t *testing.T, conf Config) {
		conf.Plain = true
		s, keeps := guarded(t, "another one by now")
		x, xkeeps := guarded(t, "x")
		h := start(t, conf)
		h.Agent("B", transfertest.Endpoint())
		add := func(name string, at *lab.System, secret string) {
			t.Helper()
			if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: name, URL: at.URLs["http"], Token: secret, Lend: true}); err != nil {
				t.Fatal(err)
			}
		}
		add("S", s, "expired")
		add("X", x, "x")
		h.stock("/run1", "S", s, 60, 1000)
		h.stock("/run2", "X", x, 60, 1000)
		pull, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "B", Tries: 2})
		require.NoError(t, err)
		third, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run2", To: "S", Tries: 2})
		require.NoError(t, err)
		for _, q := range []transfer.Request{pull, third} {
			until(t, "the site is known to refuse", func() bool {
				e, err := h.Client.Explain(t.Context(), q.ID, "")
				require.NoError(t, err)
				return slices.ContainsFunc(e.Reasons, func(r transfer.Reason) bool {
					return r.Files > 30 && strings.Contains(r.Text, "S has refused all files since") && strings.Contains(r.Text, "401")
				})
			})
		}
		if text := metricsOf(t, h); !strings.Contains(text, `weir_transfer_site_refuses{site="S"} 1`) ||
			!strings.Contains(text, `weir_transfer_site_refuses{site="X"} 0`) {
			t.Errorf("metrics:\n%s", text)
		}
		sites, err := h.Client.Sites(t.Context())
		if i := slices.IndexFunc(sites, func(s2 catalog.Site) bool { return s2.Name == "S" }); err != nil || i < 0 ||
			!strings.Contains(sites[i].Problem, "refused all files") {
			t.Errorf("sites: %+v, %v", sites, err)
		}
		asked := keeps.saw("expired")
		<-time.After(3 * time.Second)
		if more := keeps.saw("expired") - asked; more > 20 {
			t.Errorf("asked %d times in three seconds while it refuses", more)
		}
		add("S", s, "another one by now")
		for _, q := range []transfer.Request{pull, third} {
			if q = h.WaitEnd(q.ID); q.Status != transfer.Completed || q.Count.Attempts > 60+40 {
				t.Errorf("%+v", q)
				h.Log(q.ID)
			}
		}
		if n := xkeeps.saw("expired") + xkeeps.saw("another one by now"); n > 0 {
			t.Errorf("X saw S's token %d times", n)
		}
	})
}

// If a site refuses a single file, only this file fails and the others continue.
func TestOneDeniedFileFailsAlone(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	s, keeps := guarded(t, "s")
	keeps.denied = "/run1/f7"
	h := start(t, Config{Approve: -1, Plain: true})
	if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: "S", URL: s.URLs["http"], Token: "s", Lend: true}); err != nil {
		t.Fatal(err)
	}
	h.Agent("B", nil)
	h.stock("/run1", "S", s, 20, 1000)
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "B", Tries: 2})
	require.NoError(t, err)
	if q = h.WaitEnd(q.ID); q.Count.Done != 19 || q.Count.Failed != 1 {
		t.Errorf("%+v", q)
		h.Log(q.ID)
	}
}

// Files that are refused individually do not block the other files of a site, even if they come
// first and are so many that the site seems to refuse all files.
func TestDeniedFilesDoNotBlockOthers(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	s, keeps := guarded(t, "s")
	keeps.denied = "/run1/bad"
	h := start(t, Config{Approve: -1, Plain: true})
	if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: "S", URL: s.URLs["http"], Token: "s", Lend: true}); err != nil {
		t.Fatal(err)
	}
	h.Agent("B", nil)
	h.stock("/run1/bad", "S", s, 5, 1000)
	h.stock("/run1/good", "S", s, 20, 1000)
	bad, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1/bad", To: "B", Tries: 1})
	require.NoError(t, err)
	until(t, "the site looks as if it refused everything", func() bool {
		return strings.Contains(metricsOf(t, h), `weir_transfer_site_refuses{site="S"} 1`)
	})
	good, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1/good", To: "B", Tries: 2})
	require.NoError(t, err)
	if good = h.WaitEnd(good.ID); good.Status != transfer.Completed {
		t.Errorf("%+v", good)
		h.Log(good.ID)
	}
	if bad = h.WaitEnd(bad.ID); bad.Count.Failed != 5 {
		t.Errorf("%+v", bad)
		h.Log(bad.ID)
	}
}

// The token of a site is not sent to others, unless an administrator permits it.
func TestTokensStayWithTheCoordinator(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	s, _ := guarded(t, "secret of S")
	x, xkeeps := guarded(t, "secret of X")
	h := start(t, Config{Approve: -1, Plain: true, Streamed: -1})
	for name, at := range map[string]*lab.System{"S": s, "X": x} {
		if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: name, URL: at.URLs["http"], Token: "secret of " + name}); err != nil {
			t.Fatal(err)
		}
	}
	h.stock("/run1", "S", s, 3, 1000)
	b := h.FakeAgent("B")
	b.Register("")
	waits := func(q transfer.Request) {
		t.Helper()
		until(t, "it is said why it waits", func() bool {
			e, err := h.Client.Explain(t.Context(), q.ID, "")
			require.NoError(t, err)
			return len(e.Reasons) == 1 && strings.Contains(e.Reasons[0].Text, "--lend-token")
		})
	}
	toX, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "X"})
	require.NoError(t, err)
	waits(toX)
	toB, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "B"})
	require.NoError(t, err)
	var w transfer.Work
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		w = b.Work()
	}()
	waits(toB)
	_, err = h.Client.AddSite(t.Context(), transfer.NewSite{Name: "S", URL: s.URLs["http"], Token: "secret of S", Lend: true})
	require.NoError(t, err)
	<-asked
	if len(w.Leases) == 0 || w.Leases[0].Source.Token != "secret of S" {
		t.Errorf("leases: %+v", w.Leases)
	}
	if toX = h.WaitEnd(toX.ID); toX.Status != transfer.Completed {
		t.Errorf("%+v", toX)
		h.Log(toX.ID)
	}
	if n := xkeeps.saw("secret of S"); n > 0 {
		t.Errorf("X itself was shown S's token %d times: it is for S", n)
	}
}

// If neither site may have the token of the other site, a copy passes through the coordinator and
// reveals neither token.
func TestStreamedCopiesKeepTokens(t *testing.T) {
	tier.Slow(t, "moves files between servers")
	t.Parallel()
	s, skeeps := guarded(t, "secret of S")
	x, xkeeps := guarded(t, "secret of X")
	h := start(t, Config{Approve: -1, Plain: true})
	for name, at := range map[string]*lab.System{"S": s, "X": x} {
		if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: name, URL: at.URLs["http"], Token: "secret of " + name}); err != nil {
			t.Fatal(err)
		}
	}
	h.stock("/run1", "S", s, 3, 1000)
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "X"})
	require.NoError(t, err)
	if q = h.WaitEnd(q.ID); q.Status != transfer.Completed || !slices.Contains(h.modes(q.ID), transfer.Streamed) {
		t.Errorf("%+v, copied by %v", q, h.modes(q.ID))
	}
	if a, b := xkeeps.saw("secret of S"), skeeps.saw("secret of X"); a+b > 0 {
		t.Errorf("X was shown S's token %d times, and S that of X %d times", a, b)
	}
}

// If a site issues macaroons for its token, agents that pull from it and push to it receive
// macaroons for one folder, and never the token itself.
func TestMacaroonsAreLent(t *testing.T) {
	t.Parallel()
	x := labtest.Start(t, lab.XRootDConfig{Copies: true, Macaroons: "u * / a"})
	h := start(t, Config{Approve: -1, SiteCA: x.CAFile})
	const secret = "the token of X itself"
	if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: "X", URL: x.URLs["https"], Token: secret}); err != nil {
		t.Fatal(err)
	}
	all := h.stock("/run1", "X", x, 4, 1000)
	b := h.FakeAgent("B")
	b.Register("")
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "B", Mode: transfer.Pull})
	require.NoError(t, err)
	for _, l := range b.Work().Leases {
		raw, err := base64.RawURLEncoding.DecodeString(l.Source.Token)
		if text := string(raw); err != nil || strings.Contains(text, secret) || !strings.Contains(text, "path:/data/run1") ||
			strings.Contains(text, "activity:"+tpc.MayWrite) {
			t.Errorf("%q, %v", raw, err)
		}
	}
	if _, err := h.Client.Cancel(t.Context(), q.ID, ""); err != nil {
		t.Fatal(err)
	}
	a := h.Agent("A", nil)
	a.Write("/run2", 4, 1000)
	h.Scan("/run2", "A", "/run2")
	for dataset, to := range map[string]string{"/run1": "A", "/run2": "X"} {
		mode := map[string]transfer.Mode{"A": transfer.Pull, "X": transfer.Push}[to]
		q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: dataset, To: to, Mode: mode, Tries: 2})
		require.NoError(t, err)
		if q = h.WaitEnd(q.ID); q.Status != transfer.Completed {
			t.Errorf("%s: %+v", dataset, q)
			h.Log(q.ID)
		}
	}
	for i := range 4 {
		same(t, fmt.Sprintf("/run2/f%d", i), a, &transfertest.Agent{T: t, Root: x.Data})
		if got, err := os.ReadFile(filepath.Join(a.Root, fmt.Sprintf("run1/f%d", i))); err != nil || string(got) != string(all[i]) {
			t.Errorf("file %d: %v", i, err)
		}
	}
}

// A site with a token pulls files from an agent's endpoint, and pushes files to it, with tokens of
// that endpoint. Only the coordinator has the site's own token.
func TestSiteDrivesCopiesWithAgents(t *testing.T) {
	tier.Slow(t, "moves files between servers")
	t.Parallel()
	s, _ := guarded(t, "secret of S")
	h := start(t, Config{Approve: -1, Plain: true})
	a := h.Agent("A", transfertest.Endpoint())
	if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: "S", URL: s.URLs["http"], Token: "secret of S"}); err != nil {
		t.Fatal(err)
	}
	h.stock("/run1", "S", s, 3, 1000)
	a.Write("/run2", 3, 1000)
	h.Scan("/run2", "A", "/run2")
	for dataset, to := range map[string]string{"/run1": "A", "/run2": "S"} {
		q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: dataset, To: to})
		require.NoError(t, err)
		if q = h.WaitEnd(q.ID); q.Status != transfer.Completed {
			t.Errorf("%s: %+v", dataset, q)
			h.Log(q.ID)
		}
		attempts, err := h.Client.Attempts(t.Context(), q.ID, 0, 0)
		if err != nil || slices.ContainsFunc(attempts, func(a transfer.Attempt) bool { return a.Mode != transfer.Third }) {
			t.Errorf("%s: %+v, %v", dataset, attempts, err)
		}
	}
}

// A copy whose token was replaced while it was running is completed with the new token.
func TestTokenReplacedInTheMiddle(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	x, keeps := guarded(t, "old")
	slow := startSlow(t, 2<<20)
	h := start(t, Config{Approve: -1, Plain: true})
	h.addSite("S", slow.url)
	add := func(secret string) {
		t.Helper()
		if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: "X", URL: x.URLs["http"], Token: secret}); err != nil {
			t.Fatal(err)
		}
	}
	add("old")
	h.stock("/run1", "S", slow.System, 1, 8<<20)
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "X", Tries: 1})
	require.NoError(t, err)
	until(t, "it moves", func() bool {
		keeps.mu.Lock()
		defer keeps.mu.Unlock()
		return keeps.calls["COPY"] > 0
	})
	keeps.good.Store("new")
	asked := keeps.saw("old")
	until(t, "the copy has ended, and what follows is refused", func() bool { return keeps.saw("old") > asked+1 })
	add("new")
	if q = h.WaitEnd(q.ID); q.Status != transfer.Completed || q.Count.Attempts != 1 {
		t.Errorf("%+v", q)
		h.Log(q.ID)
	}
	left, err := filepath.Glob(filepath.Join(x.Data, "run1", ".weir*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// A source that cannot copy does not fail files that another source has, or files that can be
// transferred in another mode.
func TestSourceThatCannotCopy(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	s, _ := guarded(t, "s")
	plain := &lab.System{Data: t.TempDir()}
	h := start(t, Config{Approve: -1, Plain: true})
	h.Agent("D", transfertest.PassiveEndpoint()) // its endpoint does not copy
	h.addSite("P", servetest.Start(t, serve.Config{Dir: plain.Data, ReadOnly: true}))
	if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: "S", URL: s.URLs["http"], Token: "s"}); err != nil {
		t.Fatal(err)
	}
	for site, at := range map[string]*lab.System{"P": plain, "S": s} {
		h.stock("/run1", site, at, 12, 1000)
	}
	h.stock("/run2", "P", plain, 3, 1000)
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "D", Mode: transfer.Third, Tries: 2})
	require.NoError(t, err)
	if q = h.WaitEnd(q.ID); q.Status != transfer.Completed {
		t.Errorf("%+v", q)
		h.Log(q.ID)
	}
	if q, err = h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run2", To: "D", Tries: 2}); err != nil {
		t.Fatal(err)
	}
	if q = h.WaitEnd(q.ID); q.Status != transfer.Completed {
		t.Errorf("any mode: %+v", q)
		h.Log(q.ID)
	}
	if q, err = h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run2", To: "S", Mode: transfer.Third, Tries: 2}); err != nil {
		t.Fatal(err)
	}
	if q = h.WaitEnd(q.ID); q.Status != transfer.Completed { // S pulls
		t.Errorf("to S: %+v", q)
		h.Log(q.ID)
	}
}

// Temporary files that cannot be removed at the end of a copy are removed when the site permits it
// again.
func TestLeftoversAreSwept(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	each(t, func(t *testing.T, conf Config) {
		conf.Plain = true
		x, keeps := guarded(t, "x")
		h := start(t, conf)
		if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: "X", URL: x.URLs["http"], Token: "x", Lend: true}); err != nil {
			t.Fatal(err)
		}
		a := h.FakeAgent("A")
		a.Register("")
		h.Register("/run1", "A", 3, 1000)
		q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "X", Tries: 1})
		require.NoError(t, err)
		var all []transfer.Outcome
		for len(all) < 3 {
			for _, l := range a.Work().Leases { // an agent that is killed during a copy leaves these
				path := filepath.Join(x.Data, transfer.PartName(l.Item, l.Epoch))
				require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("half"), 0o644)))
				all = append(all, transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Fault: transfer.Transient, Reason: "the test"})
			}
		}
		other := filepath.Join(x.Data, ".weir/17.3.part") // a file of an unknown copy
		require.NoError(t, os.WriteFile(other, nil, 0o644))
		if _, err := a.Report(all...); err != nil {
			t.Fatal(err)
		}
		if q = h.WaitEnd(q.ID); q.Count.Failed != 3 {
			t.Fatalf("%+v", q)
		}
		ctx := t.Context()
		count := func() (n int) {
			found, err := filepath.Glob(filepath.Join(x.Data, ".weir", "*"))
			require.NoError(t, err)
			return len(found)
		}
		due := func() {
			t.Helper()
			require.NoError(t, h.db.Exec(ctx, "UPDATE leftover SET due = 0"))
			require.NoError(t, h.copier.SweepSite(ctx, "X"))
		}
		keeps.good.Store("another")
		due()
		if n := count(); n != 4 {
			t.Errorf("%d files", n)
		}
		keeps.good.Store("x")
		due()
		if n := count(); n != 1 {
			t.Errorf("%d files are left, not the one that is not ours", n)
		}
		due()
		var rows int64
		if err := h.db.Read(ctx, func(tx *db.Tx) error { return tx.Row("SELECT COUNT(*) FROM leftover").Scan(&rows) }); err != nil || rows != 0 {
			t.Errorf("%d are still looked for, %v", rows, err)
		}
	})
}

// The temporary file of an attempt is removed even if an earlier attempt has put the file at the
// destination: the existence of the file does not prove that this attempt renamed it.
func TestLeftoverBesideTheFile(t *testing.T) {
	t.Parallel()
	x, _ := guarded(t, "x")
	h := start(t, Config{Approve: -1, Plain: true})
	if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: "X", URL: x.URLs["http"], Token: "x", Lend: true}); err != nil {
		t.Fatal(err)
	}
	a := h.FakeAgent("A")
	a.Register("")
	data := h.stock("/run1", "A", &lab.System{Data: t.TempDir()}, 1, 1000)[0]
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "X"})
	require.NoError(t, err)
	l := a.Work().Leases[0]
	part := filepath.Join(x.Data, transfer.PartName(l.Item, l.Epoch))
	for path, b := range map[string][]byte{part: []byte("half"), filepath.Join(x.Data, l.Dest.Path): data} {
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b, 0o644)))
	}
	a.Session, a.Holding = "two", map[int64]transfer.Lease{} // the agent was killed, and has lost its journal
	a.Register("")
	if q = h.WaitEnd(q.ID); q.Status != transfer.Completed {
		t.Fatalf("%+v", q)
	}
	require.NoError(t, h.db.Exec(t.Context(), "UPDATE leftover SET due = 0"))
	require.NoError(t, h.copier.SweepSite(t.Context(), "X"))
	if _, err := os.Stat(part); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the killed agent left stays: %v", err)
	}
}

// A file is not done if the destination has stored it under another name.
func TestMangledNameIsNotDone(t *testing.T) {
	t.Parallel()
	x, _ := guarded(t, "x")
	h := start(t, Config{Approve: -1, Plain: true})
	a := h.Agent("A", nil)
	a.Write("/run1", 2, 1000)
	h.Scan("/run1", "A", "/run1")
	front := mangler(t, x.URLs["http"])
	if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: "X", URL: front, Token: "x", Lend: true}); err != nil {
		t.Fatal(err)
	}
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "X", Tries: 2})
	require.NoError(t, err)
	if q = h.WaitEnd(q.ID); q.Status != transfer.Failed {
		t.Errorf("%+v", q)
	}
	e, err := h.Client.Explain(t.Context(), q.ID, "/run1/f0")
	if err != nil || len(e.Reasons) != 1 || !strings.Contains(e.Reasons[0].Text, "has no such file") {
		t.Errorf("%+v, %v", e, err)
	}
}

// mangler starts a proxy in front of a server that changes the names of files.
func mangler(t *testing.T, to string) string {
	t.Helper()
	return proxyTo(t, to, func(r *http.Request) {
		if r.Method == "MOVE" {
			r.Header.Set("Destination", fmt.Sprintf("%s/mangled-%d", to, time.Now().UnixNano()))
		}
	})
}

// proxyTo starts a proxy that forwards requests after change has modified them.
func proxyTo(t *testing.T, to string, change func(*http.Request)) string {
	t.Helper()
	at, err := url.Parse(to)
	require.NoError(t, err)
	s := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		change(r.Out)
	}})
	t.Cleanup(s.Close)
	return s.URL
}

// nginx, Apache and rclone report no adler32, and refuse to create folders implicitly (with 500,
// 409 and 403). Files arrive there nevertheless, without verification, if the request permits this.
func TestServersWithoutChecksums(t *testing.T) {
	t.Parallel()
	for _, server := range append(labtest.WebDAVServers(), "nginx") {
		t.Run(server, func(t *testing.T) {
			var dav *lab.System
			if server == "nginx" {
				dav = labtest.Start(t, lab.NginxConfig{})
			} else {
				dav = labtest.Start(t, lab.FolderConfig{Server: server, WebDAV: true})
			}
			h := start(t, Config{Approve: -1, Plain: true})
			a := h.Agent("A", nil)
			a.Write("/deep/er/run1", 3, 1000)
			require.NoError(t, os.WriteFile(filepath.Join(a.Root, "deep/er/run1/empty"), nil, 0o644))
			h.Scan("/deep/er/run1", "A", "/deep/er/run1")
			h.addSite("N", dav.URLs["http"])
			q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/deep/er/run1", To: "N", Tries: 2, Unchecked: true})
			require.NoError(t, err)
			if q = h.WaitEnd(q.ID); q.Status != transfer.Completed || q.Count.Done != 4 {
				t.Errorf("%+v", q)
				h.Log(q.ID)
			}
			for i := range 3 {
				same(t, fmt.Sprintf("/deep/er/run1/f%d", i), a, &transfertest.Agent{T: t, Root: dav.Data})
			}
			if left, err := filepath.Glob(filepath.Join(dav.Data, ".weir", "*")); err != nil || len(left) > 0 {
				t.Errorf("left: %v %v", left, err)
			}
			if q, err = h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/deep/er/run1", To: "N", Tries: 2}); err != nil {
				t.Fatal(err)
			}
			if q = h.WaitEnd(q.ID); q.Status == transfer.Completed { // the copies have not been read back
				t.Errorf("%+v", q)
			}
		})
	}
}

// If the destination reports no checksum, a corrupt source of a copy is still detected, by the
// agent that reads it, or by a source that reports its own checksum.
func TestSpoiledSourceOfUncheckedCopy(t *testing.T) {
	t.Parallel()
	dav := labtest.Start(t, lab.FolderConfig{Server: "apache2", WebDAV: true})
	s, _ := guarded(t, "s")
	h := start(t, Config{Approve: -1, Plain: true})
	a := h.Agent("A", nil)
	a.Write("/run1", 3, 1000)
	h.Scan("/run1", "A", "/run1")
	require.NoError(t, os.WriteFile(filepath.Join(a.Root, "run1/f1"), bytes.Repeat([]byte("x"), 1000), 0o644))
	if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: "S", URL: s.URLs["http"], Token: "s", Lend: true}); err != nil {
		t.Fatal(err)
	}
	h.addSite("N", dav.URLs["http"])
	h.stock("/run2", "S", s, 3, 1600)
	h.stock("/run3", "S", s, 3, 0)
	require.NoError(t, os.WriteFile(filepath.Join(s.Data, "run2/f1"), bytes.Repeat([]byte("x"), 1600), 0o644))
	for name, good := range map[string]int64{"/run1": 2, "/run2": 2, "/run3": 3} {
		q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: name, To: "N", Tries: 2, Unchecked: true})
		require.NoError(t, err)
		if q = h.WaitEnd(q.ID); q.Count.Done != good || q.Count.Failed != 3-good {
			t.Errorf("%s: %+v", name, q)
			h.Log(q.ID)
		}
		if _, err := os.Stat(filepath.Join(dav.Data, name, "f1")); err == nil && good < 3 {
			t.Errorf("%s/f1 is at its destination", name)
		}
	}
}

// Temporary files are looked for soon after a clock was set back that had delayed their removal.
func TestLeftoversAfterAClockWasSet(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	either(t, func(t *testing.T, conf Config) {
		s, _ := guarded(t, "s")
		conf.Plain = true
		h := start(t, conf)
		if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: "S", URL: s.URLs["http"], Token: "s", Lend: true}); err != nil {
			t.Fatal(err)
		}
		l := transfer.Lease{Item: 7, Epoch: 1, Mode: transfer.Third, Dest: transfer.End{Site: "S", Path: "f"}}
		require.NoError(t, h.copier.RecordTemporaries(t.Context(), []transfer.Lease{l}))
		require.NoError(t, h.db.Exec(t.Context(), "UPDATE leftover SET due = ?", h.now().Add(3*time.Hour)))
		require.NoError(t, h.copier.SweepSoon(t.Context()))
		var due time.Time
		require.NoError(t, h.db.Read(t.Context(), func(tx *db.Tx) error { return tx.Row("SELECT due FROM leftover").Scan(db.When(&due)) }))
		if due.After(h.now().Add(2 * time.Minute)) {
			t.Errorf("it is looked for at %v", due)
		}
	})
}

// thirdParty returns an extension that makes third-party copies with any server.
func thirdParty() []serve.Extension {
	return []serve.Extension{tep.NewCopier(tep.CopyOptions{Guard: tpc.Guard{Hosts: []string{"*"}, Private: true}})}
}
