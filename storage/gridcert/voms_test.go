package gridcert

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/dn"
	"weir/internal/require"
	"weir/lab/labtest"
	"weir/storage/gridcert/gridcerttest"
)

// A vomsRig is a VOMS server, which voms-proxy-fake is, and a user.
type vomsRig struct {
	t                *testing.T
	dir              string
	ca, server, user gridcerttest.Pair
	voms             *VOMS
	roots            *x509.CertPool
}

func newVOMSRig(t *testing.T) *vomsRig {
	labtest.Need(t, "voms-proxy-fake")
	r := &vomsRig{t: t, dir: t.TempDir(), roots: x509.NewCertPool()}
	r.ca = gridcerttest.NewCA(t, "VOMS Test")
	id := func(name string, usage x509.KeyUsage) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{Organization: []string{"people"}, CommonName: name}, KeyUsage: usage,
			BasicConstraintsValid: true, SubjectKeyId: []byte(name), SerialNumber: big.NewInt(time.Now().UnixNano())}
	}
	r.server, r.user = r.ca.Sign(t, id("voms.example.org", x509.KeyUsageDigitalSignature)),
		r.ca.Sign(t, id("Ada Tester", x509.KeyUsageDigitalSignature))
	r.roots.AddCert(r.ca.Cert)
	for name, text := range map[string][]byte{"user.pem": r.user.CertPEM(), "user.key": r.user.KeyPEM(), "server.pem": r.server.CertPEM(),
		"server.key": r.server.KeyPEM()} {
		gridcerttest.WriteFile(t, 0o600, r.at(name), text)
	}
	r.voms = NewVOMS(r.at("vomsdir"), always(r.roots))
	require.NoError(t, os.MkdirAll(r.at("vomsdir/atlas"), 0o700))
	r.accept(dn.Text(r.server.Cert.RawSubject) + "\n" + dn.Text(r.ca.Cert.RawSubject) + "\n")
	return r
}

func (r *vomsRig) at(name string) string { return filepath.Join(r.dir, name) }

func (r *vomsRig) accept(lsc string) {
	gridcerttest.WriteFile(r.t, 0o600, r.at("vomsdir/atlas/voms.example.org.lsc"), []byte(lsc))
}

