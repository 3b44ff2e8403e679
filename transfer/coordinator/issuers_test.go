package coordinator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/internal/wire"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer/access"
	"weir/transfer/fts"
	"weir/transfer/state"
)

// A logged is a log that a test can read.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// bearing returns a client with a token of an external issuer.
func (h *service) bearing(raw string) *ftsUser {
	to := &http.Transport{TLSClientConfig: wire.Pinned(h.Pin())}
	h.T.Cleanup(to.CloseIdleConnections)
	return &ftsUser{h, raw, &http.Client{Transport: to}}
}

type ftsWho struct {
	Message    string
	DN         []string `json:"dn"`
	User       string   `json:"user_dn"`
	VOs        []string `json:"vos"`
	VOIDs      []string `json:"vos_id"`
	Roles      []string `json:"roles"`
	Scopes     []string `json:"voms_cred"`
	Method     string   `json:"method"`
	Delegation string   `json:"delegation_id"`
	Root       bool     `json:"is_root"`
}

// Users of external issuers have the roles of their scopes and groups, and FTS's names. Invalid
// tokens are refused with a reason, and the log contains no part of a token.
func TestExternalIssuers(t *testing.T) {
	t.Parallel()
	iam := labtest.StartIAM(t, labtest.IAMConfig{})
	out := &logged{}
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback, SiteCA: iam.CAFile, Log: slog.New(slog.NewTextHandler(out,
		&slog.HandlerOptions{Level: slog.LevelDebug})), Issuers: []access.Issuer{{URL: iam.URL, Audience: []string{"https://fts.example.org"},
		Roles: map[string][]string{access.FTSScope: {access.MaySubmit}, "/atlas/admin": {access.MayAdmin}}}}})
	var tokens []string
	ask := func(sub, scope string, claims map[string]any) (int, ftsWho) {
		raw := iam.Token(sub, scope, claims)
		tokens = append(tokens, raw)
		var who ftsWho
		status := h.bearing(raw).ask("GET", "/whoami", "", &who)
		return status, who
	}
	host := strings.TrimSuffix(strings.TrimPrefix(iam.URL, "https://"), "/")
	groups := map[string]any{"wlcg.groups": []string{"/atlas", "/atlas/admin"}, "aud": "https://fts.example.org"}
	status, who := ask("f3a1", access.FTSScope+" offline_access storage.read:/x", groups)
	if status != http.StatusOK || who.User != "f3a1" || who.DN[0] != "f3a1" || who.VOs[0] != "atlas" || who.VOIDs[0] != fts.VOID("atlas") ||
		!who.Root || !slices.Equal(who.Scopes, []string{access.FTSScope, "offline_access"}) || who.Method != "oauth2" ||
		len(who.Delegation) != 16 {
		t.Errorf("%d %+v", status, who)
	}
	status, who = ask("f3a1", access.FTSScope, map[string]any{"wlcg.ver": nil, "jti": nil})
	if status != http.StatusOK || who.Root || !slices.Equal(who.Roles, []string{access.MaySubmit}) || who.VOs[0] != "localhost" ||
		who.Method != "oauth2" {
		t.Errorf("%d %+v", status, who)
	}
	now := time.Now()
	for name, claims := range map[string]map[string]any{
		"it expired":                     {"exp": now.Add(-time.Minute).Unix()},
		"until when":                     {"exp": nil},
		"not good yet":                   {"nbf": now.Add(time.Hour).Unix()},
		"another service":                {"aud": "https://se.example.org"},
		"another service (aud)":          {"aud": nil},
		"is not trusted here":            {"iss": "https://evil.example.org/"},
		"its subject is no name":         {"sub": "a\nb"},
		"version 1 of the WLCG profile":  {"wlcg.ver": "2.0"},
		"whose it is":                    {"sub": nil},
		"has the wrong type, or is said": {"scope": 5},
	} {
		status, who := ask("f3a1", access.FTSScope, claims)
		if status != http.StatusUnauthorized || !strings.Contains(who.Message, name) {
			t.Errorf("%s: %d %+v", name, status, who)
		}
	}
	good := iam.Token("f3a1", access.FTSScope, nil)
	parts := strings.Split(good, ".")
	for name, raw := range map[string]string{
		"another signature": parts[0] + "." + parts[1] + "." + strings.Split(tokens[0], ".")[2],
		"alg none":          "eyJhbGciOiJub25lIn0." + parts[1] + ".",
		"broken":            good[:len(good)/2],
		"not one":           strings.Repeat("x", 5000),
	} {
		var who ftsWho
		if status := h.bearing(raw).ask("GET", "/whoami", "", &who); status != http.StatusUnauthorized || who.Message == "" {
			t.Errorf("%s: %d %+v", name, status, who)
		}
	}

	// A user without a scope or group that gives a role is identified, but has no permissions.
	// Issuers cannot give the roles of weir directly.
	for _, scope := range []string{"openid", "weir.admin", "fts:submit-transfers"} {
		raw := iam.Token("nobody", scope, nil)
		var refused struct{ Message string }
		if status := h.bearing(raw).ask("GET", "/jobs", "", &refused); status != http.StatusForbidden ||
			!strings.Contains(refused.Message, "role") {
			t.Errorf("%s: %d %+v", scope, status, refused)
		}
	}

	// A user with the same name at another issuer is a different user.
	body := `{"files":[{"sources":["http://127.0.0.1:9/a"],"destinations":["http://127.0.0.1:9/b"],"filesize":1}]}`
	mine := h.bearing(good)
	id := mine.submit(body)
	var job struct {
		User string `json:"user_dn"`
		VO   string `json:"vo_name"`
		Cred string `json:"cred_id"`
	}
	if status := mine.ask("GET", "/jobs/"+id, "", &job); status != http.StatusOK || job.User != "f3a1" || job.VO != "localhost" ||
		len(job.Cred) != 16 {
		t.Errorf("%d %+v", status, job)
	}
	var list []ftsJob
	if status := mine.ask("GET", "/jobs?user_dn=f3a1&dlg_id="+job.Cred, "", &list); status != http.StatusOK || len(list) != 1 {
		t.Errorf("%d %+v", status, list)
	}
	var one ftsJob
	if status := h.ftsUser("f3a1", access.MaySubmit).ask("DELETE", "/jobs/"+id, "", &one); status != http.StatusForbidden {
		t.Errorf("%d %+v", status, one)
	}
	if status := mine.ask("DELETE", "/jobs/"+id, "", &one); status != http.StatusOK {
		t.Errorf("%d %+v", status, one)
	}
	if text := out.String(); !strings.Contains(text, "f3a1@"+host) {
		t.Errorf("the log has no name: %s", text)
	}
	noTokenIn(t, "the log", out.String(), append(tokens, good)...)
}

