package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"

	"weir/internal/token"
	"weir/internal/trust"
)

// Rights are the operations that a client may perform. Paths begin with a slash. *token.Claims
// implements it.
type Rights interface {
	May(op token.Op, path string) bool
	// Most returns the number of bytes that a client, identified by a unique text, may store in a
	// file, and in all files that are being stored at a time; ok is false if there is no limit.
	Most() (who string, bytes int64, ok bool)
}

// allRights are the rights of a password, the one token, or a certificate.
type allRights struct{}

// May implements Rights.
func (allRights) May(token.Op, string) bool { return true }

// Most implements Rights.
func (allRights) Most() (string, int64, bool) { return "", 0, false }

// ErrCredentials means that a request needs credentials.
var ErrCredentials = errors.New("credentials are needed")

// guarded reports whether clients need credentials.
func (c *Config) guarded() bool {
	return c.User != "" || c.Token != "" || c.ClientCA != "" || c.Authenticate != nil
}

// admit returns the rights of the sender of r. A wrong password or token is refused after the same
// time, regardless of the wrong part.
func (s *Server) admit(r *http.Request) (Rights, error) {
	c := &s.conf
	if !c.guarded() || c.accepts(r) || s.certified(r) {
		return allRights{}, nil
	}
	if c.Authenticate != nil {
		return c.Authenticate(r)
	}
	return nil, ErrCredentials
}

// accepts reports whether r has the Config's password or token.
func (c *Config) accepts(r *http.Request) bool {
	ok := 0
	if c.User != "" {
		user, password, _ := r.BasicAuth()
		ok |= same(user, c.User) & same(password, c.Password)
	}
	if raw, is := token.FromHeader(r); is && c.Token != "" {
		ok |= same(raw, c.Token)
	}
	return ok == 1
}

// same compares a and b in a time that depends neither on their lengths nor on the position of a
// difference.
func same(a, b string) int {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:])
}

// unauthorized responds to a request that is not admitted, at once: its body is not read, and its
// connection ends.
func (s *Server) unauthorized(r *Request, err error) {
	h := r.w.Header()
	h.Set("Connection", "close")
	if errors.Is(err, token.ErrKeys) {
		s.conf.Log.Error("tokens cannot be checked", "error", err)
		h.Set("Retry-After", "10")
		r.Fail(http.StatusServiceUnavailable, "tokens cannot be checked now")
		return
	}
	if s.conf.User != "" {
		h.Add("WWW-Authenticate", `Basic realm="weir", charset="UTF-8"`)
	}
	if s.conf.Token != "" || s.conf.Authenticate != nil {
		h.Add("WWW-Authenticate", `Bearer realm="weir"`)
	}
	r.Fail(http.StatusUnauthorized, err.Error())
}

// May reports whether the sender may do op with a name of the tree.
func (r *Request) May(op token.Op, name string) bool {
	if name == "." {
		name = ""
	}
	return r.rights.May(op, "/"+name)
}

// Must reports the same as May, and sends a refusal if the sender lacks the right.
func (r *Request) Must(op token.Op, name string) bool {
	may := r.May(op, name)
	if !may {
		r.FailWith(ErrRights)
	}
	return may
}

// Replaceable returns an error if there is a file called name that the sender may not
// replace.
func (r *Request) Replaceable(name string) error {
	if r.May(token.Modify, name) {
		return nil
	}
	if _, err := r.s.tree.stat(name); err == nil {
		return ErrRights
	}
	return nil
}

// Precondition checks the If-... headers of a request that changes a file. GET and HEAD leave
// theirs to net/http.
func (r *Request) Precondition() error {
	match, none, since := r.Header.Get("If-Match"), r.Header.Get("If-None-Match"), r.Header.Get("If-Unmodified-Since")
	if match == "" && none == "" && since == "" {
		return nil
	}
	e, err := r.s.tree.stat(r.Name)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listed := func(list string) bool {
		return strings.TrimSpace(list) == "*" ||
			slices.ContainsFunc(strings.Split(list, ","), func(tag string) bool { return strings.TrimSpace(tag) == e.etag() })
	}
	if match != "" && (!there || !listed(match)) || none != "" && there && listed(none) {
		return errCondition
	}
	if t, err := http.ParseTime(since); err == nil && match == "" && there && e.modified.Unix() > t.Unix() {
		return errCondition
	}
	return nil
}