// proxy has the real program make a proxy with attributes.
func (r *vomsRig) proxy(args ...string) *Holder {
	r.t.Helper()
	out := r.at(fmt.Sprintf("proxy%d", time.Now().UnixNano()))
	all := append([]string{"-rfc", "-cert", r.at("user.pem"), "-key", r.at("user.key"), "-certdir", gridcerttest.CADir(r.t, r.ca), "-hostcert",
		r.at("server.pem"), "-hostkey", r.at("server.key"), "-hours", "5", "-out", out}, args...)
	gridcerttest.FakeVOMS(r.t, r.dir, all...)
	text, err := os.ReadFile(out)
	if err != nil {
		r.t.Fatal(err)
	}
	chain, err := ParseCertificates(text)
	if err != nil {
		r.t.Fatal(err)
	}
	h, err := VerifyChain(chain, r.roots, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func production() []string {
	return []string{"-voms", "atlas", "-uri", "voms.example.org:15001", "-fqan", "/atlas/Role=production", "-fqan",
		"/atlas/Role=NULL/Capability=NULL"}
}

// TestVOMSAttributes checks that attributes made by the real VOMS program are read, and that
// attributes that are not verified are ignored.
func TestVOMSAttributes(t *testing.T) {
	r := newVOMSRig(t)
	h := r.proxy(production()...)
	fqans, until, err := r.voms.Attributes(h, time.Now())
	if err != nil || !slices.Equal(fqans, []string{"/atlas/Role=production", "/atlas"}) || until.Before(time.Now().Add(time.Hour)) {
		t.Fatalf("%q, %v, %v", fqans, until, err)
	}
	longer := &Holder{User: h.User, Chain: append([]*x509.Certificate{gridcerttest.SignProxy(t, r.user.Cert, r.user.Key,
		r.user.Key.Public(), nil)}, h.Chain...)}
	if fqans, _, err := r.voms.Attributes(longer, time.Now()); err != nil || len(fqans) != 2 {
		t.Errorf("of a proxy that is not the first: %q, %v", fqans, err)
	}
	refused := func(name string, h *Holder, now time.Time, reason string) {
		t.Helper()
		if fqans, _, err := r.voms.Attributes(h, now); err == nil || len(fqans) > 0 || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %q, %v", name, fqans, err)
		}
	}
	refused("expired", h, time.Now().Add(50*time.Minute+12*time.Hour), "expired at")
	refused("not yet valid", h, time.Now().Add(-time.Hour), "not valid before")
	refused("of another", &Holder{User: r.ca.User(t).Cert, Chain: h.Chain}, time.Now(), "another certificate")
	refused("of another organization", r.proxy("-voms", "atlas", "-uri", "voms.example.org:15001", "-fqan", "/cms/Role=x"), time.Now(),
		"is not one of that organization")
	refused("of a host that is not accepted", r.proxy("-voms", "atlas", "-uri", "evil.example.org:15001", "-fqan", "/atlas"), time.Now(),
		"is not accepted")
	refused("with a path as host", r.proxy("-voms", "..", "-uri", "atlas:15001", "-fqan", "/../x"), time.Now(), "malformed")
	refused("for other services", r.proxy(append(production(), "-target", "se.example.org")...), time.Now(), "certain services")
	r.accept("/O=people/CN=another\n" + dn.Text(r.ca.Cert.RawSubject) + "\n")
	refused("another server's names", h, time.Now(), "is not the server of")
	r.accept(dn.Text(r.server.Cert.RawSubject) + "\n")
	refused("without its issuer", h, time.Now(), "is not the server of")
	r.accept("# a comment\n/O=a/CN=b\n/O=c\n------ NEXT CHAIN ------\n" + dn.Text(r.server.Cert.RawSubject) + "\n" +
		dn.Text(r.ca.Cert.RawSubject) + "\n")
	if fqans, _, err := r.voms.Attributes(h, time.Now()); err != nil || len(fqans) != 2 {
		t.Errorf("second chain: %q, %v", fqans, err)
	}
	untrusted := NewVOMS(r.at("vomsdir"), always(x509.NewCertPool()))
	if fqans, _, err := untrusted.Attributes(h, time.Now()); err == nil || len(fqans) > 0 {
		t.Errorf("an authority that is not trusted: %q, %v", fqans, err)
	}

	// If any byte of the attributes is changed, they are refused, or the same as before.
	raw, at := vomsIn(t, h.Chain[0])
	for i := range raw {
		changed := *h.Chain[0]
		changed.Extensions = slices.Clone(changed.Extensions)
		value := bytes.Clone(raw)
		value[i] ^= 1
		changed.Extensions[at].Value = value
		got, _, err := r.voms.Attributes(&Holder{User: h.User, Chain: []*x509.Certificate{&changed, h.User}}, time.Now())
		if (err == nil || len(got) > 0) && !slices.Equal(got, []string{"/atlas/Role=production", "/atlas"}) {
			t.Fatalf("byte %d of %d: %q, %v", i, len(raw), got, err)
		}
	}

	// A user who is no server cannot sign attributes.
	gridcerttest.WriteFile(t, 0o600, r.at("server.pem"), r.user.CertPEM())
	gridcerttest.WriteFile(t, 0o600, r.at("server.key"), r.user.KeyPEM())
	refused("self-made", r.proxy(production()...), time.Now(), "is not the server of")
}

func vomsIn(t *testing.T, c *x509.Certificate) (raw []byte, at int) {
	t.Helper()
	at = slices.IndexFunc(c.Extensions, func(e pkix.Extension) bool {
		return e.Id.Equal(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 8005, 100, 100, 5})
	})
	if at < 0 {
		t.Fatal("there are no attributes")
	}
	return c.Extensions[at].Value, at
}

// FuzzVOMS checks that malformed attributes of any kind are refused.
func FuzzVOMS(f *testing.F) {
	text, err := os.ReadFile("testdata/voms.pem")
	require.NoError(f, err)
	block, _ := pem.Decode(text)
	f.Add(block.Bytes)
	f.Add([]byte{0x30, 0})
	user := gridcerttest.NewCA(f, "fuzz").Host(f, "x").Cert
	v := NewVOMS(f.TempDir(), always(x509.NewCertPool()))
	f.Fuzz(func(t *testing.T, der []byte) {
		c := &x509.Certificate{Extensions: []pkix.Extension{{Id: vomsOID(5), Value: der}}}
		if fqans, _, err := v.Attributes(&Holder{User: user, Chain: []*x509.Certificate{c, user}}, time.Now()); len(fqans) > 0 {
			t.Errorf("%q, %v", fqans, err)
		}
	})
}

func always(pool *x509.CertPool) func(time.Time) *x509.CertPool {
	return func(time.Time) *x509.CertPool { return pool }
}
