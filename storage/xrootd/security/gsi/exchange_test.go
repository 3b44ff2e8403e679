package gsi

import (
	"bytes"
	"errors"
	"io/fs"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/storage"
	"weir/storage/gridcert"
	"weir/storage/gridcert/gridcerttest"
	"weir/storage/xrootd/security"
)

var _ security.Method = (*Method)(nil)

// TestVariants checks that the login succeeds with all choices of servers of versions 4 to 6.
func TestVariants(t *testing.T) {
	ca := gridcerttest.NewCA(t, "Variants")
	host := ca.Host(t, "localhost", "localhost")
	m := newMethod(t, gridcerttest.Member(t, ca))
	for name, p := range map[string]*peer{
		"today":                {},
		"prime of 3072 bits":   {prime: prime3072},
		"agreement not padded": {module: "sslnopad"},
		"agreement not signed": {version: 10300},
		"first that signs":     {version: 10400},
		"newer than us":        {version: 10700},
		"ciphers unknown":      {ciphers: "bf-cbc:aes-128-cbc"},
		"digest by default":    {digests: "md5"},
		"long key":             {ciphers: "aes-256-cbc"},
		"nothing but DES":      {ciphers: "bf-cbc:des-ede3-cbc", version: 10300},
	} {
		p.pair = host
		if err := p.login(m, "localhost"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := p.login(m, "localhost"); err != nil {
			t.Errorf("%s, again: %v", name, err)
		}
	}
}

// TestLies checks that each false statement of a server is detected before the server receives any
// of the client's credentials.
func TestLies(t *testing.T) {
	ca, stranger := gridcerttest.NewCA(t, "Lies"), gridcerttest.NewCA(t, "Stranger")
	host := ca.Host(t, "localhost", "localhost")
	other := ca.Host(t, "other.example.org", "other.example.org")
	cred := gridcerttest.Member(t, ca)
	replace := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(old), []byte(new)) }
	}
	const public = "---BPUB---"
	cases := []struct {
		name   string
		peer   *peer
		is     error
		reason string
	}{
		{"authority unknown", &peer{pair: stranger.Host(t, "localhost")}, fs.ErrPermission, "unknown certificate authority"},
		{"authority of the same name", &peer{pair: gridcerttest.NewCA(t, "Lies").Host(t, "localhost")}, fs.ErrPermission, "unknown authority"},
		{"another host's certificate", &peer{pair: other}, fs.ErrPermission, "not for localhost"},
		{"somebody else's certificate", &peer{pair: other, shown: host.CertPEM()}, fs.ErrPermission, "signature is not of the server's key"},
		{"certificate of an unknown authority behind a known name", &peer{pair: host, shown: stranger.Host(t, "localhost").CertPEM()},
			fs.ErrPermission, "unknown certificate authority"},
		{"tag signed by another", &peer{pair: host, signer: other}, fs.ErrPermission, "signature is not of the server's key"},
		{"two certificates", &peer{pair: host, shown: append(host.CertPEM(), ca.CertPEM()...)}, storage.ErrProtocol, "2 certificates"},
		{"no certificate", &peer{pair: host, shown: []byte("x")}, storage.ErrProtocol, "0 certificates"},
		{"no cipher in common", &peer{pair: host, ciphers: "bf-cbc:rot13"}, errors.ErrUnsupported, "bf-cbc:rot13"},
		{"no digest in common", &peer{pair: host, digests: "crc32"}, errors.ErrUnsupported, "crc32"},
		{"tag that could be a digest", &peer{pair: host, tag: make([]byte, 35)}, storage.ErrProtocol, "35 bytes"},
		{"empty tag", &peer{pair: host, tag: []byte{}}, storage.ErrProtocol, "no tag"},
		{"module unknown", &peer{pair: host, module: "gnutls"}, storage.ErrProtocol, "gnutls"},
		{"version unknown", &peer{pair: host, version: 7}, storage.ErrProtocol, "older"},
		{"prime that is none", &peer{pair: host, prime: prime512[:127] + "5"}, storage.ErrProtocol, "no safe prime"},
		{"prime that is not safe",
			&peer{pair: host,
				prime: "e82c2a152f32baf40a5b9f436bb14e42d93acd1619d8509435d7afaa3b6e117c59c38d1ab5be0a9de48429aa56d92842feff28747c5759df737ae654a7ec2aef"}, storage.ErrProtocol, "no safe prime"},
		{"twice a prime and one",
			&peer{pair: host,
				prime: "d5c1820908793ef4c42f04390a31551b5645220449b72b40d85ceb348d098962da6b2f98dfc157501ec9ed847e8781ade3ddceb0fbeecb2f538151bf20d23d1b"}, storage.ErrProtocol, "no safe prime"},
		{"prime too short", &peer{pair: host, prime: "17"}, storage.ErrProtocol, "5 bits, sensible are"},
		{"prime too long", &peer{pair: host, prime: prime3072 + prime3072}, storage.ErrProtocol, "6144 bits, sensible are"},
		{"half is zero", &peer{pair: host, half: func(b []byte) []byte {
			return append(b[:bytes.Index(b, []byte(public))], public+"00---EPUB---"...)
		}}, storage.ErrProtocol, "out of range"},
		{"half is minus one", &peer{pair: host, half: func(b []byte) []byte {
			return append(b[:bytes.Index(b, []byte(public))], public+prime512[:127]+"2---EPUB---"...)
		}}, storage.ErrProtocol, "out of range"},
		{"half is no number", &peer{pair: host, half: replace(public, public+"-1")}, storage.ErrProtocol, "no hexadecimal"},
		{"half without marks", &peer{pair: host, half: replace(public, "")}, storage.ErrProtocol, "no public number"},
		{"group is no group", &peer{pair: host, half: replace("BEGIN DH", "BEGIN EC")}, storage.ErrProtocol, "no DH PARAMETERS"},
	}
	for _, c := range cases {
		err := c.peer.login(newMethod(t, cred), "localhost")
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: got %v, want %v that says %q", c.name, err, c.is, c.reason)
		}
	}
}

