// Package gsi is the client side of XRootD's GSI authentication, with an X.509 proxy certificate.
// The client verifies the server before it authenticates.
//
// The client sends a random tag. The server's response has its certificate, the tag signed with its
// key, a tag of its own and its signed public value of a Diffie-Hellman key agreement. The client
// checks the certificate's authority, dates and host name, the signature and the parameters of the
// key agreement. It then sends its own signed public value and, encrypted with the agreed key, the
// server's tag signed with the proxy's key and the certificate chain. This does not protect the
// data that follows; TLS does.
//
// The reference is XRootD's XrdSecgsi, versions 10300 to 10600 (XRootD 4 to 6). Servers before
// 10400 do not sign their public value; they are accepted, as the reference does.
//
// With Auth.Delegate servers get a limited proxy of the client's, if they are of version 10400 or
// later and their certificate has the requested name, without use of the DNS.
package gsi

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"weir/storage"
	"weir/storage/gridcert"
	"weir/storage/xrootd/security"
)

// ourVersion is the protocol version of this package.
const ourVersion = 10600

// A Method authenticates with one proxy. It holds the common state of logins: the proxy and its
// key, authorities, verified certificates of servers, and checked parameters of agreements. It is
// safe for concurrent use.
type Method struct {
	source    *gridcert.Source
	trust     *gridcert.Trust
	names     *gridcert.Names
	groups    *groups
	user      string
	delegates bool
	version   int
	clock     func() time.Time
}

// New reads the proxy (see gridcert.NewSource) and returns its method; gridcert.NewTrust documents
// the location of authorities. The files may change while the method is in use: the proxy file is
// checked once a second, the authorities every ten minutes. With cred.From.Insecure servers are not
// verified. Credentials without file names that have a certificate in TLS use that certificate and
// its authorities.
//
// $XrdSecGSISRVNAMES allows more names of servers and $XrdSecGSITRUSTDNS=0 forbids DNS lookups of a
// server's name, as in XRootD's own clients.
//
// Errors that make a login impossible wrap fs.ErrPermission.
func New(cred storage.Credentials) (*Method, error) {
	m := &Method{
		source: gridcert.NewSource(cred.From),
		trust:  gridcert.NewTrust(cred.From),
		names:  gridcert.NewNames(os.Getenv("XrdSecGSISRVNAMES"), "; XrdSecGSISRVNAMES can allow it", os.Getenv("XrdSecGSITRUSTDNS") != "0"),
		groups: newGroups(), user: cred.User, delegates: cred.From.Delegate && !cred.From.Insecure, version: ourVersion, clock: time.Now,
	}
	if cred.From.ProxyFile == "" && cred.From.CertFile == "" && cred.TLS != nil && len(cred.TLS.Certificates) > 0 {
		m.source, m.trust = gridcert.SourceOf(&cred.TLS.Certificates[0]), gridcert.TrustIn(cred.TLS.RootCAs)
	}
	if _, err := m.source.Current(m.clock()); err != nil {
		return nil, fmt.Errorf("authentication by certificate: %w", err)
	}
	return m, nil
}

// Renewals returns the number of renewals of the proxy since the last call.
func (m *Method) Renewals() int { return m.source.Renewals() }

// Name returns "gsi".
func (m *Method) Name() string { return "gsi" }

// Begin starts a login at a server. It fails with an error that wraps fs.ErrPermission if the proxy
// has expired or all authorities that the server names are unknown. It does not use the network, so
// ctx is ignored.
func (m *Method) Begin(_ context.Context, s security.Server) (security.Exchange, error) {
	offer, err := parseOffer(s.Parameters)
	if err != nil {
		return nil, err
	}
	now := m.clock()
	id, err := m.source.Current(now)
	if err != nil {
		return nil, err
	}
	if err := m.trust.Expect(offer.authorities, now); err != nil {
		return nil, err
	}
	version := min(offer.version, m.version)
	offer.padded = offer.padded && version >= signsAgreement
	return &exchange{method: m, server: s, id: id, offer: offer, version: version}, nil
}

// An offer is the server's description of itself, before the first message:
// "v:10600,c:ssl,ca:0123abcd.0|89efcdab.0".
type offer struct {
	version     int
	module      string   // "ssl"
	padded      bool     // the agreed secret has the length of the prime, if both sides support signed agreements
	authorities []string // hashes of the signers of the server's certificate, without ".0"
}

// signsAgreement is the first version with signed agreements, and with ciphertexts that begin with
// their initialization vector.
const signsAgreement = 10400

func parseOffer(parameters string) (offer, error) {
	o := offer{version: ourVersion, module: "ssl"}
	for field := range strings.SplitSeq(strings.TrimRight(parameters, "\x00"), ",") {
		key, value, _ := strings.Cut(field, ":")
		switch key {
		case "v":
			if _, err := fmt.Sscanf(value, "%d", &o.version); err != nil {
				return o, malformed("the server's version %.20q is not a number", value)
			}
		case "c":
			o.module, _, _ = strings.Cut(value, "|")
		case "ca":
			for hash := range strings.SplitSeq(value, "|") {
				if hash = strings.TrimSuffix(hash, ".0"); isHash(hash) {
					o.authorities = append(o.authorities, hash)
				}
			}
		}
	}
	if o.version < 10100 {
		return o, malformed("the server's version %d is older than any known one", o.version)
	}
	module := o.module
	o.module = strings.TrimSuffix(module, "nopad")
	o.padded = o.module == module
	if o.module != "ssl" {
		return o, malformed("the server offers crypto module %.20q, known is ssl", module)
	}
	return o, nil
}

func isHash(s string) bool {
	return len(s) == 8 && strings.Trim(s, "0123456789abcdef") == ""
}

// malformed returns an error that wraps storage.ErrProtocol.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), storage.ErrProtocol)
}
