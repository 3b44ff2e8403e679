package gridcert

import (
	"cmp"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir/storage"
)

// A Source is the files of an identity, read again when they change, or a certificate in memory. It is safe for concurrent use.
type Source struct {
	certFile, keyFile string           // keyFile is "" if certFile holds the key
	memory            *tls.Certificate // instead of files

	mutex  sync.Mutex
	looked time.Time   // time of the last check of the files
	seen   fingerprint // how they looked when they were read
	id     *Identity
	made   bool  // weir made the proxy and has to replace it
	err    error // why the files could not be read last time

	count atomic.Int64 // renewals that Renewals has not returned yet
}

// A fingerprint reports whether files have changed.
type fingerprint [2]struct {
	modified time.Time
	size     int64
}

// NewSource returns a source. The proxy is proxy_file of from; else cert_file and key_file, of which a proxy is made
// that never leaves memory; else the file that $X509_USER_PROXY names, else that of $X509_USER_CERT and
// $X509_USER_KEY, else /tmp/x509up_uUID. The files are read by Current.
func NewSource(from storage.Auth) *Source {
	switch {
	case from.ProxyFile != "":
		return &Source{certFile: from.ProxyFile}
	case from.CertFile != "":
		return &Source{certFile: from.CertFile, keyFile: from.KeyFile}
	}
	if file := os.Getenv("X509_USER_PROXY"); file != "" {
		return &Source{certFile: file}
	}
	if cert, key := os.Getenv("X509_USER_CERT"), os.Getenv("X509_USER_KEY"); cert != "" && key != "" {
		return &Source{certFile: cert, keyFile: key}
	}
	return &Source{certFile: fmt.Sprintf("/tmp/x509up_u%d", os.Getuid())}
}

// SourceOf returns the source of a proxy in memory, or of a certificate of which one is made.
func SourceOf(cert *tls.Certificate) *Source { return &Source{memory: cert} }

// Current returns the identity. At most once a second it looks whether the files have changed; the
// last identity remains in use while new files are invalid, for as long as it is valid.
func (s *Source) Current(now time.Time) (*Identity, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.id == nil || now.Sub(s.looked).Abs() >= time.Second {
		s.looked = now
		s.refresh(now)
	}
	if s.id == nil {
		return nil, s.err
	}
	if err := s.id.valid(s.label(), now); err != nil {
		if s.err != nil {
			return nil, fmt.Errorf("%w; what is there now: %w", err, s.err)
		}
		return nil, err
	}
	return s.id, nil
}

// Ends returns when the first of the certificates in the files expires, and names the credentials.
func (s *Source) Ends() (what string, at time.Time, err error) {
	text, err := readFile(s.certFile)
	if err != nil {
		return "", at, err
	}
	all, err := ParseCertificates(text)
	for _, cert := range all {
		if at.IsZero() || cert.NotAfter.Before(at) {
			at = cert.NotAfter
		}
	}
	return s.label(), at, err
}

// label returns the name of the credentials for messages.
func (s *Source) label() string {
	if s.memory != nil {
		return "the proxy"
	}
	if s.keyFile != "" || s.made {
		return "certificate " + s.certFile
	}
	return "proxy " + s.certFile
}

func (s *Source) refresh(now time.Time) {
	seen, err := s.look()
	if err != nil {
		s.err = err
		return
	}
	renew := s.made && now.Add(proxySpare).After(s.id.Until)
	if s.id != nil && s.err == nil && seen == s.seen && !renew {
		return
	}
	id, made, err := s.load(now)
	s.err = err
	if err == nil {
		if s.id != nil && seen != s.seen {
			s.count.Add(1)
		}
		s.id, s.made, s.seen = id, made, seen
	}
}

// Renewals returns the number of times that other files were read since the last call.
func (s *Source) Renewals() int {
	if s.count.Load() == 0 {
		return 0
	}
	return int(s.count.Swap(0))
}

func (s *Source) look() (f fingerprint, err error) {
	for i, name := range []string{s.certFile, s.keyFile} {
		if name == "" {
			continue
		}
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return f, s.missing(name)
		}
		if err != nil {
			return f, Refuse("%v", err)
		}
		if i == 1 && info.Mode().Perm()&0o066 != 0 {
			return f, Refuse("others may read or write the private key %s (mode %#o): chmod 600 it", name, info.Mode().Perm())
		}
		f[i].modified, f[i].size = info.ModTime(), info.Size()
	}
	return f, nil
}

func (s *Source) missing(name string) error {
	if s.keyFile != "" {
		return Refuse("no certificate: %s does not exist", name)
	}
	return Refuse("no proxy: %s does not exist; make one, for instance with voms-proxy-init, or name it with proxy_file or $X509_USER_PROXY",
		name)
}

// load reads the files. A certificate that is not a proxy becomes one.
func (s *Source) load(now time.Time) (id *Identity, made bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", s.label(), err)
		}
	}()
	if s.memory != nil {
		key, ok := s.memory.PrivateKey.(*rsa.PrivateKey)
		if !ok {
			return nil, false, Refuse("its key is a %T; the protocol knows RSA only", s.memory.PrivateKey)
		}
		all, err := x509.ParseCertificates(slices.Concat(s.memory.Certificate...))
		if err != nil {
			return nil, false, Refuse("%v", err)
		}
		return adopt(all, key, now)
	}
	text, err := readFile(s.certFile)
	if err != nil {
		return nil, false, err
	}
	all, err := ParseCertificates(text)
	if err != nil {
		return nil, false, Refuse("%v", err)
	}
	if len(all) == 0 {
		return nil, false, Refuse("there is no certificate in it")
	}
	if s.keyFile != "" {
		if text, err = readFile(s.keyFile); err != nil {
			return nil, false, err
		}
	}
	key, err := parseKey(text)
	if err != nil {
		return nil, false, err
	}
	if key == nil {
		return nil, false, Refuse("there is no private key in %s", cmp.Or(s.keyFile, s.certFile))
	}
	return adopt(all, key, now)
}

// adopt makes an identity from the given certificates and key.
func adopt(all []*x509.Certificate, key *rsa.PrivateKey, now time.Time) (*Identity, bool, error) {
	chain, err := order(all, key)
	if err != nil {
		return nil, false, err
	}
	made := !IsProxy(chain[0])
	if made && now.Before(chain[0].NotAfter) {
		proxy, proxyKey, err := makeProxy(chain[0], key, now)
		if err != nil {
			return nil, false, Refuse("make a proxy: %v", err)
		}
		all, key = append([]*x509.Certificate{proxy}, all...), proxyKey
	}
	id, err := newIdentity(all, key)
	return id, made, err
}

// readFile reads a file of a sensible size for certificates.
func readFile(name string) ([]byte, error) {
	const most = 1 << 20
	f, err := os.Open(name)
	if err != nil {
		return nil, Refuse("%v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, Refuse("%v", err)
	}
	if len(text) > most {
		return nil, Refuse("the file has more than %d bytes", most)
	}
	return text, nil
}