// certified reports whether r came with a certificate of an authority of the Config, for
// one of its names. It is checked here and not in the handshake, since clients that
// have tokens may also show certificates that mean nothing here.
func (s *Server) certified(r *http.Request) bool {
	if s.clients == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	c, _ := r.Context().Value(connKey{}).(*conn)
	if c != nil && c.looked { // requests of a connection come one after the other
		return c.certified
	}
	ok := s.verify(r.TLS.PeerCertificates)
	if c != nil {
		c.looked, c.certified = true, ok
	}
	return ok
}

func (s *Server) verify(chain []*x509.Certificate) bool {
	o := x509.VerifyOptions{Roots: s.clients, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	if _, err := chain[0].Verify(o); err != nil {
		s.conf.Log.Info("a client's certificate is not good", "error", err)
		return false
	}
	names := append([]string{chain[0].Subject.CommonName, chain[0].Subject.String()}, chain[0].DNSNames...)
	return slices.ContainsFunc(names, func(n string) bool { return n != "" && slices.Contains(s.conf.Clients, n) })
}

// authorities reads the certificates of Config.ClientCA.
func (c *Config) authorities() (*x509.CertPool, error) {
	if c.ClientCA == "" {
		return nil, nil
	}
	pool, err := trust.Authorities(c.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("authorities of clients: %w", err)
	}
	return pool, nil
}

// quotas count the bytes that clients whose tokens have a limit are storing now, in all their
// uploads together. The size of the stored files is limited by the names that the token has.
type quotas struct {
	mu   sync.Mutex
	held map[string]int64 // bytes, by token
}

// A Quota limits the bytes of one upload.
type Quota struct {
	of   *quotas
	who  string // "": shared with no other upload
	most int64  // below 0: any number of bytes
	held int64
}

// Quota returns the limit for the sender's upload. The caller releases it when the upload is over.
func (r *Request) Quota() *Quota {
	q := &Quota{of: &r.s.quotas, most: -1}
	if who, most, ok := r.rights.Most(); ok {
		q.who, q.most = who, most
	} else if r.s.conf.MaxFile > 0 {
		q.most = r.s.conf.MaxFile
	}
	return q
}

// Take reserves n more bytes. Its error is a *Refusal if they are too many.
func (q *Quota) Take(n int64) error {
	if q.most < 0 || n <= 0 {
		return nil
	}
	q.of.mu.Lock()
	defer q.of.mu.Unlock()
	all := q.held
	if q.who != "" {
		all = q.of.held[q.who]
	}
	if n > q.most-all {
		reason := fmt.Sprintf("at most %d bytes may be stored here with these credentials", q.most)
		return &Refusal{http.StatusRequestEntityTooLarge, reason}
	}
	q.held += n
	if q.who != "" {
		if q.of.held == nil {
			q.of.held = map[string]int64{}
		}
		q.of.held[q.who] += n
	}
	return nil
}

// Release returns all that was taken.
func (q *Quota) Release() {
	q.of.mu.Lock()
	defer q.of.mu.Unlock()
	if q.who != "" && q.held > 0 {
		if q.of.held[q.who] -= q.held; q.of.held[q.who] == 0 {
			delete(q.of.held, q.who)
		}
	}
	q.held = 0
}

// Limit returns a body of unknown length whose bytes are taken from q as they come.
func (q *Quota) Limit(body io.ReadCloser) io.ReadCloser { return &limited{body, q} }

type limited struct {
	io.ReadCloser
	quota *Quota
}

// Read implements io.Reader.
func (b *limited) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if over := b.quota.Take(int64(n)); over != nil {
		return 0, over
	}
	return n, err
}
