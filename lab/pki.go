package lab

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // names of files, as OpenSSL computes them
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"time"
)

// caName is the subject of the authority. It is lower case with single
// spaces already, so that its canonical form for OpenSSL's hash is itself.
const caName = "weir lab authority"

// certificate makes an authority and a host certificate signed by it below
// Dir, sets CAFile and CADir, and returns the files of certificate and key.
func (s *System) certificate() (cert, key string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("lab: %s: certificate: %w", s.Name, err)
		}
	}()
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: caName},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 1, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	host := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	hostKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	if err := s.writeAuthority(ca, caKey); err != nil {
		return "", "", err
	}
	if cert, err = s.writeCertificate("host.pem", host, ca, &hostKey.PublicKey, caKey); err != nil {
		return "", "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(hostKey)
	if err != nil {
		return "", "", err
	}
	key, err = s.write("host.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	return cert, key, err
}

// writeAuthority leaves the authority as one file and as a folder of the
// kind that X509_CERT_DIR names: files called by the hash of the subject.
func (s *System) writeAuthority(ca *x509.Certificate, key *ecdsa.PrivateKey) error {
	dir := filepath.Join(s.Dir, "authorities")
	if err := s.mkdir(dir); err != nil {
		return err
	}
	file, err := s.writeCertificate("ca.pem", ca, ca, &key.PublicKey, key)
	if err != nil {
		return err
	}
	hash, err := subjectHash(caName)
	if err != nil {
		return err
	}
	name := filepath.Join("authorities", hash)
	if _, err := s.writeCertificate(name+".0", ca, ca, &key.PublicKey, key); err != nil {
		return err
	}
	policy := "access_id_CA X509 '/CN=" + caName + "'\npos_rights globus CA:sign\ncond_subjects globus '\"/CN=*\"'\n"
	if _, err := s.write(name+".signing_policy", []byte(policy)); err != nil {
		return err
	}
	s.CAFile, s.CADir = file, dir
	return nil
}

// writeCertificate signs a certificate and writes it for everyone to read.
func (s *System) writeCertificate(name string, c, parent *x509.Certificate, pub crypto.PublicKey, signer crypto.Signer) (string, error) {
	der, err := x509.CreateCertificate(rand.Reader, c, parent, pub, signer)
	if err != nil {
		return "", err
	}
	path, err := s.write(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	if err != nil {
		return "", err
	}
	return path, s.own(path, 0o644)
}

// subjectHash computes OpenSSL's hash of a subject that is one common name in
// canonical form: SHA-1 of the name as UTF-8 without the outer sequence, its
// first four bytes read as a little-endian number.
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
	sum := sha1.Sum(inner.Bytes) //nolint:gosec // see above
	return fmt.Sprintf("%08x", binary.LittleEndian.Uint32(sum[:4])), nil
}
