package gridcert

import (
	"context"
	"crypto/x509"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Names decides whether a certificate belongs to the requested server, by the rules of Globus and
// XRootD. It is safe for concurrent use.
type Names struct {
	DNS bool // may the address's name in the DNS be the server's? Set before use
	// Lookup returns the names of an address; tests replace it. Set before use.
	Lookup func(ctx context.Context, address string) ([]string, error)

	allowed []string // patterns of more names; "-" before one forbids it; the last that fits counts
	hint    string   // setting that could allow another name, for errors

	mutex sync.Mutex
	known map[string]*resolved
}

// resolved is the result for one address, whose mutex is held during the lookup: clients of other
// addresses do not wait.
type resolved struct {
	mutex sync.Mutex
	names []string
	until time.Time
}

// NewNames returns the rules. allowed are patterns of more names, separated by "|"; "-" before one
// forbids it, and the last that fits counts. hint ends the error of Check with the setting that
// could allow a name.
func NewNames(allowed, hint string, dns bool) *Names {
	return &Names{
		allowed: strings.FieldsFunc(allowed, func(r rune) bool { return r == '|' }), hint: hint, DNS: dns,
		Lookup: net.DefaultResolver.LookupAddr, known: map[string]*resolved{},
	}
}

// Check returns an error unless the certificate has the server's name, its address, an allowed
// name, or, if DNS lookups are allowed, the name that its address has there: redirectors name data
// servers by address.
func (n *Names) Check(cert *x509.Certificate, host, address string, now time.Time) error {
	if n.Fits(cert, host) {
		return nil
	}
	if ip := ipOf(host); ip != nil {
		address = ip.String()
	}
	var reverse []string
	if n.DNS && address != "" {
		reverse = n.lookup(address, now)
		for _, name := range reverse {
			if fits(cert, name) || n.fitsCommonName(cert, name) {
				return nil
			}
		}
	}
	has := slices.Concat([]string{commonName(cert)}, cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		has = append(has, ip.String())
	}
	also := ""
	if len(reverse) > 0 {
		also = " (" + strings.Join(reverse, ", ") + " in the DNS)"
	}
	return Refuse("the server's certificate is for %s, not for %s%s%s", strings.Join(has, ", "), host, also, n.hint)
}

// Fits reports whether the certificate has the server's name, its address, or a name that was allowed, without asking the DNS.
func (n *Names) Fits(cert *x509.Certificate, host string) bool {
	if ip := ipOf(host); ip != nil && slices.ContainsFunc(cert.IPAddresses, ip.Equal) {
		return true
	}
	host = strings.TrimSuffix(host, ".")
	hasNames := len(cert.DNSNames)+len(cert.IPAddresses)+len(cert.EmailAddresses)+len(cert.URIs) > 0
	return fits(cert, host) || (!hasNames || n.DNS) && n.fitsCommonName(cert, host)
}

// ipOf returns the address that a host is given by, nil if it has a name.
func ipOf(host string) net.IP { return net.ParseIP(strings.Trim(strings.TrimSuffix(host, "."), "[]")) }

// fits reports whether one of the certificate's alternative names is host.
func fits(cert *x509.Certificate, host string) bool {
	return slices.ContainsFunc(cert.DNSNames, func(pattern string) bool { return fitsHost(pattern, host) })
}

// fitsCommonName reports whether the certificate's common name is host, or is allowed besides.
func (n *Names) fitsCommonName(cert *x509.Certificate, host string) bool {
	name := commonName(cert)
	ok := fitsHost(name, host)
	for _, pattern := range n.allowed {
		pattern, denied := strings.CutPrefix(pattern, "-")
		pattern = strings.NewReplacer("<host>", host, "<fqdn>", host).Replace(pattern)
		if glob(strings.ToLower(pattern), strings.ToLower(name)) {
			ok = !denied
		}
	}
	return ok
}

// commonName returns the host of a common name, which may be "host/name".
func commonName(cert *x509.Certificate) string {
	_, after, found := strings.Cut(cert.Subject.CommonName, "/")
	if found {
		return after
	}
	return cert.Subject.CommonName
}

// fitsHost compares names without regard to case. The first label of the pattern may have asterisks, which stand
// for parts of one label.
func fitsHost(pattern, host string) bool {
	pattern, host = strings.ToLower(strings.TrimSuffix(pattern, ".")), strings.ToLower(host)
	if host == "" || pattern == "" {
		return false
	}
	if pattern == host {
		return true
	}
	first, rest, dotted := strings.Cut(pattern, ".")
	label, domain, _ := strings.Cut(host, ".")
	return dotted && rest == domain && net.ParseIP(host) == nil && glob(first, label)
}

// glob matches text with a pattern in which asterisks represent anything.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, parts[last])
}

// lookup requests the names of an address from the DNS, or from the hosts file. The result is
// cached: a run has thousands of logins at the same few addresses.
func (n *Names) lookup(address string, now time.Time) []string {
	n.mutex.Lock()
	r := n.known[address]
	if r == nil {
		r = &resolved{}
		n.known[address] = r
	}
	n.mutex.Unlock()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if now.Before(r.until) {
		return r.names
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	found, err := n.Lookup(ctx, address)
	r.names, r.until = found, now.Add(believed)
	if err != nil {
		r.until = now.Add(10 * time.Second)
	}
	for i, name := range found {
		found[i] = strings.TrimSuffix(name, ".")
	}
	return found
}
