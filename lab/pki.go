package lab

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"time"
)

// caName is the subject of the authority. It is lower case with single spaces already, so that its canonical form for
// OpenSSL's hash is itself.
const caName = "weir lab authority"

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	rsa  bool // the only kind of key that XRootD's gsi understands
	last int64
}

// newAuthority makes an authority called caName.
func newAuthority(rsaKeys bool) (*authority, error) {
	now := time.Now()
	a := &authority{rsa: rsaKeys, last: 1, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: caName},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 1, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}}
	var err error
	a.key, err = a.newKey()
	return a, err
}

func (a *authority) newKey() (crypto.Signer, error) {
	if a.rsa {
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// selfSigned returns the certificate of the authority.
func (a *authority) selfSigned() ([]byte, error) {
	return x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
}

// entity returns the unsigned certificate of an entity called name.
func (a *authority) entity(name string, uses ...x509.ExtKeyUsage) *x509.Certificate {
	a.last++
	c := &x509.Certificate{
		SerialNumber: big.NewInt(a.last), Subject: pkix.Name{CommonName: name},
		NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: uses, BasicConstraintsValid: true,
	}
	if a.rsa {
		c.KeyUsage |= x509.KeyUsageKeyEncipherment
	}
	return c
}

// certificate makes an authority, unless it is that of another system, and a host certificate signed by it below Dir,
// sets CAFile and CADir, and returns the files of certificate and key.
func (s *System) certificate(rsaKeys bool, of *System) (cert, key string) {
	if s.err != nil {
		return "", ""
	}
	cert, key, err := makeCertificate(s, rsaKeys, of)
	if err != nil {
		s.fail(fmt.Errorf("lab: %s: certificate: %w", s.Name, err))
	}
	return cert, key
}

func makeCertificate(s *System, rsaKeys bool, of *System) (cert, key string, err error) {
	if of != nil {
		s.ca = of.ca
	} else if s.ca, err = newAuthority(rsaKeys); err != nil {
		return "", "", err
	}
	if s.CAFile, s.CADir, err = s.writeAuthority("authorities", s.ca); err != nil {
		return "", "", err
	}
	host := s.ca.entity("localhost", x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	host.DNSNames, host.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	i, err := s.ca.issue(host, s.ca.cert, s.ca.key)
	if err != nil {
		return "", "", err
	}
	if cert, err = s.write("host.pem", i.certPEM()); err == nil {
		err = s.own(cert, 0o644)
	}
	if err != nil {
		return "", "", err
	}
	key, err = s.write("host.key", i.keyPEM)
	return cert, key, err
}

// HostCertificate makes an authority and a certificate for localhost that it signs, for a server of the caller's own. It
// returns the certificate with its key, and that of the authority in PEM.
func HostCertificate() (host tls.Certificate, authority []byte, err error) {
	a, err := newAuthority(false)
	if err != nil {
		return host, nil, err
	}
	self, err := a.selfSigned()
	if err != nil {
		return host, nil, err
	}
	if a.cert, err = x509.ParseCertificate(self); err != nil {
		return host, nil, err
	}
	template := a.entity("localhost", x509.ExtKeyUsageServerAuth)
	template.DNSNames = []string{"localhost"}
	i, err := a.issue(template, a.cert, a.key)
	return tls.Certificate{Certificate: [][]byte{i.der}, PrivateKey: i.key}, certPEM(self), err
}

// An issued is a certificate with its key.
type issued struct {
	der    []byte
	key    crypto.Signer
	keyPEM []byte
}

// issue makes a new key and a certificate of it by a template, signed by the key of parent.
func (a *authority) issue(template, parent *x509.Certificate, signer crypto.Signer) (i issued, err error) {
	if i.key, err = a.newKey(); err != nil {
		return i, err
	}
	if i.der, err = x509.CreateCertificate(rand.Reader, template, parent, i.key.Public(), signer); err != nil {
		return i, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	i.keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return i, err
}

func (i issued) certPEM() []byte { return certPEM(i.der) }

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// writeAuthority leaves an authority in a folder of the kind that X509_CERT_DIR names, where files are called by the
// hash of the subject, and as one file beside it.
func (s *System) writeAuthority(folder string, a *authority) (file, dir string, err error) {
	dir = filepath.Join(s.Dir, folder)
	if err := s.mkdir(dir); err != nil {
		return "", "", err
	}
	hash, err := subjectHash(caName)
	if err != nil {
		return "", "", err
	}
	name := filepath.Join(folder, hash)
	der, err := a.selfSigned()
	if err != nil {
		return "", "", err
	}
	policy := "access_id_CA X509 '/CN=" + caName + "'\npos_rights globus CA:sign\ncond_subjects globus '\"/CN=*\"'\n"
	for to, text := range map[string][]byte{folder + ".pem": certPEM(der), name + ".0": certPEM(der), name +
		".signing_policy": []byte(policy)} {
		path, err := s.write(to, text)
		if err := errors.Join(err, s.own(path, 0o644)); err != nil {
			return "", "", err
		}
	}
	return filepath.Join(s.Dir, folder+".pem"), dir, nil
}

// HostFiles returns the files of the servers' certificate, good for localhost and 127.0.0.1, and of its key: for
// another server that the system's clients are to trust.
func (s *System) HostFiles() (cert, key string) { return s.hostCert, s.hostKey }

// subjectHash computes OpenSSL's hash of a subject that is one common name in canonical form: SHA-1 of the name as
// UTF-8 without the outer sequence, its first four bytes read as a little-endian number.
func subjectHash(commonName string) (string, error) {
	type attribute struct {
		Type  asn1.ObjectIdentifier
		Value string `asn1:"utf8"`
	}
	set := struct {
		Attributes []attribute `asn1:"set"`
	}{[]attribute{{asn1.ObjectIdentifier{2, 5, 4, 3}, commonName}}}
	der, err := asn1.Marshal(set)
	if err != nil {
		return "", err
	}
	var inner asn1.RawValue
	if _, err := asn1.Unmarshal(der, &inner); err != nil {
		return "", err
	}
	sum := sha1.Sum(inner.Bytes)
	return fmt.Sprintf("%08x", binary.LittleEndian.Uint32(sum[:4])), nil
}
