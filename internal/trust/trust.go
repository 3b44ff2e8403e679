// Package trust verifies the identity of TLS servers and clients: by pins, which are SHA-256
// fingerprints of certificates, and by files of certificate authorities.
package trust

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// ErrPin means that a server's certificate differs from the pinned certificate.
var ErrPin = errors.New("the server has another certificate than the one that was named: it is the wrong server, " +
	"or the connection is intercepted")

// Fingerprint returns the SHA-256 of a certificate in DER, in hexadecimal digits.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// Pin makes a TLS client accept only the server with that fingerprint, regardless of its name and
// of the issuer of its certificate. Handshakes with others fail with ErrPin.
func Pin(conf *tls.Config, pin string) {
	pin = strings.ToLower(pin)
	conf.InsecureSkipVerify = true // the pin is checked instead of names and authorities
	conf.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 || subtle.ConstantTimeCompare([]byte(Fingerprint(s.PeerCertificates[0].Raw)), []byte(pin)) != 1 {
			return ErrPin
		}
		return nil
	}
}

// IsPin reports whether a text is a fingerprint.
func IsPin(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == sha256.Size
}

// ReadPins reads pins written as HOST:PORT=SHA256, or HOST=SHA256 for port 443. The result is keyed by HOST:PORT in
// lower case.
func ReadPins(list []string) (map[string]string, error) {
	pins := map[string]string{}
	for _, text := range list {
		at, pin, ok := strings.Cut(text, "=")
		if ok && !strings.Contains(strings.TrimLeft(at, "["), ":") {
			at = net.JoinHostPort(at, "443")
		}
		host, port, err := net.SplitHostPort(at)
		if !ok || err != nil || host == "" || port == "" || !IsPin(pin) {
			return nil, fmt.Errorf("%.200q: write HOST:PORT=SHA256, the latter being 64 hexadecimal digits", text)
		}
		pins[net.JoinHostPort(strings.ToLower(host), port)] = strings.ToLower(pin)
	}
	return pins, nil
}

// Authorities returns the certificate authorities in a PEM file.
func Authorities(file string) (*x509.CertPool, error) {
	return read(file, x509.NewCertPool())
}

// WithSystem returns the system's authorities and the authorities of a PEM file, or of the files of
// a folder whose names are hashes (0123abcd.0). Without a path it returns nil, which crypto/tls
// takes for the system's authorities.
func WithSystem(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // this system has no authorities
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return read(path, pool)
	}
	hashed, err := filepath.Glob(filepath.Join(path, "????????.[0-9]"))
	if err != nil || len(hashed) == 0 {
		return nil, fmt.Errorf("%s: no authority in it: their files have names such as 0123abcd.0", path)
	}
	for _, file := range hashed {
		if _, err := read(file, pool); err != nil {
			return nil, err
		}
	}
	return pool, nil
}

func read(file string, pool *x509.CertPool) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: it has no certificate in PEM", file)
	}
	return pool, nil
}
