package gsi

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"weir/internal/dn"
	"weir/internal/require"
	"weir/storage"
	"weir/storage/gridcert"
	"weir/storage/gridcert/gridcerttest"
	"weir/storage/xrootd/security"
)

// request returns the certificate request that the client signs for the peer: a proxy for the
// peer's key.
func (p *peer) request(key crypto.Signer) []byte {
	der := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// asks sends the peer's request for a proxy. It returns the client's response, whose tag it
// verifies.
func (p *peer) asks(e security.Exchange, inner ...bucket) (buffer, error) {
	reply, err := e.Next(encode(stepDelegate, bucket{bucketMain, p.sealer.seal(nil, encode(stepDelegate, inner...))}))
	if err != nil {
		return buffer{}, err
	}
	msg := must(parseBuffer(reply))
	sealed, _ := msg.find(bucketMain)
	main := must(parseBuffer(must(p.sealer.unseal(sealed))))
	signed, _ := main.find(bucketSignedTag)
	if tag := must(recoverBlocks(p.proxy, signed)); msg.step != stepDelegated || !bytes.Equal(tag, p.challenge()) {
		return buffer{}, errors.New("the step or the tag is wrong")
	}
	return main, nil
}

// delegating returns a method that delegates, with a certificate in memory.
func delegating(t *testing.T, ca gridcerttest.Pair) *Method {
	t.Helper()
	user := ca.User(t)
	proxy := user.Proxy(t, time.Now().Add(time.Hour))
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	return newMethod(t, storage.Credentials{From: storage.Auth{Delegate: true}, TLS: &tls.Config{RootCAs: roots,
		Certificates: []tls.Certificate{{Certificate: [][]byte{proxy.Cert.Raw, user.Cert.Raw}, PrivateKey: proxy.Key}}}})
}

// TestDelegation checks that a server that requests a proxy gets a limited proxy, for the server's
// own key and in the client's name.
func TestDelegation(t *testing.T) {
	ca := gridcerttest.NewCA(t, "Delegation")
	p := &peer{pair: ca.Host(t, "localhost")}
	m := delegating(t, ca)
	e, err := p.exchange(m, security.Server{Host: "localhost"})
	require.NoError(t, err)
	if p.options != hasProxy|offersProxy|signsProxy {
		t.Errorf("options %#x", p.options)
	}
	key := must(rsa.GenerateKey(rand.Reader, 2048))
	main, err := p.asks(e, bucket{bucketTag, p.challenge()}, bucket{bucketRequest, p.request(key)})
	require.NoError(t, err)
	text, _ := main.find(bucketCertificates)
	all, err := gridcert.ParseCertificates(text)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d certificates, %v", len(all), err)
	}
	own := m.current(t).Chain[0]
	if !key.PublicKey.Equal(all[0].PublicKey) || all[0].CheckSignatureFrom(own) == nil ||
		own.CheckSignature(all[0].SignatureAlgorithm, all[0].RawTBSCertificate, all[0].Signature) != nil ||
		!dn.AddsCommonName(all[0].RawSubject, own.RawSubject) || all[0].NotAfter.After(own.NotAfter) {
		t.Errorf("%s of %s", all[0].Subject, all[0].Issuer)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	if _, err := gridcert.VerifyChain(append(all, m.current(t).Chain...), roots, time.Now()); err == nil ||
		!strings.Contains(err.Error(), "limited") {
		t.Errorf("the proxy is not limited: %v", err)
	}
	if _, err := p.asks(e, bucket{bucketTag, p.challenge()}, bucket{bucketRequest, p.request(key)}); !errors.Is(err, storage.ErrProtocol) {
		t.Errorf("a second wish: %v", err)
	}
}

// TestDelegationByDNS checks that a server whose name was found only in the DNS gets a message
// instead of a proxy.
func TestDelegationByDNS(t *testing.T) {
	ca := gridcerttest.NewCA(t, "DNS")
	p := &peer{pair: ca.Host(t, "ds1.example.org", "ds1.example.org")}
	m := delegating(t, ca)
	m.names.DNS = true
	m.names.Lookup = func(context.Context, string) ([]string, error) { return []string{"ds1.example.org."}, nil }
	e, err := p.exchange(m, security.Server{Host: "192.0.2.1", Address: "192.0.2.1"})
	require.NoError(t, err)
	key := must(rsa.GenerateKey(rand.Reader, 1024))
	main, err := p.asks(e, bucket{bucketTag, p.challenge()}, bucket{bucketRequest, p.request(key)})
	require.NoError(t, err)
	if _, has := main.find(bucketCertificates); has {
		t.Error("it got a proxy")
	}
	if text, _ := main.find(bucketMessage); !strings.Contains(string(text), "only the DNS") {
		t.Errorf("%q", text)
	}
}

// TestDelegationRefused checks that requests for an invalid proxy, and malformed requests, are
// refused.
func TestDelegationRefused(t *testing.T) {
	ca := gridcerttest.NewCA(t, "Refused")
	key := must(rsa.GenerateKey(rand.Reader, 1024))
	ec := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	p := &peer{pair: ca.Host(t, "localhost")}
	tag := bucket{bucketTag, p.challenge()}
	damaged := p.request(key)
	damaged = bytes.Replace(damaged, damaged[60:64], []byte("AAAA"), 1)
	for name, c := range map[string]struct {
		inner []bucket
		is    error
		says  string
	}{
		"no request":      {[]bucket{tag}, storage.ErrProtocol, "sends no request"},
		"no PEM":          {[]bucket{tag, {bucketRequest, []byte("request")}}, storage.ErrProtocol, "sends no request"},
		"damaged":         {[]bucket{tag, {bucketRequest, damaged}}, storage.ErrProtocol, "request for a proxy"},
		"elliptic curve":  {[]bucket{tag, {bucketRequest, p.request(ec)}}, storage.ErrProtocol, "RSA"},
		"no tag":          {[]bucket{{bucketRequest, p.request(key)}}, storage.ErrProtocol, "tag has 0 bytes"},
		"a digest as tag": {[]bucket{{bucketTag, make([]byte, 51)}, {bucketRequest, p.request(key)}}, storage.ErrProtocol, "tag has 51 bytes"},
	} {
		e, err := p.exchange(delegating(t, ca), security.Server{Host: "localhost"})
		require.NoError(t, err)
		if _, err := p.asks(e, c.inner...); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, sealed := range [][]byte{nil, make([]byte, 16), make([]byte, 33), make([]byte, 48)} {
		e, err := p.exchange(delegating(t, ca), security.Server{Host: "localhost"})
		require.NoError(t, err)
		if _, err := e.Next(encode(stepDelegate, bucket{bucketMain, sealed})); !errors.Is(err, storage.ErrProtocol) {
			t.Errorf("%d bytes: %v", len(sealed), err)
		}
	}
	old := &peer{pair: p.pair, version: 10300}
	m := delegating(t, ca)
	_, err := old.exchange(m, security.Server{Host: "localhost"})
	if err != nil || old.options != hasProxy {
		t.Errorf("a server whose agreement is not signed: options %#x, %v", old.options, err)
	}
	m = delegating(t, ca)
	m.source = gridcert.SourceOf(&tls.Certificate{Certificate: [][]byte{ca.Cert.Raw}, PrivateKey: ec})
	if _, err := m.source.Current(time.Now()); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "RSA only") {
		t.Errorf("a key of an elliptic curve: %v", err)
	}
	if err := p.login(delegating(t, gridcerttest.NewCA(t, "Another")), "localhost"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a server of an unknown authority: %v", err)
	}
}
