// Package tlsconntest has tests of TLS connections choose the version and the cipher suite.
package tlsconntest

import (
	"crypto/tls"
	"slices"
	"testing"
	_ "unsafe" // for go:linkname
)

// A Suite is a version of TLS with a cipher suite.
type Suite struct {
	Name    string
	Version uint16
	IDs     []uint16 // the cipher suite; of TLS 1.2 one for each kind of key
}

// Suites returns the suites of TLS 1.3 and of TLS 1.2 whose records can be discarded without being
// decrypted. The first suite is the suite of most servers.
func Suites() []Suite {
	return []Suite{
		{"1.3 AES-128-GCM", tls.VersionTLS13, []uint16{tls.TLS_AES_128_GCM_SHA256}},
		{"1.3 AES-256-GCM", tls.VersionTLS13, []uint16{tls.TLS_AES_256_GCM_SHA384}},
		{"1.3 ChaCha20", tls.VersionTLS13, []uint16{tls.TLS_CHACHA20_POLY1305_SHA256}},
		{"1.2 AES-128-GCM", tls.VersionTLS12,
			[]uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}},
		{"1.2 AES-256-GCM", tls.VersionTLS12,
			[]uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384}},
		{"1.2 ChaCha20", tls.VersionTLS12,
			[]uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256}},
	}
}

// Limit sets conf to the version and the suite. A tls.Config has no field for the suites of TLS
// 1.3, so the suites of all handshakes in this process are limited until t ends: nothing else may
// perform one meanwhile.
func (s Suite) Limit(t testing.TB, conf *tls.Config) {
	conf.MinVersion, conf.MaxVersion = s.Version, s.Version
	if s.Version != tls.VersionTLS13 {
		conf.CipherSuites = s.IDs
		return
	}
	with, without := withAES, withoutAES
	t.Cleanup(func() { withAES, withoutAES = with, without })
	withAES, withoutAES = slices.Clone(s.IDs), slices.Clone(s.IDs)
}

// The suites of TLS 1.3, on processors with instructions for AES and on processors without them.
//
//nolint:gochecknoglobals // variables of crypto/tls
var (
	//go:linkname withAES crypto/tls.defaultCipherSuitesTLS13
	withAES []uint16
	//go:linkname withoutAES crypto/tls.defaultCipherSuitesTLS13NoAES
	withoutAES []uint16
)
