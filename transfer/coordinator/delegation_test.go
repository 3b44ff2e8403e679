package coordinator

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/require"
	"weir/internal/tpc"
	"weir/internal/wire"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage/gridcert/gridcerttest"
	"weir/transfer/access"
	"weir/transfer/fts/rest"
)

// A proxyRig is a coordinator with two real servers. Its users have certificates of the servers'
// authority. The servers admit the lab's user with a certificate, a proxy or a macaroon.
type proxyRig struct {
	*ftsPair
	log   *logged
	ahead atomic.Int64 // offset of the coordinator's clock in nanoseconds
}

const labUser = "weir lab user"

func startProxies(t *testing.T, version string, macaroons bool, more ...func(*Config)) *proxyRig {
	t.Helper()
	servers := lab.XRootDConfig{Version: version, Copies: true, Users: true, Macaroons: "u ada /data a"}
	if !macaroons {
		file := gridcerttest.WriteFile(t, 0o644, "rules", []byte("u ada /data a\n"))
		for _, dir := range []string{filepath.Dir(file), filepath.Dir(filepath.Dir(file))} { // the servers' user reads it
			require.NoError(t, os.Chmod(dir, 0o755))
		}
		servers.Macaroons, servers.Extra = "", "\nofs.authorize 1\nacc.authdb "+file
	}
	r := &proxyRig{log: &logged{}}
	x := labtest.Start(t, servers)
	servers.Authority = x
	y := labtest.Start(t, servers)
	conf := Config{Approve: -1, SiteCA: x.CAFile, CA: x.CAFile, JobArea: tpc.Loopback, Names: map[string][]string{labUser: {access.MaySubmit}},
		Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now: func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }}
	for _, set := range more {
		set(&conf)
	}
	r.ftsPair = &ftsPair{start(t, conf), x, y}
	return r
}

// A gridUser sends requests to a coordinator with a certificate or a proxy.
type gridUser struct {
	h    *service
	cert tls.Certificate
	http *http.Client
}

func (h *service) gridUser(cert tls.Certificate) *gridUser {
	conf := wire.Pinned(h.Pin())
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	to := &http.Transport{TLSClientConfig: conf}
	h.T.Cleanup(to.CloseIdleConnections)
	return &gridUser{h, cert, &http.Client{Transport: to}}
}

func (h *service) gridUserOf(certFile, keyFile string) *gridUser {
	h.T.Helper()
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		h.T.Fatal(err)
	}
	return h.gridUser(cert)
}

func (u *gridUser) ask(method, path string, body []byte) (int, []byte) {
	u.h.T.Helper()
	req, err := http.NewRequestWithContext(u.h.T.Context(), method, u.h.URL()+rest.Path+path, bytes.NewReader(body))
	if err != nil {
		u.h.T.Fatal(err)
	}
	res, err := u.http.Do(req)
	if err != nil {
		u.h.T.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		u.h.T.Fatal(err)
	}
	return res.StatusCode, text
}

func (u *gridUser) whoami() (who ftsWho) {
	u.h.T.Helper()
	status, text := u.ask("GET", "/whoami", nil)
	if err := json.Unmarshal(text, &who); err != nil || status != http.StatusOK {
		u.h.T.Fatalf("%d %s: %v", status, text, err)
	}
	return who
}

