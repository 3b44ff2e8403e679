package lab

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"math/big"
	"slices"
	"time"
)

// gridUser is the subject of the user's certificate; see caName.
const gridUser = "weir lab user"

// gsi makes a user with certificate and proxy.
func (c XRootDConfig) gsi(s *System, v *xrootdValues) {
	if s.err != nil {
		return
	}
	s.fail(newGridUser(s))
	if s.err != nil {
		return
	}
	v.Protocol = "gsi"
	v.Security = "sec.protocol gsi -certdir:" + s.CADir + " -cert:" + s.hostCert + " -key:" + s.hostKey +
		" -crl:0 -gridmap:" + gridmap(s) + " -gmapopt:1 -dlgpxy:0"
	if c.Delegation {
		v.Security += " -exppxy:=creds"
		v.Extra += "\nsetenv X509_CERT_DIR = " + s.CADir + "\nofs.tpc fcreds gsi =X509_USER_PROXY pgm /usr/bin/xrdcp --server\n"
	}
	s.Env = append(s.Env, "X509_USER_PROXY="+s.Proxy)
	s.set("method", "x509")
	s.set("proxy_file", s.Proxy)
}

// gridmap writes the file that maps the user's certificate to User.
func gridmap(s *System) string {
	return s.file("grid-mapfile", []byte(`"/CN=`+gridUser+`" `+s.User+"\n"))
}

// newGridUser makes the user's certificate, key and proxy.
func newGridUser(s *System) error {
	user := s.ca.entity(gridUser, x509.ExtKeyUsageClientAuth)
	i, err := s.ca.issue(user, s.ca.cert, s.ca.key)
	if err != nil {
		return err
	}
	if s.grid.cert, err = x509.ParseCertificate(i.der); err != nil {
		return err
	}
	s.grid.key = i.key
	s.UserCert, s.UserKey = s.clientFile("usercert.pem", i.certPEM()), s.clientFile("userkey.pem", i.keyPEM)
	s.Proxy, err = s.ProxyFor(month)
	return err
}

// gridMember is the user of gsi: who signs proxies.
type gridMember struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// ProxyFor makes one more RFC 3820 proxy of the user that is good from an hour ago for lifetime
// from now; for a lifetime of zero or less the proxy has expired. It returns its file: certificate,
// key, user's certificate.
func (s *System) ProxyFor(lifetime time.Duration) (string, error) {
	if s.grid.key == nil {
		return "", errors.New("lab: only a system with gsi has proxies")
	}
	proxy, err := proxyOf(s.grid.cert, lifetime)
	if err != nil {
		return "", err
	}
	i, err := s.ca.issue(proxy, s.grid.cert, s.grid.key)
	if err != nil {
		return "", err
	}
	return s.newClientFile("proxy", slices.Concat(i.certPEM(), i.keyPEM, certPEM(s.grid.cert.Raw)))
}

// proxyOf returns the template of a proxy certificate for the owner of cert, to be signed by cert:
// its subject is the owner's with one more common name, its serial number, and a critical extension
// (RFC 3820, 3.8) gives it all rights of the owner.
func proxyOf(cert *x509.Certificate, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<31))
	if err != nil {
		return nil, err
	}
	var name pkix.RDNSequence
	if _, err := asn1.Unmarshal(cert.RawSubject, &name); err != nil {
		return nil, err
	}
	name = append(name, pkix.RelativeDistinguishedNameSET{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: serial.String()}})
	subject, err := asn1.Marshal(name)
	if err != nil {
		return nil, err
	}
	type policy struct{ Language asn1.ObjectIdentifier }
	info, err := asn1.Marshal(struct{ Policy policy }{policy{asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 21, 1}}})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, RawSubject: subject,
		NotBefore: now.Add(min(0, lifetime) - time.Hour), NotAfter: now.Add(min(lifetime, time.Until(cert.NotAfter))),
		KeyUsage:        x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 14}, Critical: true, Value: info}},
	}, nil
}
