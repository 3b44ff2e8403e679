package gridcert

import (
	"bytes"
	"crypto"
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

	"weir/internal/dn"
	"weir/storage/wireclient"
)

// An Identity is a proxy with its key, ready to be used. It is not changed once it is made.
type Identity struct {
	Chain     []*x509.Certificate // the proxy, its issuer, and so on, without authorities
	ChainPEM  []byte              // the same in PEM
	PublicPEM []byte              // the proxy's public key
	Subject   string              // whose proxy it is
	Issuer    string              // hashes of the authority's name: "0123abcd.0|89efcdab.0"
	Key       *rsa.PrivateKey
	From      time.Time // when the last of the certificates begins to be valid
	Until     time.Time // when the first of them expires
}

// valid returns an error if there is no login with the identity now.
func (id *Identity) valid(what string, now time.Time) error {
	if now.After(id.Until) {
		return Refuse("%s expired at %s", what, id.Until.UTC().Format(time.RFC3339))
	}
	if now.Before(id.From) {
		return Refuse("%s is not valid before %s", what, id.From.UTC().Format(time.RFC3339))
	}
	return nil
}

// newIdentity makes an identity of a key and certificates in any order.
func newIdentity(all []*x509.Certificate, key *rsa.PrivateKey) (*Identity, error) {
	chain, err := order(all, key)
	if err != nil {
		return nil, err
	}
	last := chain[len(chain)-1]
	if IsProxy(last) {
		return nil, Refuse("the certificate of %s, which signed the proxy, is not there", last.Issuer)
	}
	hashes, err := dn.Hashes(last.RawIssuer)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, Refuse("public key: %v", err)
	}
	id := &Identity{
		Chain: chain, Key: key, Subject: last.Subject.String(), Issuer: hashes[0] + ".0|" + hashes[1] + ".0",
		PublicPEM: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		From:      last.NotBefore, Until: last.NotAfter,
	}
	for _, c := range chain {
		id.ChainPEM = append(id.ChainPEM, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
		if c.NotBefore.After(id.From) {
			id.From = c.NotBefore
		}
		if c.NotAfter.Before(id.Until) {
			id.Until = c.NotAfter
		}
	}
	return id, nil
}

// order returns the certificates from the key's certificate to the last that is not an authority,
// each signed by the next.
func order(all []*x509.Certificate, key *rsa.PrivateKey) ([]*x509.Certificate, error) {
	i := slices.IndexFunc(all, func(c *x509.Certificate) bool { return key.PublicKey.Equal(c.PublicKey) })
	if i < 0 {
		return nil, Refuse("the private key does not belong to the certificate")
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

// IsProxy reports whether a certificate is a proxy: by RFC 3820, by its draft, which Globus used,
// or by the common name that preceded these.
func IsProxy(c *x509.Certificate) bool {
	for _, e := range c.Extensions {
		if e.Id.Equal(oidProxyInfo()) || e.Id.Equal(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 3536, 1, 222}) {
			return true
		}
	}
	name := c.Subject.CommonName
	return (name == "proxy" || name == "limited proxy") && len(c.Subject.Names) == len(c.Issuer.Names)+1
}

func oidProxyInfo() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 14} }

// Lengths of keys that are accepted.
const (
	leastKeyBits = 1024
	mostKeyBits  = 8192
)

// parseKey returns the first private key of a text, nil if the text contains no key.
func parseKey(text []byte) (*rsa.PrivateKey, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if !strings.HasSuffix(block.Type, "PRIVATE KEY") {
			continue
		}
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return nil, Refuse("the private key is encrypted: make a proxy of it first, for instance with voms-proxy-init")
		}
		key, err := parseKeyBlock(block)
		if err != nil {
			return nil, Refuse("private key: %v", err)
		}
		if n := key.N.BitLen(); n < leastKeyBits {
			return nil, Refuse("the private key has %d bits, fewer than the %d that are the least: make one of 2048", n, leastKeyBits)
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
		return nil, Refuse("it is of an elliptic curve; the protocol knows RSA only")
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := any.(*rsa.PrivateKey)
	if !ok {
		return nil, Refuse("it is a %T; the protocol knows RSA only", any)
	}
	return key, nil
}

