// Package wire is JSON over HTTPS between the parts of a program, over networks that are not trusted.
//
// The server has a self-signed certificate, and clients have its fingerprint, so no authority is
// needed, and impersonation of the server is impossible. Server and clients share a token. Requests
// are small, may have a late response (long polls) and can be repeated until they succeed; the
// caller must know that repeating is harmless. A peer without the token can neither exhaust the
// server's memory nor block it.
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

// An Error is a response with a status other than 200.
type Error struct {
	Status int           // of HTTP
	Code   string        // stable, for programs; "" is that of the status
	Text   string        // the server's error message
	After  time.Duration // when to repeat the request (Retry-After); 0 if the server does not specify it
}

// Error implements error.
func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("HTTP status %d (%s)", e.Status, http.StatusText(e.Status))
	}
	return e.Text
}

// The codes of errors. A status without a code of its own has that of its class, 400 or 500.
const (
	CodeBadRequest   = "bad_request"       // 400
	CodeMalformed    = "malformed_body"    // 400: the body is not the expected JSON
	CodeUnauthorized = "unauthorized"      // 401
	CodeForbidden    = "forbidden"         // 403
	CodeNotFound     = "not_found"         // 404
	CodeConflict     = "conflict"          // 409: not possible in the present state
	CodeGone         = "gone"              // 410
	CodeTooLarge     = "body_too_large"    // 413
	CodeTooMany      = "too_many_requests" // 429
	CodeInternal     = "internal_error"    // 500
	CodeUnavailable  = "unavailable"       // 503: the same request may succeed later
)

// code returns the code of an error for a status.
func code(status int, err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Code != "" {
		return e.Code
	}
	switch status {
	case http.StatusUnauthorized:
		return CodeUnauthorized
	case http.StatusForbidden:
		return CodeForbidden
	case http.StatusNotFound:
		return CodeNotFound
	case http.StatusConflict:
		return CodeConflict
	case http.StatusGone:
		return CodeGone
	case http.StatusRequestEntityTooLarge:
		return CodeTooLarge
	case http.StatusTooManyRequests:
		return CodeTooMany
	case http.StatusServiceUnavailable:
		return CodeUnavailable
	}
	if status < http.StatusInternalServerError {
		return CodeBadRequest
	}
	return CodeInternal
}

// Refuse returns an *Error with the code of its status.
func Refuse(status int, format string, a ...any) error {
	return &Error{Status: status, Text: fmt.Sprintf(format, a...)}
}

// RefuseCode works like Refuse, with another code.
func RefuseCode(status int, code, format string, a ...any) error {
	return &Error{Status: status, Code: code, Text: fmt.Sprintf(format, a...)}
}

// Status returns the status of the *Error in err, 0 if err has no *Error.
func Status(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return 0
}

// An ErrorBody is the body of an error response.
type ErrorBody struct {
	Error string `json:"error"` // a sentence, which may change
	Code  string `json:"code"`  // stable
}

// An Identity is the server's certificate and the token that clients must present.
type Identity struct {
	Cert  tls.Certificate
	Pin   string // SHA-256 of the certificate, in hexadecimal digits
	Token string // a secret of 256 bits
}

const (
	identityFile = "identity.pem" // key, certificate and token
	tokenBlock   = "WEIR TOKEN"
	lifetime     = 10 * 365 * 24 * time.Hour // of a certificate; clients check the pin only
)

// Keep returns the identity stored in the folder dir. It creates the folder and the identity if they are missing,
// readable by this user only.
func Keep(dir string) (*Identity, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, identityFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = makeIdentity(); err == nil {
			err = durable.Write(path, text, 0o600)
		}
	}
	if err != nil {
		return nil, err
	}
	id, err := readIdentity(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return id, nil
}

func makeIdentity() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(random(15)), Subject: pkix.Name{CommonName: "weir"}, DNSNames: []string{"weir"},
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
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})...)
	return append(text, pem.EncodeToMemory(&pem.Block{Type: tokenBlock, Bytes: random(32)})...), nil
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

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
		return nil, errors.New("the file has no token: remove it, and a new one is made")
	}
	return id, nil
}
