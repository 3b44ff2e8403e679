package gsi

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An identity is a proxy with its key, ready to be used.
type identity struct {
	chain   []byte // certificates in PEM: the proxy, what signed it, and so on, without authorities
	public  []byte // the proxy's public key in PEM
	subject string // whose proxy it is
	issuer  string // hashes of the authority's name: "0123abcd.0|89efcdab.0"
	key     *rsa.PrivateKey
	from    time.Time // when the last of the certificates begins to be valid
	until   time.Time // when the first of them expires
}

// valid returns an error if there is no login with the identity now.
func (id *identity) valid(what string, now time.Time) error {
	if now.After(id.until) {
		return refuse("%s expired at %s", what, id.until.UTC().Format(time.RFC3339))
	}
	if now.Before(id.from) {
		return refuse("%s is not valid before %s", what, id.from.UTC().Format(time.RFC3339))
	}
	return nil
}

// newIdentity makes an identity of a key and certificates in any order.
func newIdentity(all []*x509.Certificate, key *rsa.PrivateKey) (*identity, error) {
	chain, err := order(all, key)
	if err != nil {
		return nil, err
	}
	last := chain[len(chain)-1]
	if isProxy(last) {
		return nil, refuse("the certificate of %s, which signed the proxy, is not there", last.Issuer)
	}
	hashes, err := nameHashes(last.RawIssuer)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, refuse("public key: %v", err)
	}
	id := &identity{
		key: key, subject: last.Subject.String(), issuer: hashes[0] + ".0|" + hashes[1] + ".0",
		public: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		from:   last.NotBefore, until: last.NotAfter,
	}
	for _, c := range chain {
		id.chain = append(id.chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
		if c.NotBefore.After(id.from) {
			id.from = c.NotBefore
		}
		if c.NotAfter.Before(id.until) {
			id.until = c.NotAfter
		}
	}
	return id, nil
}

// order returns the certificates from the key's to the last that is no authority, each signed by the next.
func order(all []*x509.Certificate, key *rsa.PrivateKey) ([]*x509.Certificate, error) {
	i := slices.IndexFunc(all, func(c *x509.Certificate) bool { return key.PublicKey.Equal(c.PublicKey) })
	if i < 0 {
		return nil, refuse("the private key does not belong to the certificate")
	}
	chain := []*x509.Certificate{all[i]}
	for len(chain) <= len(all) {
		child := chain[len(chain)-1]
		i := slices.IndexFunc(all, func(c *x509.Certificate) bool {
			return !c.IsCA && bytes.Equal(c.RawSubject, child.RawIssuer) && !bytes.Equal(c.RawSubject, child.RawSubject)
		})
		if i < 0 {
			break
		}
		chain = append(chain, all[i])
	}
	return chain, nil
}

// isProxy reports whether a certificate is a proxy: by RFC 3820, by its draft, which Globus used, or by the common
// name that came before both.
func isProxy(c *x509.Certificate) bool {
	for _, e := range c.Extensions {
		if e.Id.Equal(oidProxyInfo()) || e.Id.Equal(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 3536, 1, 222}) {
			return true
		}
	}
	name := c.Subject.CommonName
	return (name == "proxy" || name == "limited proxy") && len(c.Subject.Names) == len(c.Issuer.Names)+1
}

func oidProxyInfo() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 14} }

// parseKey returns the first private key of a text, nil if there is none.
func parseKey(text []byte) (*rsa.PrivateKey, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if !strings.HasSuffix(block.Type, "PRIVATE KEY") {
			continue
		}
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return nil, refuse("the private key is encrypted: make a proxy of it first, for instance with voms-proxy-init")
		}
		key, err := parseKeyBlock(block)
		if err != nil {
			return nil, refuse("private key: %v", err)
		}
		if key.N.BitLen() < 1024 {
			return nil, refuse("the private key has %d bits, fewer than the 1024 that are the least: make one of 2048", key.N.BitLen())
		}
		return key, nil
	}
	return nil, nil
}

func parseKeyBlock(block *pem.Block) (*rsa.PrivateKey, error) {
	if block.Type == "RSA PRIVATE KEY" {
		return x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	if block.Type == "EC PRIVATE KEY" {
		return nil, refuse("it is of an elliptic curve; the protocol knows RSA only")
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := any.(*rsa.PrivateKey)
	if !ok {
		return nil, refuse("it is a %T; the protocol knows RSA only", any)
	}
	return key, nil
}

// A proxy that we make lives as long as the reference's, and is replaced before it ends.
const (
	proxyLife  = 12 * time.Hour
	proxySpare = time.Hour
)

// makeProxy signs a proxy by RFC 3820 with a user's key, as clients of the reference do when there is none: it
// inherits all rights, nothing can be derived from it, and it exists in memory only.
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

// proxyInfo is the extension that makes a certificate a proxy: no further proxies, and the policy
// id-ppl-inheritAll.
func proxyInfo() ([]byte, error) {
	type policy struct{ Language asn1.ObjectIdentifier }
	return asn1.Marshal(struct {
		PathLength int
		Policy     policy
	}{0, policy{asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 21, 1}}})
}
