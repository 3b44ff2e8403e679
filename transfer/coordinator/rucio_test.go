package coordinator

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer/access"
	"weir/transfer/fts/rest"
	"weir/transfer/transfertest"
)

//go:embed testdata/rucio.py
var rucioPython string

// clientCertificate creates a certificate for clients. It returns a file with the certificate and
// its key, and a file with its authority.
func clientCertificate(t *testing.T, name string) (file, authority string) {
	t.Helper()
	ca, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048) // FTS's client supports no other type
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	above := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of " + name},
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(2 * time.Hour), KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true}
	of := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: above.NotBefore,
		NotAfter: above.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	root, err := x509.CreateCertificate(rand.Reader, above, above, ca.Public(), ca)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, of, above, key.Public(), ca)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file, authority = filepath.Join(t.TempDir(), name+".pem"), filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	both := slices.Concat(cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	if err := errors.Join(os.WriteFile(file, both, 0o600), os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: root}), 0o600)); err != nil {
		t.Fatal(err)
	}
	return file, authority
}

// A rucio is a real Rucio whose storage elements are real servers and whose transfer service is
// weir, in this process or, with kill, in a separate process.
type rucio struct {
	*ftsPair
	r    *lab.Rucio
	fts  string
	kill func()
	conf Config
}

func startRucio(t *testing.T, ownProcess bool, more ...func(*Config, *lab.RucioConfig)) *rucio {
	t.Helper()
	labtest.FTS(t)
	cert, authority := clientCertificate(t, "rucio")
	x := labtest.Start(t, lab.XRootDConfig{Copies: true})
	y := labtest.Start(t, lab.XRootDConfig{Copies: true, Authority: x})
	r := &rucio{conf: Config{Approve: -1, SiteCA: x.CAFile, JobArea: tpc.Loopback, CA: authority,
		Names: map[string][]string{"rucio": {access.MaySubmit}}}}
	of := lab.RucioConfig{Certificate: cert}
	for _, set := range more {
		set(&r.conf, &of)
	}
	if ownProcess {
		r.conf.State = t.TempDir()
		r.ftsPair = &ftsPair{&service{Service: &transfertest.Service{T: t}}, x, y}
		r.respawn()
	} else {
		r.ftsPair = &ftsPair{start(t, r.conf), x, y}
		r.fts = r.URL() + rest.Path
	}
	r.r = labtest.Start(t, of)
	return r
}

// respawn starts weir in a separate process at its previous address.
func (r *rucio) respawn() {
	r.T.Helper()
	url, kill := spawn(r.T, r.conf)
	r.kill, r.fts, r.conf.Listen = kill, url+rest.Path, strings.TrimPrefix(url, "https://")
}

// setup adds the RSEs X and Y and further RSEs.
func (r *rucio) setup(more ...rucioRSE) {
	r.T.Helper()
	r.do("setup", map[string]any{"rses": append([]rucioRSE{rseOf(r.T, "X", r.x), rseOf(r.T, "Y", r.y)}, more...), "fts": r.fts}, &struct{}{})
}

// A rucioRule is a rule with the paths of its files below the prefixes of the RSEs.
type rucioRule struct {
	Rule  string            `json:"rule"`
	Paths map[string]string `json:"paths"`
}

// rule creates a dataset of files that Rucio has at some RSEs, and a rule for another RSE.
func (r *rucio) rule(name string, files []rucioFile, to string, at ...string) (made rucioRule) {
	r.T.Helper()
	r.do("rule", map[string]any{"name": name, "files": files, "at": at, "to": to}, &made)
	return made
}

// A rucioState contains the states of rules by name, and of all requests, in Rucio.
type rucioState struct {
	Rules       map[string]string `json:"rules"`
	Ended, Open []struct {
		Name, State, Error string
	}
	Suspicious []string
}

func (r *rucio) state(rules map[string]string) (s rucioState) {
	r.T.Helper()
	r.do("state", rules, &s)
	return s
}

// input writes the argument of a part of testdata/rucio.py to a file, because it may be too long
// for a program argument.
func (r *rucio) input(in any) (file string) {
	r.T.Helper()
	text, err := json.Marshal(in)
	file = filepath.Join(r.T.TempDir(), "in.json")
	if err = errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
		r.T.Fatal(err)
	}
	return file
}

// do runs a part of testdata/rucio.py and decodes its output.
func (r *rucio) do(part string, in, out any) {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.T.Context(), 30*time.Minute)
	defer cancel()
	said, err := r.r.Run(ctx, "python3", "-c", rucioPython, part, r.input(in))
	if err != nil {
		r.T.Fatal(err)
	}
	said = strings.TrimSpace(said)
	if err := json.Unmarshal([]byte(said[strings.LastIndex(said, "\n")+1:]), out); err != nil {
		r.T.Fatalf("%s: %v\n%s", part, err, said)
	}
}