// request returns the public key for which a proxy must be signed.
func (u *gridUser) request(id string) crypto.PublicKey {
	u.h.T.Helper()
	status, text := u.ask("GET", "/delegation/"+id+"/request", nil)
	block, _ := pem.Decode(text)
	if status != http.StatusOK || block == nil || block.Type != "CERTIFICATE REQUEST" {
		u.h.T.Fatalf("%d %s", status, text)
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || csr.CheckSignature() != nil {
		u.h.T.Fatal(err)
	}
	return csr.PublicKey
}

// chain returns the user's certificates, which follow a proxy in its chain.
func (u *gridUser) chain() (all []*x509.Certificate) {
	u.h.T.Helper()
	for _, der := range u.cert.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			u.h.T.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// delegate delegates a proxy that change has modified.
func (u *gridUser) delegate(change func(*x509.Certificate)) (int, []byte) {
	u.h.T.Helper()
	id := u.whoami().Delegation
	chain, signer := u.chain(), u.cert.PrivateKey.(crypto.Signer)
	proxy := gridcerttest.SignProxy(u.h.T, chain[0], signer, u.request(id), change)
	return u.ask("PUT", "/delegation/"+id+"/credential", access.PEM(append([]*x509.Certificate{proxy}, chain...)))
}

// fts runs a command of FTS's client.
func (r *proxyRig) fts(cert, key, name string, args ...string) (string, error) {
	r.T.Helper()
	return r.ftsCommand(labtest.FTS(r.T), []string{"--cert", cert, "--key", key}, name, args...)
}

// FTS's client delegates proxies with a certificate and with a proxy. The copies of a job use them:
// they authenticate to real servers with the proxies and with macaroons. No key is in the database
// or in the log in plain text.
func TestDelegatedProxies(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			testDelegatedProxies(t, version)
		})
	}
}