// A proxy made by weir has the lifetime of the reference's proxies, and is replaced before it ends.
const (
	proxyLife  = 12 * time.Hour
	proxySpare = time.Hour
)

// makeProxy signs a proxy with a user's key, as the clients of XRootD do when the user has no
// proxy: it inherits all rights, only one more proxy can be derived from it (see Delegate), and it
// exists in memory only.
func makeProxy(user *x509.Certificate, userKey *rsa.PrivateKey, now time.Time) (*x509.Certificate, *rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, err
	}
	der, err := signProxy(user, userKey, &key.PublicKey, policy{proxies: 1, language: inheritAll()}, now)
	if err != nil {
		return nil, nil, err
	}
	proxy, err := x509.ParseCertificate(der)
	return proxy, key, err
}

// Delegate signs a limited proxy for the key of a server's request (PKCS #10, DER), valid for 12 hours at most, and returns it in DER.
// With it the server can act for the user until then, except start jobs; no further proxy can be derived from it.
func (id *Identity) Delegate(request []byte, now time.Time) ([]byte, error) {
	key, err := requestedKey(request)
	if err != nil {
		return nil, err
	}
	der, err := signProxy(id.Chain[0], id.Key, key, policy{language: limited()}, now)
	if err != nil {
		return nil, Refuse("delegate a proxy: %v", err)
	}
	return der, nil
}

// requestedKey returns the key for which a server requests a proxy.
func requestedKey(der []byte) (*rsa.PublicKey, error) {
	request, err := x509.ParseCertificateRequest(der)
	if err == nil {
		err = request.CheckSignature()
	}
	if err != nil {
		return nil, wireclient.ProtocolError("the server's request for a proxy: %v", err)
	}
	key, ok := request.PublicKey.(*rsa.PublicKey)
	if !ok {
		return nil, wireclient.ProtocolError("the server wants a proxy for a key of type %v; RSA is what proxies have",
			request.PublicKeyAlgorithm)
	}
	if n := key.N.BitLen(); n < leastKeyBits || n > mostKeyBits {
		return nil, Refuse("the server wants a proxy for a key of %d bits; %d to %d are accepted", n, leastKeyBits, mostKeyBits)
	}
	return key, nil
}

// signProxy signs a proxy by RFC 3820 for a key.
func signProxy(by *x509.Certificate, signer crypto.Signer, key *rsa.PublicKey, p policy, now time.Time) ([]byte, error) {
	var raw [4]byte
	_, _ = rand.Read(raw[:]) // never fails
	serial := int64(binary.BigEndian.Uint32(raw[:]) >> 1)
	subject, err := dn.WithCommonName(by.RawSubject, strconv.FormatInt(serial, 10))
	if err != nil {
		return nil, err
	}
	info, err := p.encode()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), RawSubject: subject,
		NotBefore: slices.MaxFunc([]time.Time{now.Add(-5 * time.Minute), by.NotBefore}, time.Time.Compare), // clocks differ
		NotAfter:  slices.MinFunc([]time.Time{now.Add(proxyLife), by.NotAfter}, time.Time.Compare),
		KeyUsage:  x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtraExtensions: []pkix.Extension{
			{Id: oidProxyInfo(), Critical: true, Value: info},
		},
	}
	return x509.CreateCertificate(rand.Reader, template, by, key, signer)
}

// A policy is the extension that makes a certificate a proxy (RFC 3820, 3.8).
type policy struct {
	proxies  int // number of proxies that may be derived from it, one from the other; anyNumber: unlimited
	language asn1.ObjectIdentifier
}

// anyNumber is the number of proxies of a policy without a limit.
const anyNumber = -1

func inheritAll() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 21, 1} }

// limited returns Globus's policy of proxies that may move data and not start jobs.
func limited() asn1.ObjectIdentifier {
	return asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 3536, 1, 1, 1, 9}
}

func (p policy) encode() ([]byte, error) {
	type language struct{ Language asn1.ObjectIdentifier }
	return asn1.Marshal(struct {
		PathLength int `asn1:"optional,default:-1"`
		Policy     language
	}{p.proxies, language{p.language}})
}
