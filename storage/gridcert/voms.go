package gridcert

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"weir/internal/dn"
)

// VOMS verifies the attributes in proxies, which VOMS servers have signed. It is not changed once it is made.
type VOMS struct {
	dir   string
	roots func(now time.Time) *x509.CertPool
}

// NewVOMS returns a verifier. dir has the accepted servers in files VO/HOST.lsc: the names of the server's certificate and of its issuer,
// up to one of roots, a line each.
func NewVOMS(dir string, roots func(now time.Time) *x509.CertPool) *VOMS { return &VOMS{dir, roots} }

// Attributes returns the attributes (FQANs) of a holder, without NULL roles and capabilities, and
// the end of their validity. Attributes that cannot be verified are left out; err has the reason.
func (v *VOMS) Attributes(h *Holder, now time.Time) (fqans []string, until time.Time, err error) {
	for _, c := range h.Chain {
		for _, e := range c.Extensions {
			if !e.Id.Equal(vomsOID(5)) {
				continue
			}
			var list struct{ All []asn1.RawValue }
			if rest, err := asn1.Unmarshal(e.Value, &list); err != nil || len(rest) > 0 || len(list.All) > mostProxies {
				return nil, until, errors.New("the VOMS attributes are malformed")
			}
			var errs []error
			for _, raw := range list.All {
				some, ends, err := v.one(raw.FullBytes, h.User, now)
				if errs = append(errs, err); err != nil {
					continue
				}
				for _, f := range some {
					if !slices.Contains(fqans, f) {
						fqans = append(fqans, f)
					}
				}
				if until.IsZero() || ends.Before(until) {
					until = ends
				}
			}
			return fqans, until, errors.Join(errs...)
		}
	}
	return nil, until, nil
}

// mostFQANs bounds the attributes of one server.
const mostFQANs = 200

func vomsOID(n int) asn1.ObjectIdentifier {
	return asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 8005, 100, 100, n}
}

// An attributeCertificate is one of RFC 5755.
type attributeCertificate struct {
	Info      attributeInfo
	Algorithm pkix.AlgorithmIdentifier
	Signature asn1.BitString
}

type attributeInfo struct {
	Raw     asn1.RawContent
	Version int
	Holder  struct {
		Base struct {
			Issuer []asn1.RawValue
			Serial *big.Int
		} `asn1:"optional,tag:0"`
	}
	Issuer struct {
		Names []asn1.RawValue
	} `asn1:"tag:0"`
	Algorithm pkix.AlgorithmIdentifier
	Serial    *big.Int
	Validity  struct {
		From  time.Time `asn1:"generalized"`
		Until time.Time `asn1:"generalized"`
	}
	Attributes []struct {
		Type   asn1.ObjectIdentifier
		Values asn1.RawValue // a set
	}
	Unique     asn1.BitString   `asn1:"optional"`
	Extensions []pkix.Extension `asn1:"optional"`
}

// one verifies the attributes of one server.
func (v *VOMS) one(der []byte, user *x509.Certificate, now time.Time) (fqans []string, until time.Time, err error) {
	var a attributeCertificate
	rest, err := asn1.Unmarshal(der, &a)
	if err != nil || len(rest) > 0 || a.Info.Version != 1 {
		return nil, until, errors.New("VOMS attributes are malformed")
	}
	vo, host, fqans, err := a.attributes()
	if err != nil {
		return nil, until, err
	}
	wrong := func(format string, args ...any) ([]string, time.Time, error) {
		return nil, until, fmt.Errorf("VOMS attributes of %s: "+format, append([]any{vo}, args...)...)
	}
	holder := directoryName(a.Info.Holder.Base.Issuer)
	switch {
	case holder == nil || a.Info.Holder.Base.Serial == nil || a.Info.Holder.Base.Serial.Cmp(user.SerialNumber) != 0 ||
		!bytes.Equal(holder, user.RawIssuer) && !bytes.Equal(holder, user.RawSubject): // VOMS writes either
		return wrong("they are those of another certificate than %s", dn.Text(user.RawSubject))
	case now.Add(clockSkew).Before(a.Info.Validity.From):
		return wrong("they are not valid before %s", a.Info.Validity.From.UTC().Format(time.RFC3339))
	case now.After(a.Info.Validity.Until):
		return wrong("they expired at %s", a.Info.Validity.Until.UTC().Format(time.RFC3339))
	}
	var chain []*x509.Certificate
	for _, e := range a.Info.Extensions {
		switch {
		case e.Id.Equal(vomsOID(10)):
			if chain, err = issuersIn(e.Value); err != nil {
				return wrong("%w", err)
			}
		case e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 55}):
			return wrong("they are for certain services only")
		case e.Critical:
			return wrong("they have an unknown critical extension, %s", e.Id)
		}
	}
	if err := v.server(chain, vo, host, now); err != nil {
		return wrong("%w", err)
	}
	algorithm := signatureAlgorithm(a.Algorithm.Algorithm)
	switch {
	case !bytes.Equal(directoryName(a.Info.Issuer.Names), chain[0].RawSubject):
		return wrong("their issuer is not %s", dn.Text(chain[0].RawSubject))
	case algorithm == 0 || !a.Algorithm.Algorithm.Equal(a.Info.Algorithm.Algorithm):
		return wrong("they are signed with %s, which is not supported", a.Algorithm.Algorithm)
	case chain[0].CheckSignature(algorithm, a.Info.Raw, a.Signature.RightAlign()) != nil:
		return wrong("their signature is not that of %s", dn.Text(chain[0].RawSubject))
	}
	return fqans, a.Info.Validity.Until, nil
}