func testDelegatedProxies(t *testing.T, version string) {
	r := startProxies(t, version, true)
	data := bytes.Repeat([]byte("by proxy\n"), 20_000)
	for i, c := range []struct{ cert, key string }{{r.x.UserCert, r.x.UserKey}, {r.x.Proxy, r.x.Proxy}} {
		out, err := r.fts(c.cert, c.key, "fts-rest-whoami")
		if err != nil || !strings.Contains(out, "/CN="+labUser) || strings.Contains(out, "/CN="+labUser+"/") {
			t.Errorf("%v\n%s", err, out)
		}
		out, err = r.fts(c.cert, c.key, "fts-rest-delegate", "-H", "5", "--force")
		if err != nil || !strings.Contains(out, "Delegation id: ") {
			t.Fatalf("%v\n%s", err, out)
		}
		name := fmt.Sprintf("a/f%d", i)
		r.put(r.x, name, data)
		out, err = r.fts(c.cert, c.key, "fts-rest-transfer-submit", "-b", "-i", "1", "--compare-checksum", r.x.URLs["https"]+"/"+name,
			r.y.URLs["https"]+"/deep/"+name, "ADLER32:"+adlerOf(data))
		if err != nil || !strings.Contains(out, "Job finished with state FINISHED") {
			t.Fatalf("%v\n%s\n%s", err, out, r.log)
		}
		if got, err := os.ReadFile(filepath.Join(r.y.Data, "deep", name)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(r.y.Data, "deep", "a", ".weir*")); err != nil || len(left) > 0 {
		t.Errorf("temporaries are left: %v, %v", left, err)
	}
	u := r.gridUserOf(r.x.Proxy, r.x.Proxy)
	id := u.whoami().Delegation
	var state struct {
		Until string `json:"termination_time"`
	}
	status, text := u.ask("GET", "/delegation/"+id, nil)
	err := json.Unmarshal(text, &state)
	ends, parseErr := time.Parse("2006-01-02T15:04:05", state.Until)
	err = errors.Join(err, parseErr)
	if left := time.Until(ends); status != http.StatusOK || err != nil || left < 4*time.Hour || left > 6*time.Hour {
		t.Errorf("%d %s, %v", status, text, err)
	}
	if status, text := u.ask("GET", "/whoami/certificate", nil); status != http.StatusOK || !bytes.Equal(text, access.PEM(u.chain())) {
		t.Errorf("%d %s", status, text)
	}

	// The keys are encrypted in the database.
	err = r.db.Read(t.Context(), func(tx *db.Tx) error {
		rows, err := tx.Query("SELECT request, proxy FROM delegation")
		if err != nil {
			return err
		}
		n := 0
		for ; rows.Next(); n++ {
			var request, proxy []byte
			if err := rows.Scan(&request, &proxy); err != nil {
				return err
			}
			if len(request) < 1000 || len(proxy) < 2000 || bytes.Contains(proxy, []byte("PRIVATE")) || bytes.Contains(proxy, []byte("CERTIFICATE")) {
				return fmt.Errorf("not encrypted: %q", proxy)
			}
		}
		if n != 1 {
			return fmt.Errorf("%d delegations", n)
		}
		return rows.Err()
	})
	if err != nil {
		t.Error(err)
	}
	if text := r.log.String(); strings.Contains(text, "PRIVATE KEY") || strings.Contains(text, "BEGIN CERT") {
		t.Errorf("secrets in the log:\n%s", text)
	}

	// A removed proxy is not used.
	if status, text := u.ask("DELETE", "/delegation/"+id, nil); status != http.StatusNoContent {
		t.Errorf("%d %s", status, text)
	}
	if status, text := u.ask("DELETE", "/delegation/"+id, nil); status != http.StatusNotFound ||
		!strings.Contains(string(text), "Delegated credentials not found") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := u.ask("GET", "/delegation/"+id, nil); status != http.StatusOK || string(text) != "null" {
		t.Errorf("%d %s", status, text)
	}
	r.put(r.x, "a/without", data)
	j := u.ended(u.submit(r.pair("a/without", "")))
	if j.State != "FAILED" || !strings.Contains(j.Files[0].Reason, "403") {
		t.Errorf("%+v", j)
	}
}

func (u *gridUser) submit(files string) string {
	u.h.T.Helper()
	var out struct {
		ID string `json:"job_id"`
	}
	status, text := u.ask("POST", "/jobs", []byte(`{"files":[`+files+`],"params":{"retry":-1}}`))
	if err := json.Unmarshal(text, &out); err != nil || status != http.StatusOK {
		u.h.T.Fatalf("%d %s", status, text)
	}
	return out.ID
}

func (u *gridUser) job(id string) (j ftsJob) {
	u.h.T.Helper()
	status, text := u.ask("GET", "/jobs/"+id+"?files=file_id,file_state,reason", nil)
	if err := json.Unmarshal(text, &j); err != nil || status != http.StatusOK {
		u.h.T.Fatalf("%d %s", status, text)
	}
	return j
}

func (u *gridUser) ended(id string) (j ftsJob) {
	u.h.T.Helper()
	until(u.h.T, "the job ends", func() bool {
		j = u.job(id)
		return j.Ended != ""
	})
	return j
}

// A certificate that its authority has revoked is refused as soon as the revocation list is read
// again.
func TestRevokedUser(t *testing.T) {
	t.Parallel()
	ca := gridcerttest.NewCA(t, "Revoked")
	dir := gridcerttest.CADir(t, ca)
	var ahead atomic.Int64
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback, CA: dir, Names: map[string][]string{"Ada Tester": {access.MaySubmit}},
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	user := ca.User(t)
	u := h.gridUser(tls.Certificate{Certificate: [][]byte{user.Cert.Raw}, PrivateKey: user.Key})
	u.whoami()
	gridcerttest.WriteList(t, dir, ca.Revoke(t, user))
	ahead.Store(int64(11 * time.Minute))
	if status, text := u.ask("GET", "/whoami", nil); status != http.StatusUnauthorized || !strings.Contains(string(text), "was revoked at") {
		t.Errorf("%d %s", status, text)
	}
}

// Proxies that break a rule, and proxies of other users, are refused with FTS's status and a
// reason.
func TestDelegationRefusals(t *testing.T) {
	t.Parallel()
	ca, foreign := gridcerttest.NewCA(t, "Delegation"), gridcerttest.NewCA(t, "Foreign")
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback, CA: gridcerttest.WriteFile(t, 0o644, "ca.pem", ca.CertPEM()),
		Names: map[string][]string{"Ada Tester": {access.MaySubmit}, "Bob": {access.MaySubmit}}})
	user := ca.User(t)
	pairOf := func(p gridcerttest.Pair) tls.Certificate {
		return tls.Certificate{Certificate: [][]byte{p.Cert.Raw}, PrivateKey: p.Key}
	}
	u := h.gridUser(pairOf(user))
	bob := h.gridUser(pairOf(ca.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "Bob"}})))
	nobody := h.gridUser(pairOf(ca.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "nobody"}})))
	id := u.whoami().Delegation
	credential := "/delegation/" + id + "/credential"
	refused := func(what string, status int, text []byte, want int, reason string) {
		t.Helper()
		var r struct{ Status, Message string }
		if err := json.Unmarshal(text, &r); err != nil || status != want || !strings.Contains(r.Message, reason) {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	status, text := u.ask("PUT", credential, []byte("x"))
	refused("without a request", status, text, http.StatusBadRequest, "No credential cache found")
	key := u.request(id)
	if bits := key.(*rsa.PublicKey).N.BitLen(); bits != 2048 {
		t.Errorf("the key has %d bits", bits)
	}
	if !u.request(id).(*rsa.PublicKey).Equal(key) {
		t.Error("clients that delegate at the same time have different keys")
	}
	for _, path := range []string{"", "/request"} {
		status, text = bob.ask("GET", "/delegation/"+id+path, nil)
		refused("of another user", status, text, http.StatusForbidden, "do not match")
	}
	status, text = bob.ask("DELETE", "/delegation/"+id, nil)
	refused("removed by another user", status, text, http.StatusForbidden, "do not match")
	none := nobody.whoami().Delegation
	status, text = nobody.ask("GET", "/delegation/"+none+"/request", nil)
	refused("without a role", status, text, http.StatusForbidden, "role")

	sign := func(by gridcerttest.Pair, key any, change func(*x509.Certificate)) *x509.Certificate {
		return gridcerttest.SignProxy(t, by.Cert, by.Key, key, change)
	}
	bobs := gridcerttest.Pair{Cert: bob.chain()[0], Key: bob.cert.PrivateKey.(*rsa.PrivateKey)}
	inherit, limited := asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 21, 1}, asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 3536, 1, 1, 1, 9}
	first := user.Sign(t, &x509.Certificate{}) // used for its key
	short := gridcerttest.Pair{Key: first.Key, Cert: sign(user, &first.Key.PublicKey, func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{gridcerttest.ProxyInfo(t, 0, inherit)}
	})}
	strange, forged := foreign.User(t), *user.Cert
	forged.PublicKey = bobs.Key.Public()
	for what, c := range map[string]struct {
		chain  []*x509.Certificate
		reason string
	}{
		"alone": {[]*x509.Certificate{sign(user, key, nil)}, "Malformed proxy"},
		"another key": {[]*x509.Certificate{sign(user, &first.Key.PublicKey, nil), user.Cert},
			"does not match the stored associated private key"},
		"foreign chain": {[]*x509.Certificate{sign(strange, key, nil), strange.Cert}, "unknown authority"},
		"another's":     {[]*x509.Certificate{sign(bobs, key, nil), bobs.Cert}, "not of"},
		"signed by another": {[]*x509.Certificate{sign(gridcerttest.Pair{Cert: &forged, Key: bobs.Key}, key, nil), user.Cert},
			"wrong private key"},
		"expired": {[]*x509.Certificate{sign(user, key, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }), user.Cert},
			"expired at"},
		"path": {[]*x509.Certificate{sign(short, key, nil), short.Cert, user.Cert}, "path length"},
		"limited": {[]*x509.Certificate{sign(user, key, func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{gridcerttest.ProxyInfo(t, -1, limited)}
		}), user.Cert}, "limited"},
		"no proxy": {[]*x509.Certificate{ca.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "Ada Tester"}}).Cert, user.Cert},
			"does not match"},
		"giant": {append([]*x509.Certificate{sign(user, key, nil), user.Cert}, slices.Repeat([]*x509.Certificate{ca.Cert}, 30)...),
			"more than 20"},
		"monster": {append([]*x509.Certificate{sign(user, key, nil), user.Cert}, slices.Repeat([]*x509.Certificate{ca.Cert}, 300)...), "bytes"},
	} {
		status, text := u.ask("PUT", credential, access.PEM(c.chain))
		refused(what, status, text, http.StatusBadRequest, "Could not process the proxy: ")
		refused(what, status, text, http.StatusBadRequest, c.reason)
	}
	for _, body := range []string{"", "garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		status, text := u.ask("POST", credential, []byte(body))
		refused("garbage", status, text, http.StatusBadRequest, "Malformed proxy")
	}
	if status, text := u.ask("GET", "/delegation/"+id, nil); status != http.StatusOK || string(text) != "null" {
		t.Errorf("a proxy that was refused is there: %d %s", status, text)
	}
	good := access.PEM([]*x509.Certificate{sign(user, key, nil), user.Cert})
	status, text = bob.ask("PUT", credential, good)
	refused("put by another user", status, text, http.StatusForbidden, "do not match")
	if status, text := u.ask("POST", credential, good); status != http.StatusCreated || len(text) > 0 {
		t.Errorf("%d %s", status, text)
	}
	byToken := h.ftsUser("alice", access.MaySubmit)
	var who ftsWho
	byToken.ask("GET", "/whoami", "", &who)
	var said struct{ Message string }
	if status := byToken.ask("GET", "/delegation/"+who.Delegation+"/request", "", &said); status != http.StatusForbidden ||
		said.Message != "Certificate required" {
		t.Errorf("%d %+v", status, said)
	}

	// The same rules apply in TLS.
	by := func(change func(*x509.Certificate)) []*x509.Certificate {
		return []*x509.Certificate{sign(user, &first.Key.PublicKey, change), user.Cert}
	}
	isLimited := func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{gridcerttest.ProxyInfo(t, -1, limited)}
	}
	hasEnded := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }
	for what, c := range map[string]struct {
		chain  []*x509.Certificate
		key    *rsa.PrivateKey
		reason string
	}{
		"foreign":   {[]*x509.Certificate{strange.Cert}, strange.Key, "unknown authority"},
		"limited":   {by(isLimited), first.Key, "limited"},
		"no signer": {[]*x509.Certificate{short.Cert}, first.Key, "lacks the certificate of the user"},
		"expired":   {by(hasEnded), first.Key, "expired"},
	} {
		cert := tls.Certificate{PrivateKey: c.key}
		for _, one := range c.chain {
			cert.Certificate = append(cert.Certificate, one.Raw)
		}
		status, text := h.gridUser(cert).ask("GET", "/whoami", nil)
		refused(what, status, text, http.StatusUnauthorized, c.reason)
	}
	byProxy := h.gridUser(tls.Certificate{Certificate: [][]byte{short.Cert.Raw, user.Cert.Raw}, PrivateKey: first.Key})
	if who := byProxy.whoami(); who.Delegation != id || who.Method != "certificate" || who.User != "/O=people/CN=Ada Tester" {
		t.Errorf("%+v", who)
	}
}

