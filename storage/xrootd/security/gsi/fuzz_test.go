package gsi

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/storage"
	"weir/storage/gridcert"
	"weir/storage/gridcert/gridcerttest"
	"weir/storage/xrootd/security"
)

// A capture is one login at a real server, stored for replay: the messages of both sides, our tag,
// the authority and the time. It has no key.
type capture struct{ Offer, Hello, Answer, Proof, Tag, CA, Time []byte }

func (c *capture) files() map[string]*[]byte {
	return map[string]*[]byte{"offer": &c.Offer, "hello": &c.Hello, "answer": &c.Answer, "proof": &c.Proof, "tag": &c.Tag, "ca.pem": &c.CA,
		"time": &c.Time}
}

func readCapture(t testing.TB) (c capture) {
	t.Helper()
	for name, to := range c.files() {
		*to = must(os.ReadFile(filepath.Join("testdata", "login", name)))
	}
	return c
}

// replay returns an exchange in the middle of the captured login, with a method whose clock has the
// time of the capture.
func (c *capture) replay(t testing.TB) *exchange {
	t.Helper()
	m := newMethod(t, gridcerttest.Member(t, gridcerttest.NewCA(t, "Replay")))
	m.trust = gridcert.NewTrust(storage.Auth{CAFile: gridcerttest.WriteFile(t, 0o644, "ca.pem", c.CA)})
	at := must(time.Parse(time.RFC3339, string(c.Time)))
	id := m.current(t)
	id.From, id.Until = at.Add(-time.Hour), at.Add(time.Hour)
	m.clock = func() time.Time { return at }
	e := must(m.Begin(t.Context(), security.Server{Host: "localhost", Parameters: string(c.Offer)})).(*exchange)
	e.tag, e.round = c.Tag, 1
	return e
}

var update = flag.Bool("update", false, "write the files of testdata anew")

// TestCapture checks that the messages of a current server have the form of the stored messages,
// and that the stored messages are still accepted.
func TestCapture(t *testing.T) {
	s := newSite(t)
	now := time.Now()
	m := newMethod(t, s.cred)
	m.clock = func() time.Time { return now }
	session := must(dial(s.address))
	defer session.conn.Close()
	offer := must(session.greet())
	e := must(m.Begin(t.Context(), security.Server{Host: "localhost", Parameters: offer})).(*exchange)
	said := &teller{Exchange: e}
	require.NoError(t, session.authenticate(said, nil))
	fresh := capture{
		Offer: []byte(offer), Hello: said.said[0], Answer: session.took, Proof: said.said[1], Tag: e.tag,
		CA: must(os.ReadFile(s.CAFile)), Time: []byte(now.UTC().Format(time.RFC3339)),
	}
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Join("testdata", "login"), 0o755))
		for name, from := range fresh.files() {
			gridcerttest.WriteFile(t, 0o644, must(filepath.Abs(filepath.Join("testdata", "login", name))), *from)
		}
	}
	kept := readCapture(t)
	for name, pair := range map[string][2][]byte{"hello": {kept.Hello, fresh.Hello}, "answer": {kept.Answer, fresh.Answer},
		"proof": {kept.Proof, fresh.Proof}} {
		if diff := cmp.Diff(kinds(must(parseBuffer(pair[0]))), kinds(must(parseBuffer(pair[1])))); diff != "" {
			t.Errorf("%s: buckets differ from those kept (-kept +today):\n%s", name, diff)
		}
	}
	if _, err := kept.replay(t).Next(kept.Answer); err != nil {
		t.Error(err)
	}
}

// A teller records the messages of an exchange.
type teller struct {
	security.Exchange
	said [][]byte
}

func (r *teller) Next(challenge []byte) ([]byte, error) {
	out, err := r.Exchange.Next(challenge)
	r.said = append(r.said, bytes.Clone(out))
	return out, err
}

func kinds(b buffer) []uint32 {
	all := []uint32{b.step}
	for _, k := range b.buckets {
		all = append(all, k.kind)
	}
	return all
}

// FuzzBuffer checks that a buffer that was parsed, encoded and parsed again is unchanged.
func FuzzBuffer(f *testing.F) {
	c := readCapture(f)
	for _, seed := range [][]byte{c.Hello, c.Answer, c.Proof, nil, []byte("gsi\x00"), encode(0), c.Answer[:100]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := parseBuffer(data)
		if err != nil {
			if !errors.Is(err, storage.ErrProtocol) {
				t.Fatalf("an error of no known kind: %v", err)
			}
			return
		}
		out := encode(b.step, b.buckets...)
		if !bytes.HasPrefix(data, out) {
			t.Fatalf("%q was written as %q", data, out)
		}
		if again, err := parseBuffer(out); err != nil || !slices.Equal(kinds(b), kinds(again)) {
			t.Fatalf("%v of %q", err, out)
		}
	})
}

// FuzzExchange checks that the client returns an error of a known kind for any response of a
// server, or a proof: the latter only for the certificate and the agreement of the real login.
func FuzzExchange(f *testing.F) {
	c := readCapture(f)
	e := c.replay(f)
	f.Add(c.Answer)
	f.Add(c.Hello)
	f.Add(c.Answer[:len(c.Answer)-1])
	f.Add(encode(stepDelegate, bucket{bucketMain, encode(stepDelegate)}))
	msg := must(parseBuffer(c.Answer))
	for i := range msg.buckets {
		f.Add(encode(msg.step, slices.Delete(slices.Clone(msg.buckets), i, i+1)...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fresh := *e
		out, err := fresh.Next(data)
		if err != nil {
			if !errors.Is(err, storage.ErrProtocol) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
				t.Fatalf("an error of no known kind: %v", err)
			}
			return
		}
		if b, err := parseBuffer(out); err != nil || b.step != stepProof {
			t.Fatalf("proof %v of %q", err, out)
		}
		if n := len(e.method.groups.known); n != 1 {
			t.Fatalf("%d groups of one real login", n)
		}
	})
}

// FuzzOffer parses arbitrary offers, which a server sends before the first message.
func FuzzOffer(f *testing.F) {
	for _, seed := range []string{"v:10600,c:ssl,ca:b81ba802.0|703dea33.0", "v:10300,c:ssl", "", "v:,c:|,ca:||", "v:99999999999999999999",
		"c:sslnopadnopad", "ca:../../x.0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, parameters string) {
		o, err := parseOffer(parameters)
		if err != nil {
			if !errors.Is(err, storage.ErrProtocol) {
				t.Fatalf("an error of no known kind: %v", err)
			}
			return
		}
		for _, hash := range o.authorities {
			if !isHash(hash) {
				t.Fatalf("%q is no hash and would be a file's name", hash)
			}
		}
	})
}