// Tokens that are signed with a new key of an issuer (ES256) are valid after weir has requested the
// keys again, at most once in a minute. Tokens of a former key are valid until this key is
// withdrawn. While the issuer does not respond, the known keys remain valid for a day.
func TestIssuerKeys(t *testing.T) {
	t.Parallel()
	iam := labtest.StartIAM(t, labtest.IAMConfig{ES256: true})
	var passed atomic.Int64
	now := func() time.Time { return time.Now().Round(0).Add(time.Duration(passed.Load())) }
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback, SiteCA: iam.CAFile, Now: now, Issuers: []access.Issuer{{URL: iam.URL}}})
	holder := func() *ftsUser {
		return h.bearing(iam.Token("ada", access.FTSScope, map[string]any{"exp": time.Now().Add(100 * time.Hour).Unix()}))
	}
	check := func(what string, u *ftsUser, want int) {
		t.Helper()
		var who ftsWho
		if status := u.ask("GET", "/whoami", "", &who); status != want {
			t.Errorf("%s: %d instead of %d: %s", what, status, want, who.Message)
		}
	}
	pass := func(d time.Duration) { passed.Add(int64(d)) }
	former := holder()
	check("the first key", former, http.StatusOK)
	iam.NewKey()
	second := holder()
	check("a new key, at once", second, http.StatusUnauthorized)
	pass(61 * time.Second)
	check("a new key, after a minute", second, http.StatusOK)
	check("the former key, which is still published", former, http.StatusOK)
	iam.Withdraw()
	iam.Down(true)
	pass(2 * time.Hour)
	check("the former key, while the issuer does not answer", former, http.StatusOK)
	check("the second key, while the issuer does not answer", second, http.StatusOK)
	iam.Down(false)
	pass(61 * time.Second)
	check("the former key, withdrawn", former, http.StatusUnauthorized)
	check("the second key, after that", second, http.StatusOK)
	iam.NewKey()
	iam.Down(true)
	third := holder()
	pass(61 * time.Second)
	check("a third key that cannot be asked for", third, http.StatusUnauthorized)
	pass(25 * time.Hour)
	check("known keys, after a day", second, http.StatusServiceUnavailable)
	iam.Down(false)
	pass(61 * time.Second)
	check("known keys, when the issuer answers again", second, http.StatusOK)
	check("the third key, when the issuer answers again", third, http.StatusOK)
}