// TestReplay checks that a man in the middle cannot use a server's messages to another client, or
// earlier messages to the same client.
func TestReplay(t *testing.T) {
	ca := gridcerttest.NewCA(t, "Replay")
	p := &peer{pair: ca.Host(t, "localhost")}
	m := newMethod(t, gridcerttest.Member(t, ca))
	begin := func() (security.Exchange, []byte) {
		e, err := m.Begin(t.Context(), security.Server{Host: "localhost", Parameters: p.offer()})
		require.NoError(t, err)
		hello, err := e.Next(nil)
		require.NoError(t, err)
		answer, err := p.certify(hello)
		require.NoError(t, err)
		return e, answer
	}
	first, one := begin()
	second, _ := begin()
	if _, err := second.Next(one); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "another tag") {
		t.Errorf("an answer to another client: %v", err)
	}
	if _, err := first.Next(one); err != nil {
		t.Errorf("the answer to this client: %v", err)
	}
	if _, err := first.Next(one); !errors.Is(err, storage.ErrProtocol) {
		t.Errorf("the answer a second time: %v", err)
	}
	third, _ := begin()
	if _, err := third.Next(encode(stepDelegate)); !errors.Is(err, storage.ErrProtocol) || !strings.Contains(err.Error(), "delegated") {
		t.Errorf("a wish for a delegated proxy: %v", err)
	}
}

// TestDamage checks that every truncated message is a protocol error, and that every message with a
// changed bit is an error or has the same meaning.
func TestDamage(t *testing.T) {
	ca := gridcerttest.NewCA(t, "Damage")
	p := &peer{pair: ca.Host(t, "localhost")}
	m := newMethod(t, gridcerttest.Member(t, ca))
	begun, err := m.Begin(t.Context(), security.Server{Host: "localhost", Parameters: p.offer()})
	require.NoError(t, err)
	e := begun.(*exchange)
	answer, err := p.certify(e.hello())
	require.NoError(t, err)
	again := func(b []byte) error {
		fresh := *e
		fresh.round = 1
		_, err := fresh.Next(b)
		return err
	}
	require.NoError(t, again(answer))
	for n := range len(answer) {
		if err := again(answer[:n]); !errors.Is(err, storage.ErrProtocol) {
			t.Fatalf("%d of %d bytes: %v", n, len(answer), err)
		}
	}
	unharmed := 0
	for n := range len(answer) {
		damaged := bytes.Clone(answer)
		damaged[n] ^= 1
		if again(damaged) == nil {
			unharmed++ // the module's name, the server's tag, ends of lines
		}
	}
	if unharmed > 40 {
		t.Errorf("%d of %d damaged messages passed for good ones", unharmed, len(answer))
	}
}

