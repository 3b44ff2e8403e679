package gsi

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"weir/internal/dn"
	"weir/internal/require"
	"weir/storage"
	"weir/storage/gridcert"
	"weir/storage/gridcert/gridcerttest"
	"weir/storage/xrootd/security"
)

// Safe primes: one of 512 bits, as XRootD 5.5 makes them, and group 15 of RFC 3526.
const (
	prime512  = "c9c2c762f2acd89e994eb87d66555237b230b36dfb5093dc35bbc429032a76a76dabec8ecfd41894a6ca3dcc3287790a5812cf879f32f49975f0c157a899c693"
	prime3072 = "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404dd" +
		"ef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7ed" +
		"ee386bfb5a899fa5ae9f24117c4b1fe649286651ece45b3dc2007cb8a163bf0598da48361c55d39a69163fa8fd24cf5f" +
		"83655d23dca3ad961c62f356208552bb9ed529077096966d670c354e4abc9804f1746c08ca18217c32905e462e36ce3b" +
		"e39e772c180e86039b2783a2ec07a28fb5c55df06f4c52c9de2bcbf6955817183995497cea956ae515d2261898fa0510" +
		"15728e5a8aaac42dad33170d04507a33a85521abdf1cba64ecfb850458dbef0a8aea71575d060c7db3970f85a6e1e4c7" +
		"abf5ae8cdb0933d71e8c94e04a25619dcee3d2261ad2ee6bf12ffa06d98a0864d87602733ec86a64521f2b18177b200c" +
		"bbe117577a615d6c770988c0bad946e208e24fa074e5ab3143db5bfce0fd108e4b82d120a93ad2caffffffffffffffff"
)

// A peer is the server's side of the protocol, for what a real server does
// not do: to lie. Its zero fields make an honest one.
type peer struct {
	pair    gridcerttest.Pair
	version uint32            // it says so; 0 means 10600
	module  string            // it says so; "" means ssl
	ciphers string            // "" means aes-128-cbc
	digests string            // "" means sha256
	prime   string            // "" means prime512
	shown   []byte            // certificates instead of its own
	signer  gridcerttest.Pair // of the tag, instead of itself
	tag     []byte            // instead of a random one
	half    func([]byte) []byte
	x       *big.Int // its secret exponent; nil means any
	client  []byte   // module that the client chose
	options uint32   // of the client
	sealer  *sealer  // with the secret that was agreed upon
	proxy   *rsa.PublicKey
}

func or[T any](given bool, value, otherwise T) T {
	if given {
		return value
	}
	return otherwise
}

func (p *peer) offer() string {
	hashes, err := dn.Hashes(p.pair.Cert.RawIssuer)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("v:%d,c:%s,ca:%s.0|%s.0", p.says(), or(p.module != "", p.module, "ssl"), hashes[0], hashes[1])
}

func (p *peer) says() uint32 { return or(p.version != 0, p.version, ourVersion) }

func (p *peer) parameters() (prime *big.Int, text []byte) {
	prime, _ = new(big.Int).SetString(or(p.prime != "", p.prime, prime512), 16)
	der, err := asn1.Marshal(struct{ P, G *big.Int }{prime, big.NewInt(5)})
	if err != nil {
		panic(err)
	}
	return prime, pem.EncodeToMemory(&pem.Block{Type: "DH PARAMETERS", Bytes: der})
}

// certify answers hello.
func (p *peer) certify(hello []byte) ([]byte, error) {
	msg, err := parseBuffer(hello)
	if err != nil {
		return nil, err
	}
	version, _ := msg.find(bucketVersion)
	signs := min(binary.BigEndian.Uint32(version), p.says()) >= signsAgreement
	p.client, _ = msg.find(bucketModule)
	options, _ := msg.find(bucketOptions)
	p.options = binary.BigEndian.Uint32(options)
	inner, _ := msg.find(bucketMain)
	main, err := parseBuffer(inner)
	if err != nil {
		return nil, err
	}
	tag, _ := main.find(bucketTag)
	signedTag, err := signBlocks(or(p.signer.Key != nil, p.signer, p.pair).Key, tag)
	if err != nil {
		return nil, err
	}
	prime, text := p.parameters()
	if p.x == nil {
		p.x, _ = new(big.Int).SetString(strings.Repeat("3", 60), 16)
	}
	half := fmt.Appendf(text, "---BPUB---%X---EPUB---", new(big.Int).Exp(big.NewInt(5), p.x, prime).Bytes())
	if p.half != nil {
		half = p.half(half)
	}
	kind := uint32(bucketPublic)
	if signs {
		kind = bucketAgreement
		if half, err = signBlocks(p.pair.Key, half); err != nil {
			return nil, err
		}
	}
	return encode(stepCertificate,
		bucket{bucketModule, p.client},
		bucket{bucketMain, encode(stepCertificate, bucket{bucketSignedTag, signedTag}, bucket{bucketTag, p.challenge()})},
		bucket{kind, half},
		bucket{bucketCiphers, []byte(or(p.ciphers != "", p.ciphers, "aes-128-cbc"))},
		bucket{bucketDigests, []byte(or(p.digests != "", p.digests, "sha256"))},
		bucket{bucketCertificates, or(p.shown != nil, p.shown, p.pair.CertPEM())},
	), nil
}

