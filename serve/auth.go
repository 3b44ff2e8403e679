package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"weir/internal/token"
	"weir/internal/trust"
)

// Rights are what somebody may do. Paths begin with a slash. *token.Claims has them.
type Rights interface {
	May(op token.Op, path string) bool
	// Most tells how many bytes somebody, known by a text that nobody else has, may
	// store in a file, and in all files that are being stored at a time; ok is false
	// if nothing is said of it.
	Most() (who string, bytes int64, ok bool)
}

// everything are the rights of who shows a password, the one token, or a certificate.
type everything struct{}

// May implements Rights.
func (everything) May(token.Op, string) bool { return true }

// Most implements Rights.
func (everything) Most() (string, int64, bool) { return "", 0, false }

// errCredentials asks for credentials.
var errCredentials = errors.New("credentials are needed")

// Bearer returns an Authenticate that takes bearer tokens which checker finds good.
func Bearer(checker *token.Checker) func(*http.Request) (Rights, error) {
	return func(r *http.Request) (Rights, error) {
		raw, ok := bearer(r)
		if !ok {
			return nil, errCredentials
		}
		claims, err := checker.Check(r.Context(), raw)
		if err != nil {
			return nil, err
		}
		return claims, nil
	}
}

// bearer returns the token that r shows (RFC 6750, section 2.1).
func bearer(r *http.Request) (string, bool) {
	scheme, raw, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(raw), strings.EqualFold(scheme, "Bearer")
}

// guarded says whether any credentials are asked for.
func (c *Config) guarded() bool {
	return c.User != "" || c.Token != "" || c.ClientCA != "" || c.Authenticate != nil
}

// admit returns what who sent r may do. Whoever it is takes the same time to be
// refused for a wrong password or token.
func (s *Server) admit(r *http.Request) (Rights, error) {
	c := &s.conf
	if !c.guarded() || c.knows(r) || s.certified(r) {
		return everything{}, nil
	}
	if c.Authenticate != nil {
		return c.Authenticate(r)
	}
	return nil, errCredentials
}

// knows says whether r shows the Config's password or token.
func (c *Config) knows(r *http.Request) bool {
	ok := 0
	if c.User != "" {
		user, password, _ := r.BasicAuth()
		ok |= same(user, c.User) & same(password, c.Password)
	}
	if raw, is := bearer(r); is && c.Token != "" {
		ok |= same(raw, c.Token)
	}
	return ok == 1
}

// same compares without telling, by its time, lengths or where they differ.
func same(a, b string) int {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:])
}

func (c *Config) challenge(h http.Header) {
	if c.User != "" {
		h.Add("WWW-Authenticate", `Basic realm="weir", charset="UTF-8"`)
	}
	if c.Token != "" || c.Authenticate != nil {
		h.Add("WWW-Authenticate", `Bearer realm="weir"`)
	}
}

// strangers answers who is not admitted.
func (s *Server) stranger(r *request, err error) {
	if errors.Is(err, token.ErrKeys) {
		s.conf.Log.Error("tokens cannot be checked", "error", err)
		r.w.Header().Set("Retry-After", "10")
		r.fail(http.StatusServiceUnavailable, "tokens cannot be checked now")
		return
	}
	s.conf.challenge(r.w.Header())
	r.fail(http.StatusUnauthorized, err.Error())
}

// errRights says that somebody is known, but may not do this.
var errRights = errors.New("the credentials do not allow this")

// may says whether the sender of r may do op with a name of the tree.
func (r *request) may(op token.Op, name string) bool {
	if name == "." {
		name = ""
	}
	return r.rights.May(op, "/"+name)
}

// must answers who may not do op with a name, and says whether it did not.
func (r *request) must(op token.Op, name string) bool {
	if r.may(op, name) {
		return true
	}
	r.fail(http.StatusForbidden, errRights.Error())
	return false
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

// certified says whether r came with a certificate of an authority of the Config, for
// one of its names. It is checked here and not in the handshake, since clients that
// have tokens may show certificates, too, that mean nothing here.
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