// TestPadding checks secrets that begin with a zero, one in 256, for which padding makes a
// difference.
func TestPadding(t *testing.T) {
	ca := gridcerttest.NewCA(t, "Padding")
	host := ca.Host(t, "localhost")
	m := newMethod(t, gridcerttest.Member(t, ca))
	_, text := (&peer{}).parameters()
	g := must(m.groups.find(text))
	own := must(g.half(m.current(t), time.Now()))
	x := big.NewInt(1000)
	for y := big.NewInt(0); ; x.Add(x, big.NewInt(1)) {
		if y.Exp(g.g, x, g.p).Exp(y, own.x, g.p); y.BitLen() <= 504 {
			break
		}
	}
	for name, p := range map[string]*peer{
		"padded": {}, "not padded": {module: "sslnopad"}, "before there was padding": {version: 10300},
	} {
		p.pair, p.x = host, x
		if err := p.login(m, "localhost"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestVector checks that each initialization vector is new.
func TestVector(t *testing.T) {
	s := must(chooseSuite("aes-128-cbc"))
	secret := make([]byte, 64)
	with := must(s.sealer(secret, true))
	one, two := with.seal(nil, []byte("data")), with.seal([]byte("head"), []byte("data"))[4:]
	if len(one) != 32 || bytes.Equal(one[:16], two[:16]) {
		t.Errorf("%x and %x", one, two)
	}
	without := must(s.sealer(secret, false))
	if three, four := without.seal(nil, []byte("data")), without.seal(nil, []byte("data")); len(three) != 16 || !bytes.Equal(three, four) {
		t.Errorf("without a vector: %x and %x", three, four)
	}
	if _, err := s.sealer(secret[:15], true); !errors.Is(err, storage.ErrProtocol) {
		t.Errorf("a short secret: %v", err)
	}
}

func TestBuckets(t *testing.T) {
	many := slices.Repeat([]bucket{{bucketTag, []byte("x")}}, maxBuckets)
	if b, err := parseBuffer(encode(1, many...)); err != nil || len(b.buckets) != maxBuckets {
		t.Errorf("%d buckets, %v", len(b.buckets), err)
	}
	if _, err := parseBuffer(encode(1, append(many, many[0])...)); !errors.Is(err, storage.ErrProtocol) {
		t.Errorf("too many buckets: %v", err)
	}
}

// TestHalf checks that the half of an agreement is used again, but not for another proxy, only for
// a limited time, and never with the same result.
func TestHalf(t *testing.T) {
	ca := gridcerttest.NewCA(t, "Half")
	m := newMethod(t, gridcerttest.Member(t, ca))
	_, text := (&peer{}).parameters()
	g, err := m.groups.find(text)
	require.NoError(t, err)
	now := time.Now()
	half := func(id *gridcert.Identity, at time.Time) *half {
		h, err := g.half(id, at)
		require.NoError(t, err)
		return h
	}
	first := half(m.current(t), now)
	if half(m.current(t), now.Add(halfLife-1)) != first {
		t.Error("a half was made anew too early")
	}
	if half(m.current(t), now.Add(halfLife)) == first {
		t.Error("a half is too old")
	}
	another := *m.current(t)
	if h := half(&another, now.Add(halfLife)); h.id != &another || h.x.Cmp(first.x) == 0 {
		t.Error("a half is used for another proxy")
	}
	if n := len(m.groups.known); n != 1 {
		t.Errorf("%d groups are known", n)
	}
}