// noTokenIn fails t if text contains a part of a token.
func noTokenIn(t *testing.T, where, text string, tokens ...string) {
	t.Helper()
	for _, raw := range tokens {
		for part := range strings.SplitSeq(raw, ".") {
			if len(part) > 40 && strings.Contains(text, part[len(part)-40:]) {
				t.Errorf("%s has a part of a token", where)
				return
			}
		}
	}
}

// startIAM starts two data servers that trust an issuer, and a coordinator that renews the issuer's
// tokens.
func startIAM(t *testing.T, c labtest.IAMConfig, more ...func(*Config)) (*ftsPair, *labtest.IAM, *logged) {
	t.Helper()
	iam, out := labtest.StartIAM(t, c), &logged{}
	x := labtest.Start(t, lab.XRootDConfig{Copies: true, Auth: "ztn", Issuer: iam.URL, Keys: iam.Keys()})
	y := labtest.Start(t, lab.XRootDConfig{Copies: true, Auth: "ztn", Issuer: iam.URL, Keys: iam.Keys(), Authority: x})
	both := filepath.Join(t.TempDir(), "ca.pem")
	var text []byte
	for _, file := range []string{x.CAFile, iam.CAFile} {
		some, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, some...)
	}
	if err := os.WriteFile(both, text, 0o600); err != nil {
		t.Fatal(err)
	}
	conf := Config{Approve: -1, SiteCA: both, JobArea: tpc.Loopback,
		Issuers: []access.Issuer{{URL: iam.URL, ClientID: "weir", ClientSecret: iam.Secret}},
		Log:     slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, set := range more {
		set(&conf)
	}
	return &ftsPair{start(t, conf), x, y}, iam, out
}

// Tokens live for three seconds, and files are transferred for many of these lifetimes. No file
// fails, and the issuer receives one request for each scope and lifetime, independently of the
// number of tokens, jobs and files. The times stand for 20 minutes and hours.
func TestTokensOfJobsAreRenewed(t *testing.T) {
	tier.Quiet(t, "tokens that live for three seconds, renewed for a thousand files")
	tier.Slow(t, "waits for tokens to expire")
	for name, c := range map[string]labtest.IAMConfig{
		"refresh tokens": {Life: 3 * time.Second, Rotate: true},
		"exchange only":  {Life: 3 * time.Second, Exchange: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			renewed(t, c)
		})
	}
}

const (
	jobsRenewed  = 6   // at once
	filesRenewed = 160 // files of each job
	lifetimes    = 4   // for which jobs are submitted, at least
)

