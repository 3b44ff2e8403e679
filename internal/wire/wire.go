// Package wire lets the parts of a program talk over networks that are not
// trusted: questions and answers in JSON over HTTPS.
//
// The server makes its own certificate, and whoever asks knows that certificate's
// fingerprint, so no authority is needed and nobody can stand in between. Both
// know a token. Questions are small, may be answered late (a long poll), and can
// be repeated until there is an answer; whether that is harmless is the affair
// of who asks. Somebody without the token can neither fill the server's memory
// nor hold it up.
package wire

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"weir/internal/durable"
	"weir/internal/trust"
)

// An Error is an answer that is none: what the server says against a question.
type Error struct {
	Status int           // of HTTP
	Text   string        // for people
	After  time.Duration // when to ask again; 0 is not told
}

// Error implements error.
func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("HTTP status %d (%s)", e.Status, http.StatusText(e.Status))
	}
	return e.Text
}

// Refuse makes an Error.
func Refuse(status int, format string, a ...any) error {
	return &Error{Status: status, Text: fmt.Sprintf(format, a...)}
}

// Status returns that of the Error in err, 0 if the server was not reached or
// err is nil.
func Status(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

var errSilent = errors.New("nothing was heard from the server for a minute")

// An Identity is what a server proves itself by, and what it asks of others.
type Identity struct {
	Cert  tls.Certificate
	Pin   string // SHA-256 of the certificate, in hexadecimal digits
	Token string // a secret of 256 bits
}

// identityFile holds key, certificate and token.
const identityFile = "identity.pem"

// lifetime is that of a certificate. Nobody asks it: the pin counts.
const lifetime = 10 * 365 * 24 * time.Hour

// Keep returns the identity that is kept in the folder dir, a new one if there
// is none. The folder is made if it is missing; it and the file are for this
// user's eyes only.
func Keep(dir string) (*Identity, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	path := filepath.Join(dir, identityFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = makeIdentity(); err == nil {
			err = durable.Write(path, text, 0o600)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	id, err := readIdentity(text)
	if err != nil {
		return nil, fmt.Errorf("wire: %s: %w", path, err)
	}
	return id, nil
}

func makeIdentity() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "weir"}, DNSNames: []string{"weir"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(lifetime), // clocks may differ
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	token := make([]byte, 32)
	if _, err := rand.Read(token); err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})...)
	return append(text, pem.EncodeToMemory(&pem.Block{Type: tokenBlock, Bytes: token})...), nil
}

const tokenBlock = "WEIR TOKEN"

func readIdentity(text []byte) (*Identity, error) {
	cert, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, err
	}
	id := &Identity{Cert: cert, Pin: trust.Fingerprint(cert.Certificate[0])}
	for b, rest := pem.Decode(text); b != nil; b, rest = pem.Decode(rest) {
		if b.Type == tokenBlock {
			id.Token = hex.EncodeToString(b.Bytes)
		}
	}
	if len(id.Token) < 64 {
		return nil, errors.New("it holds no token: remove it, and a new one is made")
	}
	return id, nil
}