// Files whose proxy has expired in the queue wait for another proxy, without using an attempt. A
// submission with an expired proxy is refused with the status of FTS.
func TestExpiredProxies(t *testing.T) {
	t.Parallel()
	r := startProxies(t, "", true)
	u := r.gridUserOf(r.x.UserCert, r.x.UserKey)
	if status, text := u.delegate(nil); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	data := []byte("waits for its proxy\n")
	r.put(r.x, "a/f", data)
	r.Pause()
	id := u.submit(r.pair("a/f", ""))
	r.ahead.Store(int64(2 * time.Hour))
	r.Resume()
	until(t, "the file waits", func() bool {
		j := u.job(id)
		return j.Ended == "" && strings.Contains(j.Files[0].Reason, "expired at")
	})
	if status, text := u.ask("POST", "/jobs", []byte(`{"files":[`+r.pair("a/f", "")+`]}`)); status != 419 ||
		!strings.Contains(string(text), "The delegated credentials expired") || !strings.Contains(string(text), "419 ") {
		t.Errorf("%d %s", status, text)
	}
	status, text := u.delegate(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(10 * time.Hour) })
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	r.ahead.Store(int64(2*time.Hour + 2*time.Minute))
	if j := u.ended(id); j.State != "FINISHED" {
		t.Errorf("%+v", j)
	}
	if got, err := os.ReadFile(filepath.Join(r.y.Data, "a/f")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	r.ahead.Store(int64((10 + 24 + 1) * time.Hour))
	r.access.Prune(t.Context())
	if status, text := u.ask("GET", "/delegation/"+u.whoami().Delegation, nil); status != http.StatusOK || string(text) != "null" {
		t.Errorf("an expired proxy is kept: %d %s", status, text)
	}
}

