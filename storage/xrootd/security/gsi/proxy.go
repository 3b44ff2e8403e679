package gsi

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"math/big"
	"slices"
	"strconv"
	"time"
)

// A proxy that we make lives as long as the reference's, and is replaced
// before it ends.
const (
	proxyLife  = 12 * time.Hour
	proxySpare = time.Hour
)

// makeProxy signs a proxy by RFC 3820 with a user's key, as clients of the
// reference do when there is none: it inherits all rights, nothing can be
// derived from it, and it exists in memory only.
func makeProxy(user *x509.Certificate, userKey *rsa.PrivateKey, now time.Time) (*x509.Certificate, *rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, err
	}
	var raw [4]byte
	_, _ = rand.Read(raw[:]) // never fails
	serial := int64(binary.BigEndian.Uint32(raw[:]) >> 1)
	subject, err := subjectOfProxy(user.RawSubject, strconv.FormatInt(serial, 10))
	if err != nil {
		return nil, nil, err
	}
	info, err := proxyInfo()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), RawSubject: subject,
		NotBefore: slices.MaxFunc([]time.Time{now.Add(-5 * time.Minute), user.NotBefore}, time.Time.Compare), // clocks differ
		NotAfter:  slices.MinFunc([]time.Time{now.Add(proxyLife), user.NotAfter}, time.Time.Compare),
		KeyUsage:  x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtraExtensions: []pkix.Extension{
			{Id: oidProxyInfo(), Critical: true, Value: info},
		},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, user, &key.PublicKey, userKey)
	if err != nil {
		return nil, nil, err
	}
	proxy, err := x509.ParseCertificate(der)
	return proxy, key, err
}

// subjectOfProxy appends a common name to a distinguished name.
func subjectOfProxy(user []byte, name string) ([]byte, error) {
	sets, err := elements(user)
	if err != nil {
		return nil, err
	}
	added, err := asn1.Marshal(struct {
		Attributes []pkix.AttributeTypeAndValue `asn1:"set"`
	}{[]pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: name}}})
	if err != nil {
		return nil, err
	}
	one, err := elements(added)
	if err != nil {
		return nil, err
	}
	var content []byte
	for _, set := range slices.Concat(sets, one) {
		content = append(content, set.FullBytes...)
	}
	return asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: content})
}

// proxyInfo is the extension that makes a certificate a proxy: no further
// proxies, and the policy id-ppl-inheritAll.
func proxyInfo() ([]byte, error) {
	type policy struct{ Language asn1.ObjectIdentifier }
	return asn1.Marshal(struct {
		PathLength int
		Policy     policy
	}{0, policy{asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 21, 1}}})
}