// attributes returns the FQANs, their virtual organization and the host of its server. Nothing has been verified.
func (a *attributeCertificate) attributes() (vo, host string, fqans []string, err error) {
	bad := errors.New("VOMS attributes are malformed")
	for _, one := range a.Info.Attributes {
		if !one.Type.Equal(vomsOID(4)) {
			continue
		}
		var values []struct {
			Authority []asn1.RawValue `asn1:"optional,tag:0"`
			Values    []asn1.RawValue
		}
		if _, err := asn1.UnmarshalWithParams(one.Values.FullBytes, &values, "set"); err != nil || len(values) != 1 ||
			len(values[0].Authority) != 1 || vo != "" || len(values[0].Values) > mostFQANs {
			return "", "", nil, bad
		}
		at, err := url.Parse(string(values[0].Authority[0].Bytes))
		if err != nil {
			return "", "", nil, bad
		}
		if vo, host = at.Scheme, at.Hostname(); !isFileName(vo) || !isFileName(host) {
			return "", "", nil, bad
		}
		for _, v := range values[0].Values {
			f := strings.TrimSuffix(strings.TrimSuffix(string(v.Bytes), "/Capability=NULL"), "/Role=NULL")
			if !fqanText.MatchString(f) || len(f) > 255 || f != "/"+vo && !strings.HasPrefix(f, "/"+vo+"/") {
				return "", "", nil, fmt.Errorf("VOMS attributes of %s: %.100q is not one of that organization", vo, f)
			}
			fqans = append(fqans, f)
		}
	}
	if vo == "" {
		return "", "", nil, bad
	}
	return vo, host, fqans, nil
}

var (
	fqanText = regexp.MustCompile(`^(/[A-Za-z0-9._=-]+)+$`)
	fileName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
)

// isFileName reports whether a text of others is safe as the name of a file or folder.
func isFileName(s string) bool {
	return len(s) <= 255 && !strings.HasPrefix(s, ".") && fileName.MatchString(s)
}

// directoryName returns the one name of a list of general names, nil if it is not a directory name.
func directoryName(names []asn1.RawValue) []byte {
	if len(names) != 1 || names[0].Class != asn1.ClassContextSpecific || names[0].Tag != 4 {
		return nil
	}
	return names[0].Bytes
}

func issuersIn(der []byte) (chain []*x509.Certificate, err error) {
	var list struct{ All []asn1.RawValue }
	if rest, err := asn1.Unmarshal(der, &list); err != nil || len(rest) > 0 || len(list.All) == 0 || len(list.All) > mostPresented {
		return nil, errors.New("the certificate of their issuer is malformed")
	}
	for _, raw := range list.All {
		c, err := x509.ParseCertificate(raw.FullBytes)
		if err != nil {
			return nil, fmt.Errorf("the certificate of their issuer: %w", err)
		}
		chain = append(chain, c)
	}
	return chain, nil
}

// server verifies that a chain is that of an accepted server.
func (v *VOMS) server(chain []*x509.Certificate, vo, host string, now time.Time) error {
	if len(chain) == 0 {
		return errors.New("the certificate of their issuer is missing")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: v.roots(now), Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return fmt.Errorf("the certificate of their issuer: %w", err)
	}
	if len(chain) > 1 && bytes.Equal(chain[len(chain)-1].RawIssuer, chain[len(chain)-1].RawSubject) {
		chain = chain[:len(chain)-1]
	}
	text, err := os.ReadFile(filepath.Join(v.dir, vo, host+".lsc"))
	if err != nil {
		return fmt.Errorf("their server %s is not accepted: %w", host, err)
	}
	for _, names := range lscChains(string(text)) {
		fits := len(names) == len(chain)+1
		for i, c := range chain {
			fits = fits && dn.Text(c.RawSubject) == names[i] && dn.Text(c.RawIssuer) == names[i+1]
		}
		if fits {
			return nil
		}
	}
	return fmt.Errorf("%s, issued by %s, is not the server of %s/%s.lsc", dn.Text(chain[0].RawSubject), dn.Text(chain[0].RawIssuer), vo, host)
}

// lscChains reads the chains of names in a file.
func lscChains(text string) (all [][]string) {
	all = [][]string{nil}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "---"): // NEXT CHAIN
			all = append(all, nil)
		default:
			all[len(all)-1] = append(all[len(all)-1], line)
		}
	}
	return all
}

func signatureAlgorithm(id asn1.ObjectIdentifier) x509.SignatureAlgorithm {
	return map[string]x509.SignatureAlgorithm{
		"1.2.840.113549.1.1.11": x509.SHA256WithRSA, "1.2.840.113549.1.1.12": x509.SHA384WithRSA, "1.2.840.113549.1.1.13": x509.SHA512WithRSA,
		"1.2.840.10045.4.3.2": x509.ECDSAWithSHA256, "1.2.840.10045.4.3.3": x509.ECDSAWithSHA384, "1.2.840.10045.4.3.4": x509.ECDSAWithSHA512,
	}[id.String()]
}