// daemon runs a daemon of Rucio once.
func (r *rucio) daemon(name string, args ...string) {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.T.Context(), 3*time.Minute)
	defer cancel()
	out, err := r.r.Run(ctx, name, append(args, "--run-once")...)
	if err != nil {
		r.T.Fatal(err)
	}
	r.T.Logf("%s: %s", name, out)
}

type rucioRSE struct {
	Name, Host string
	Port       string
	Prefix     string
}

func rseOf(t *testing.T, name string, s *lab.System) rucioRSE {
	t.Helper()
	u, err := url.Parse(s.URLs["https"])
	if err != nil {
		t.Fatal(err)
	}
	return rucioRSE{name, u.Hostname(), u.Port(), u.Path + "/store"}
}

type rucioFile struct {
	Name  string `json:"name"`
	Size  int    `json:"bytes"`
	Adler string `json:"adler32"`
}

// twoRules contains a rule that can be fulfilled, for f0 to f2, and a rule that cannot be
// fulfilled: the source of f3 is lost, and the source of f4 is corrupt.
type twoRules struct {
	*rucio
	files     []rucioFile
	data      map[string][]byte
	good, bad rucioRule
}

// twoRules creates the rules, from X to Y.
func (r *rucio) twoRules() *twoRules {
	r.T.Helper()
	two := &twoRules{rucio: r, data: map[string][]byte{}}
	for i := range 5 {
		name := fmt.Sprintf("f%d", i)
		two.data[name] = bytes.Repeat([]byte(name+"\n"), 5000*(i+1))
		two.files = append(two.files, rucioFile{name, len(two.data[name]), adlerOf(two.data[name])})
	}
	two.good, two.bad = r.rule("good", two.files[:3], "Y", "X"), r.rule("bad", two.files[3:], "Y", "X")
	maps.Copy(two.good.Paths, two.bad.Paths)
	for name, at := range two.good.Paths {
		content := two.data[name]
		switch name {
		case "f3":
			continue
		case "f4":
			content = make([]byte, len(content))
		}
		r.put(r.x, filepath.Join("store", at), content)
	}
	return two
}

func (two *twoRules) state() rucioState {
	two.T.Helper()
	return two.rucio.state(map[string]string{"good": two.good.Rule, "bad": two.bad.Rule})
}

// check checks the final states of the rules and of their files.
func (two *twoRules) check(state rucioState) {
	t := two.T
	t.Helper()
	if state.Rules["good"] != "OK" || state.Rules["bad"] == "OK" || len(state.Ended) != len(two.files) ||
		!slices.Equal(state.Suspicious, []string{"f3", "f4"}) {
		t.Errorf("%+v", state)
	}
	reasons := map[string]string{"f3": "SOURCE [2] No such file", "f4": "SOURCE CHECKSUM MISMATCH"}
	for _, q := range state.Ended {
		if reason := reasons[q.Name]; (q.State == "FAILED") != (reason != "") || !strings.Contains(q.Error, reason) {
			t.Errorf("%+v", q)
		}
	}
	for _, f := range two.files[:3] {
		got, err := os.ReadFile(filepath.Join(two.y.Data, "store", two.good.Paths[f.Name]))
		if err != nil || !bytes.Equal(got, two.data[f.Name]) {
			t.Errorf("%s: %d bytes, %v", f.Name, len(got), err)
		}
	}
	for _, f := range two.files[3:] {
		if _, err := os.Stat(filepath.Join(two.y.Data, "store", two.good.Paths[f.Name])); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", f.Name, err)
		}
	}
}

// An unmodified Rucio transfers the files of a rule with weir: submitter, poller and finisher make
// the rule OK. Requests for a lost and a corrupt source fail with weir's reasons, and Rucio marks
// their replicas as suspicious. Rucio labels the flows.
func TestRucio(t *testing.T) {
	tier.Full(t, "Rucio")
	t.Parallel()
	register := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"experiments":[{"expName":"lab","expId":2,"activities":[{"activityName":"default","activityId":1},
			{"activityName":"User Subscriptions","activityId":1}]}]}`)
	}))
	t.Cleanup(register.Close)
	r := startRucio(t, false, func(_ *Config, c *lab.RucioConfig) { c.Marks = register.URL })
	r.setup()
	two := r.twoRules()
	r.daemon("rucio-conveyor-submitter")
	var state rucioState
	for end := time.Now().Add(5 * time.Minute); len(state.Ended) < len(two.files) && time.Now().Before(end); {
		r.daemon("rucio-conveyor-poller", "--older-than", "0")
		r.daemon("rucio-conveyor-finisher")
		state = two.state()
	}
	two.check(state)
	marked, err := db.Select(t.Context(), r.db, db.Value[int64], "SELECT COUNT(*) FROM pair WHERE params LIKE ?", `%"scitag":129%`)
	if err != nil || marked[0] != int64(len(two.files)) {
		t.Errorf("%d files are marked, %v", marked, err)
	}
}
