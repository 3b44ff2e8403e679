package gridcert

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/internal/dn"
	"weir/storage"
	"weir/storage/wireclient"
)

// believed is the time for which files of authorities, and conclusions from them, are cached before
// they are read again.
const believed = 10 * time.Minute

// mostCertificates is the number of certificates of servers that are cached.
const mostCertificates = 4096

// Trust has authorities and the certificates of servers that they signed. It is safe for concurrent
// use.
type Trust struct {
	file     string   // file of authorities; may be empty
	dirs     []string // folders of authorities, in files called by the hash of their names
	Insecure bool     // servers are not verified

	memory bool           // the authorities are in pool
	pool   *x509.CertPool // nil: the system's

	mutex        sync.Mutex
	authorities  map[string]*authority           // by hash
	certificates map[[sha256.Size]byte]time.Time // until when they are believed
}

// An authority has the content of the files of one hash.
type authority struct {
	certificates []*x509.Certificate
	lists        []*pkix.CertificateList // of revoked certificates
	until        time.Time
}

// NewTrust returns the trust in the authorities of ca_file and ca_dir of from, else of $X509_CERT_DIR, else of
// /etc/grid-security/certificates. They are read when they are needed, again after ten minutes.
func NewTrust(from storage.Auth) *Trust {
	dir := from.CADir
	if dir == "" && from.CAFile == "" {
		if dir = os.Getenv("X509_CERT_DIR"); dir == "" {
			dir = "/etc/grid-security/certificates"
		}
	}
	return &Trust{
		file: from.CAFile, dirs: strings.FieldsFunc(dir, func(r rune) bool { return r == ',' }), Insecure: from.Insecure,
		authorities: map[string]*authority{}, certificates: map[[sha256.Size]byte]time.Time{},
	}
}

// TrustIn returns the trust in the authorities of a pool; nil means the system's authorities.
// Revocations are not known.
func TrustIn(pool *x509.CertPool) *Trust {
	return &Trust{memory: true, pool: pool, certificates: map[[sha256.Size]byte]time.Time{}}
}

// Expect returns an error if all authorities are unknown that, according to the server, have signed
// its certificate.
func (t *Trust) Expect(hashes []string, now time.Time) error {
	if t.Insecure || t.memory || t.file != "" || len(hashes) == 0 {
		return nil // the check of the certificate itself will fail
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, h := range hashes {
		a, err := t.load(h, now)
		if err != nil {
			return err
		}
		if len(a.certificates) > 0 {
			return nil
		}
	}
	return Refuse("unknown certificate authority: the server's certificate is signed by %s.0, which is not in %s",
		strings.Join(hashes, ".0 or "), strings.Join(t.dirs, ","))
}

// load returns the content of the files of a hash, which may be empty.
func (t *Trust) load(hash string, now time.Time) (*authority, error) {
	if a := t.authorities[hash]; a != nil && now.Before(a.until) {
		return a, nil
	}
	a := &authority{until: now.Add(believed)}
	for _, dir := range t.dirs {
		if err := a.read(dir, hash); err != nil {
			return nil, err
		}
	}
	if len(a.certificates) > 0 {
		t.authorities[hash] = a // missing files are searched again: they may be created later
	}
	return a, nil
}

// read adds the files of a folder for a hash.
func (a *authority) read(dir, hash string) error {
	certificates, err := readNumbered(filepath.Join(dir, hash+"."), ParseCertificates)
	if err != nil {
		return err
	}
	lists, err := readNumbered(filepath.Join(dir, hash+".r"), parseRevocations)
	a.certificates, a.lists = append(a.certificates, certificates...), append(a.lists, lists...)
	return err
}

// readNumbered parses the files path+"0", path+"1" and so on, up to the first that is missing.
func readNumbered[T any](path string, parse func([]byte) ([]T, error)) ([]T, error) {
	var all []T
	for i := range 10 {
		name := path + strconv.Itoa(i)
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, Refuse("certificate authority: %v", err)
		}
		some, err := parse(data)
		if err != nil {
			return nil, Refuse("certificate authority: %s: %v", name, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// ParseCertificates returns the certificates of a text in PEM.
func ParseCertificates(data []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// parseRevocations uses a deprecated function of the library: its successor does not support lists
// of version 1, which OpenSSL makes by default.
func parseRevocations(data []byte) ([]*pkix.CertificateList, error) {
	list, err := x509.ParseCRL(data) //nolint:staticcheck // see above
	if err != nil {
		return nil, err
	}
	return []*pkix.CertificateList{list}, nil
}

// Verify checks the certificate that a server shows, except its name. An error wraps fs.ErrPermission.
func (t *Trust) Verify(cert *x509.Certificate, now time.Time) error {
	if t.Insecure {
		return nil
	}
	sum := sha256.Sum256(cert.Raw)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if now.Before(t.certificates[sum]) {
		return nil
	}
	if err := t.chain(cert, now); err != nil {
		return err
	}
	until := now.Add(believed)
	if cert.NotAfter.Before(until) {
		until = cert.NotAfter
	}
	if len(t.certificates) >= mostCertificates {
		clear(t.certificates)
	}
	t.certificates[sum] = until
	return nil
}

// chain checks that a known authority signed the certificate and has not revoked it, and the dates.
func (t *Trust) chain(cert *x509.Certificate, now time.Time) error {
	pool := t.pool
	var by authority
	if !t.memory {
		var err error
		if by, err = t.signers(cert, now); err != nil {
			return err
		}
		pool = x509.NewCertPool()
		for _, r := range by.certificates {
			pool.AddCert(r)
		}
	}
	_, err := cert.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if now.After(cert.NotAfter) {
		return Refuse("the server's certificate (%s) expired at %s", cert.Subject, cert.NotAfter.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return Refuse("the server's certificate (%s): %v (authorities: %s)", cert.Subject, err, t.places())
	}
	revoked := revocations{}
	for _, r := range by.certificates {
		revoked.add(r, by.lists)
	}
	if at, is := revoked.find(cert); is {
		return Refuse("the server's certificate (%s) was revoked at %s", cert.Subject, at.Format(time.RFC3339))
	}
	return nil
}

// signers returns the authorities that have the name of the certificate's issuer, or all of the file, and their
// revocations.
func (t *Trust) signers(cert *x509.Certificate, now time.Time) (by authority, err error) {
	if t.file != "" {
		data, err := os.ReadFile(t.file)
		if err != nil {
			return by, Refuse("certificate authorities: %v", err)
		}
		if by.certificates, err = ParseCertificates(data); err != nil {
			return by, Refuse("certificate authorities: %s: %v", t.file, err)
		}
	}
	hashes, err := dn.Hashes(cert.RawIssuer)
	if err != nil {
		return by, wireclient.ProtocolError("the server's certificate: %v", err)
	}
	for _, h := range hashes {
		a, err := t.load(h, now)
		if err != nil {
			return by, err
		}
		by.certificates, by.lists = append(by.certificates, a.certificates...), append(by.lists, a.lists...)
	}
	if len(by.certificates) == 0 {
		return by, Refuse("unknown certificate authority: the server's certificate (%s) is signed by %s: neither %s.0 nor %s.0 is in %s",
			cert.Subject, cert.Issuer, hashes[0], hashes[1], t.places())
	}
	return by, nil
}

func (t *Trust) places() string {
	if t.memory {
		return "those of TLS connections"
	}
	if t.file != "" {
		return strings.Join(append([]string{t.file}, t.dirs...), ",")
	}
	return strings.Join(t.dirs, ",")
}
