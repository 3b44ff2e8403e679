package gridcert

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"weir/internal/dn"
	"weir/internal/trust"
)

// Authorities are the trusted authorities of clients' certificates: the content of a PEM file, or
// of a folder of hashed names with revocation lists (0123abcd.0, 0123abcd.r0), as
// /etc/grid-security/certificates has them. A folder is read again every ten minutes. It is safe
// for concurrent use.
type Authorities struct {
	path string
	log  *slog.Logger

	mutex   sync.Mutex
	pool    *x509.CertPool
	revoked revocations
	until   time.Time // zero: for ever
}

// NewAuthorities reads a file or a folder. Later errors are logged, and the earlier content remains
// valid.
func NewAuthorities(path string, now time.Time, log *slog.Logger) (*Authorities, error) {
	a := &Authorities{path: path, log: log}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		err = a.read(now)
	} else if err == nil {
		a.pool, err = trust.Authorities(path)
	}
	return a, err
}

var hashedName = regexp.MustCompile(`^[0-9a-f]{8}\.0$`)

// read reads the folder.
func (a *Authorities) read(now time.Time) error {
	entries, err := os.ReadDir(a.path)
	if err != nil {
		return err
	}
	pool, revoked, n := x509.NewCertPool(), revocations{}, 0
	for _, e := range entries {
		if !hashedName.MatchString(e.Name()) {
			continue
		}
		hash, _, _ := strings.Cut(e.Name(), ".")
		var one authority
		if err := one.read(a.path, hash); err != nil {
			return err
		}
		for _, r := range one.certificates {
			pool.AddCert(r)
			n++
			revoked.add(r, one.lists)
		}
	}
	if n == 0 {
		return fmt.Errorf("%s: no authority in it: their files have names such as 0123abcd.0", a.path)
	}
	a.pool, a.revoked, a.until = pool, revoked, now.Add(believed)
	return nil
}

// state returns the current authorities and revocations.
func (a *Authorities) state(now time.Time) (*x509.CertPool, revocations) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if !a.until.IsZero() && now.After(a.until) {
		if err := a.read(now); err != nil {
			a.until = now.Add(time.Minute)
			a.log.Error("authorities of clients are as they were read before", "error", err)
		}
	}
	return a.pool, a.revoked
}

// Pool returns the authorities. It must not be changed.
func (a *Authorities) Pool(now time.Time) *x509.CertPool {
	pool, _ := a.state(now)
	return pool
}

// Verify calls VerifyChain with these authorities, and refuses revoked certificates. Lists that
// have expired still count. The result should not be cached for long.
func (a *Authorities) Verify(chain []*x509.Certificate, now time.Time) (*Holder, error) {
	pool, revoked := a.state(now)
	h, err := VerifyChain(chain, pool, now)
	if err != nil {
		return nil, err
	}
	for _, c := range chain[len(h.Chain)-1:] {
		if at, is := revoked.find(c); is {
			return nil, fmt.Errorf("the certificate of %s was revoked at %s", dn.Text(c.RawSubject), at.Format(time.RFC3339))
		}
	}
	return h, nil
}