func renewed(t *testing.T, c labtest.IAMConfig) {
	p, iam, out := startIAM(t, c, func(c *Config) { c.Rules.Max = 1 })
	data := bytes.Repeat([]byte("with renewed tokens\n"), 1000)
	const read, write = "storage.read:/", "storage.modify:/ storage.read:/"
	u := p.bearing(iam.Token("rucio", access.FTSScope, map[string]any{"exp": time.Now().Add(time.Hour).Unix()}))
	begin := time.Now()
	var ids, tokens []string
	submit := func() { // a job with its own tokens
		j := len(ids)
		from, to := iam.Token("rucio", read, nil), iam.Token("rucio", write, nil)
		tokens = append(tokens, from, to)
		var files []string
		for i := range filesRenewed {
			name := fmt.Sprintf("r/f%d", j*filesRenewed+i)
			p.put(p.x, name, data)
			files = append(files, p.pair(name, fmt.Sprintf(
				`,"filesize":%d,"checksum":"ADLER32:%s","source_tokens":[%q],"destination_tokens":[%q]`, len(data), adlerOf(data), from, to)))
		}
		ids = append(ids, u.submit(`{"files":[`+strings.Join(files, ",")+`],"params":{"verify_checksum":"both","retry":-1}}`))
	}
	for range jobsRenewed {
		submit()
	}
	for n := 0; n < len(ids); n++ {
		if j := u.ended(ids[n]); j.State != "FINISHED" {
			t.Errorf("%s: %s", j.State, j.Reason)
			for _, f := range j.Files {
				if f.State != "FINISHED" {
					t.Fatalf("%+v\n%s", f, out)
				}
			}
		}
		if time.Since(begin) < lifetimes*c.Life {
			submit()
		}
	}
	took := time.Since(begin)
	lives := took.Seconds() / c.Life.Seconds()
	perScope := map[string]int{}
	for what, n := range iam.Asked() {
		_, scope, _ := strings.Cut(what, " ")
		perScope[scope] += n
	}
	t.Logf("%d files, %d tokens, %v, %.1f lifetimes: %v", len(ids)*filesRenewed, len(tokens), took, lives, iam.Asked())
	if len(perScope) != 2 {
		t.Errorf("requests: %v", perScope)
	}
	// A token is exchanged after three quarters of its lifetime, which is rounded down to whole
	// seconds. The first two requests determine the method.
	most := int(took.Seconds()/(c.Life.Seconds()-1)*4/3) + 3
	for scope, n := range perScope {
		if n < int(lives)-2 || n > most {
			t.Errorf("%d requests for %s in %.1f lifetimes", n, scope, lives)
		}
	}
	noTokenIn(t, "the log", out.String(), tokens...)
	p.End()
	for _, name := range []string{state.TableFile, state.TableFile + "-wal"} {
		text, err := os.ReadFile(filepath.Join(p.conf.State, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		noTokenIn(t, name, string(text), tokens...)
	}
}

// A gate is an address at which nothing listens until it is opened. After that it relays
// connections to a server.
type gate struct {
	t           *testing.T
	address, to string
}

// newGate returns a closed gate to the server at the beginning of to, which may contain a path.
func newGate(t *testing.T, to string) *gate {
	t.Helper()
	_, port, _ := net.SplitHostPort(labtest.Address(t))
	to, _, _ = strings.Cut(to, "/")
	host, _, _ := net.SplitHostPort(to)
	return &gate{t, net.JoinHostPort(host, port), to}
}

func (g *gate) open() {
	g.t.Helper()
	_, port, _ := net.SplitHostPort(g.address)
	l, err := new(net.ListenConfig).Listen(g.t.Context(), "tcp", "127.0.0.1:"+port)
	if err != nil {
		g.t.Fatal(err)
	}
	var all sync.WaitGroup
	over := make(chan struct{})
	g.t.Cleanup(func() {
		_ = l.Close()
		close(over)
		all.Wait()
	})
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := new(net.Dialer).DialContext(context.WithoutCancel(g.t.Context()), "tcp", g.to)
			if err != nil {
				_ = in.Close()
				continue
			}
			all.Go(func() { // connections of the coordinator stay open for a minute
				<-over
				_, _ = in.Close(), out.Close()
			})
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				all.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					_ = way[0].Close()
					_ = way[1].Close()
				})
			}
		}
	})
}