func (p *peer) challenge() []byte { return or(p.tag != nil, p.tag, []byte("abcdEFGH")) }

// admit checks the client's proof as a real server does, except the chain.
func (p *peer) admit(proof []byte) error {
	msg, err := parseBuffer(proof)
	if err != nil {
		return err
	}
	public, _ := msg.find(bucketPublic)
	half, signed := msg.find(bucketAgreement)
	if signed {
		key, err := parsePublic(public)
		if err != nil {
			return err
		}
		if half, err = recoverBlocks(key, half); err != nil {
			return err
		}
	} else {
		half = public
	}
	prime, text := p.parameters()
	group, y, err := splitHalf(half)
	if err != nil {
		return err
	}
	if !bytes.Equal(group, text) {
		return errors.New("the client changed the group")
	}
	secret := new(big.Int).Exp(y, p.x, prime).FillBytes(make([]byte, len(prime.Bytes())))
	if !signed || bytes.HasSuffix(p.client, []byte("nopad")) {
		secret = bytes.TrimLeft(secret, "\x00")
	}
	sealed, _ := msg.find(bucketMain)
	chosen, _ := msg.find(bucketCiphers)
	name, length, _ := strings.Cut(string(chosen), "#")
	if signed != (length == "16") {
		return fmt.Errorf("cipher %q", chosen)
	}
	main, err := unseal(name, secret, sealed, signed)
	if err != nil {
		return err
	}
	p.sealer = must(must(chooseSuite(name)).sealer(secret, true))
	chain, _ := main.find(bucketCertificates)
	certs, err := gridcert.ParseCertificates(chain)
	if err != nil || len(certs) < 2 {
		return fmt.Errorf("%d certificates, %w", len(certs), err)
	}
	leaf, ok := certs[0].PublicKey.(*rsa.PublicKey)
	if !ok {
		return errors.New("the proxy's key is not of RSA")
	}
	if key, err := parsePublic(public); signed && (err != nil || !key.Equal(leaf)) {
		return errors.New("the public key is not the proxy's")
	}
	signedTag, _ := main.find(bucketSignedTag)
	p.proxy = leaf
	tag, err := recoverBlocks(leaf, signedTag)
	if err != nil || !bytes.Equal(tag, p.challenge()) {
		return fmt.Errorf("tag %q, %w", tag, err)
	}
	return nil
}

func parsePublic(text []byte) (*rsa.PublicKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no public key")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	public, ok := key.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("a public key that is not of RSA")
	}
	return public, nil
}

func unseal(name string, secret, data []byte, vector bool) (buffer, error) {
	s, err := chooseSuite(name)
	if err != nil {
		return buffer{}, err
	}

	iv := make([]byte, 16)
	if vector {
		iv, data = data[:16], data[16:]
	}
	block, err := s.make(secret[:s.key])
	if err != nil {
		return buffer{}, err
	}
	out := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv[:block.BlockSize()]).CryptBlocks(out, data)
	return parseBuffer(out)
}

// login runs the whole exchange between a method and the peer.
func (p *peer) login(m *Method, host string) error {
	_, err := p.exchange(m, security.Server{Host: host})
	return err
}

// exchange is login, and returns the client's side of it.
func (p *peer) exchange(m *Method, s security.Server) (security.Exchange, error) {
	s.Parameters = p.offer()
	e, err := m.Begin(context.Background(), s)
	if err != nil {
		return nil, err
	}
	hello, err := e.Next(nil)
	if err != nil {
		return nil, err
	}
	answer, err := p.certify(hello)
	if err != nil {
		return nil, err
	}
	proof, err := e.Next(answer)
	if err != nil {
		return nil, err
	}
	if err := p.admit(proof); err != nil {
		return nil, fmt.Errorf("the server refuses: %w", err)
	}
	return e, nil
}

func TestPeerAdmitsNobodyElse(t *testing.T) {
	ca := gridcerttest.NewCA(t, "one")
	p := &peer{pair: ca.Host(t, "localhost")}
	m := newMethod(t, gridcerttest.Member(t, ca))
	m.current(t).Key = gridcerttest.NewCA(t, "another").Key
	if err := p.login(m, "localhost"); err == nil || !strings.Contains(err.Error(), "refuses") {
		t.Errorf("the peer of these tests admitted a client without the proxy's key: %v", err)
	}
}

func newMethod(t testing.TB, cred storage.Credentials) *Method {
	t.Helper()
	m, err := New(cred)
	require.NoError(t, err)
	m.names.Lookup = nil // a test that asks the DNS is wrong
	return m
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// current returns the method's identity.
func (m *Method) current(t testing.TB) *gridcert.Identity {
	t.Helper()
	return must(m.source.Current(m.clock()))
}