// If endpoints issue no macaroons, the coordinator copies the bytes with the proxy. If streamed
// copies are disabled, the copy fails with that reason.
func TestNoMacaroons(t *testing.T) {
	for name, streamed := range map[string]int{"streamed": 0, "not streamed": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startProxies(t, "", false, func(c *Config) { c.Streamed = streamed })
			u := r.gridUserOf(r.x.Proxy, r.x.Proxy)
			if status, text := u.delegate(nil); status != http.StatusCreated {
				t.Fatalf("%d %s", status, text)
			}
			r.put(r.x, "a/f", []byte("x"))
			j := u.ended(u.submit(r.pair("a/f", "")))
			got, err := os.ReadFile(filepath.Join(r.y.Data, "a/f"))
			if streamed == 0 && (j.State != "FINISHED" || err != nil || string(got) != "x") {
				t.Errorf("%q, %v: %+v\n%s", got, err, j, r.log)
			}
			if streamed < 0 && (j.State != "FAILED" || !strings.Contains(j.Files[0].Reason, "gives the user's proxy no macaroon")) {
				t.Errorf("%+v\n%s", j, r.log)
			}
		})
	}
}

// The attributes of a proxy determine the user's roles and virtual organization if a VOMS server
// has signed them.
func TestVOMSRoles(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "voms-proxy-fake")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	ca := gridcerttest.NewCA(t, "VOMS")
	id := func(name string) gridcerttest.Pair {
		return ca.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
			BasicConstraintsValid: true, SubjectKeyId: []byte(name)})
	}
	server, user := id("voms.example.org"), id("Ada")
	for name, text := range map[string][]byte{"user.pem": user.CertPEM(), "user.key": user.KeyPEM(), "server.pem": server.CertPEM(),
		"server.key": server.KeyPEM(), "ca.pem": ca.CertPEM()} {
		gridcerttest.WriteFile(t, 0o600, at(name), text)
	}
	require.NoError(t, os.MkdirAll(at("vomsdir/atlas"), 0o700))
	gridcerttest.WriteFile(t, 0o600, at("vomsdir/atlas/voms.example.org.lsc"), []byte("/CN=voms.example.org\n/O=Weir  Test/CN=VOMS\n"))
	h := start(t, Config{Approve: -1, CA: at("ca.pem"), VOMSDir: at("vomsdir"),
		VOMSRoles: map[string][]string{"/atlas": {access.MayRead}, "/atlas/Role=production": {access.MaySubmit}}})
	proxy := func(host string, fqans ...string) *gridUser {
		args := []string{"-rfc", "-cert", at("user.pem"), "-key", at("user.key"), "-certdir", gridcerttest.CADir(t, ca), "-hostcert",
			at("server.pem"), "-hostkey", at("server.key"), "-out", at("proxy.pem"), "-voms", "atlas", "-uri", host + ":15001", "-hours", "1"}
		for _, f := range fqans {
			args = append(args, "-fqan", f)
		}
		gridcerttest.FakeVOMS(t, dir, args...)
		text, err := os.ReadFile(at("proxy.pem"))
		require.NoError(t, err)
		cert, err := tls.X509KeyPair(text, text)
		require.NoError(t, err)
		return h.gridUser(cert)
	}
	plain := h.gridUserOf(at("user.pem"), at("user.key")).whoami()
	if len(plain.Roles) > 0 || !slices.Equal(plain.VOs, []string{"weir"}) {
		t.Errorf("%+v", plain)
	}
	who := proxy("voms.example.org", "/atlas/Role=production", "/atlas").whoami()
	if !slices.Equal(who.Roles, []string{access.MaySubmit, access.MayRead}) || !slices.Equal(who.VOs, []string{"atlas"}) ||
		who.User != "/CN=Ada" ||
		!slices.Equal(who.Scopes, []string{"/atlas/Role=production", "/atlas"}) || who.Delegation == plain.Delegation {
		t.Errorf("%+v", who)
	}
	if who := proxy("voms.example.org", "/atlas/Role=NULL/Capability=NULL").whoami(); !slices.Equal(who.Roles, []string{access.MayRead}) {
		t.Errorf("%+v", who)
	}
	if who := proxy("evil.example.org", "/atlas/Role=production").whoami(); len(who.Roles) > 0 || len(who.Scopes) > 0 ||
		who.Delegation != plain.Delegation {
		t.Errorf("attributes that are not verified count: %+v", who)
	}
}