// A token that expired while its file waited is renewed at the start of the copy, also after a
// restart of the coordinator. While the issuer does not respond, the file waits without using an
// attempt. If the issuer refuses to renew a token, the file fails with that reason.
func TestTokensOfWaitingJobs(t *testing.T) {
	tier.Slow(t, "waits for tokens to expire")
	t.Parallel()
	const life = 10 * time.Second // busy machines need seconds to exchange a token
	p, iam, out := startIAM(t, labtest.IAMConfig{Life: life})
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(out.String())
		}
	})
	data := []byte("late")
	p.put(p.x, "w/f", data)
	u := p.bearing(iam.Token("rucio", access.FTSScope, map[string]any{"exp": time.Now().Add(time.Hour).Unix()}))
	first, second := iam.Token("rucio", "storage.read:/", nil), iam.Token("rucio", "storage.modify:/ storage.read:/", nil)
	tokens := fmt.Sprintf(`,"filesize":4,"source_tokens":[%q],"destination_tokens":[%q]`, first, second)
	gate := newGate(t, strings.TrimPrefix(p.y.URLs["https"], "https://"))
	pair := func(name string) string {
		return strings.ReplaceAll(p.pair(name, tokens), gate.to, gate.address)
	}
	id := u.submit(`{"files":[` + pair("w/f") + `],"params":{"verify_checksum":"none"}}`)
	renewed := func(n int) func() bool {
		return func() bool { return strings.Count(out.String(), "token of jobs renewed") >= n }
	}
	until(t, "the tokens are exchanged", renewed(2))
	p.End()
	iam.Down(true)
	expired := time.Now().Add(life + time.Second)
	until(t, "the tokens expire", func() bool { return time.Now().After(expired) })
	gate.open()
	p.Begin()
	until(t, "the file waits for the issuer", func() bool { return strings.Contains(out.String(), "token of jobs not renewed") })
	iam.Down(false)
	if j := u.ended(id); j.State != "FINISHED" {
		t.Errorf("%+v\n%s", j, out)
	}
	noTokenIn(t, "the log", out.String(), first, second)

	// A token that expired before it was exchanged can no longer be renewed.
	third := iam.Token("rucio", "storage.read:/ storage.stage:/", nil)
	long := iam.Token("rucio", "storage.modify:/", map[string]any{"exp": time.Now().Add(time.Hour).Unix()})
	iam.Down(true)
	later := newGate(t, strings.TrimPrefix(p.x.URLs["https"], "https://"))
	tokens = fmt.Sprintf(`,"filesize":4,"source_tokens":[%q],"destination_tokens":[%q]`, third, long)
	id = u.submit(`{"files":[` + strings.ReplaceAll(p.pair("w/h", tokens), later.to, later.address) + `],"params":{"verify_checksum":"none"}}`)
	if j := u.ended(id); j.State != "FAILED" || !strings.Contains(j.Files[0].Reason, "can only be exchanged before it expires") {
		t.Errorf("%+v\n%s", j, out)
	}
	iam.Down(false)

	// A submission with an invalid token is refused. The token for reading was exchanged once.
	var no struct{ Message string }
	old := iam.Token("rucio", "storage.read:/", map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})
	bad := fmt.Sprintf(`,"filesize":4,"source_tokens":[%q],"destination_tokens":[%q]`, old, second)
	if status := u.ask("POST", "/jobs", `{"files":[`+p.pair("w/g", bad)+`]}`, &no); status != http.StatusBadRequest ||
		!strings.Contains(no.Message, "Failed to validate access-token") || !strings.Contains(no.Message, "expired") {
		t.Errorf("%d %+v", status, no)
	}
	if n := iam.Asked(); n["token-exchange storage.read:/"] != 1 {
		t.Errorf("%v", n)
	}
}

// A refresh token that expires when it is not used is used in time as long as a job waits, also
// after a restart of the coordinator.
func TestRefreshTokensEnd(t *testing.T) {
	tier.Full(t, "refresh tokens that end")
	t.Parallel()
	p, iam, out := startIAM(t, labtest.IAMConfig{Life: 3 * time.Second, Idle: 12 * time.Second})
	p.put(p.x, "w/f", []byte("late"))
	gate := newGate(t, strings.TrimPrefix(p.y.URLs["https"], "https://"))
	const read, write = "storage.read:/", "storage.modify:/ storage.read:/"
	tokens := fmt.Sprintf(`,"filesize":4,"source_tokens":[%q],"destination_tokens":[%q]`, iam.Token("rucio", read, nil),
		iam.Token("rucio", write, nil))
	u := p.bearing(iam.Token("rucio", access.FTSScope, map[string]any{"exp": time.Now().Add(time.Hour).Unix()}))
	id := u.submit(`{"files":[` + strings.ReplaceAll(p.pair("w/f", tokens), gate.to, gate.address) + `],"params":{"verify_checksum":"none"}}`)
	refreshed := func(n int) func() bool {
		return func() bool { a := iam.Asked(); return a["refresh_token "+read] >= n && a["refresh_token "+write] >= n }
	}
	until(t, "both are refreshed", refreshed(1))
	p.End()
	p.Begin()
	until(t, "both are refreshed again", refreshed(3))
	gate.open()
	if j := u.ended(id); j.State != "FINISHED" {
		t.Errorf("%+v\n%s", j, out)
	}
	for _, scope := range []string{read, write} {
		if n := iam.Asked()["token-exchange "+scope]; n != 1 {
			t.Errorf("%s was exchanged %d times", scope, n)
		}
	}
}
