package gsi

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/rand"
	"crypto/rsa"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"weir/storage/gridcert"
)

// Kinds of buckets, from XrdSutAux.hh.
const (
	bucketEnd          = 0
	bucketModule       = 3000 // name of the crypto module
	bucketMain         = 3001 // a buffer within the buffer
	bucketPublic       = 3004 // public key, or agreement that is not signed
	bucketAgreement    = 3005 // signed public half of the agreement
	bucketTag          = 3006 // random tag
	bucketSignedTag    = 3007 // random tag, signed
	bucketUser         = 3008 // user name requested at the server
	bucketMessage      = 3011 // text
	bucketVersion      = 3014 // version of the protocol
	bucketOptions      = 3019 // options of the client
	bucketCertificates = 3022 // certificates, PEM
	bucketIssuer       = 3023 // hash of an authority's name
	bucketRequest      = 3024 // request for a certificate, PEM
	bucketCiphers      = 3025 // names of ciphers
	bucketDigests      = 3026 // names of digests
)

// Steps are the purposes of a buffer, from XrdSecProtocolgsi.hh.
const (
	stepHello       = 1000 // client: request for the server's credentials
	stepProof       = 1001 // client: its credentials
	stepDelegated   = 1002 // client: the proxy
	stepCertificate = 2001 // server: its credentials
	stepDelegate    = 2002 // server: request to sign a proxy
)

// maxBuckets is more than the number of buckets of any known message.
const maxBuckets = 32

// A buffer is a message, or a part of a message: the protocol's name, a step and buckets up to an
// end mark, all numbers big-endian with four bytes.
type buffer struct {
	step    uint32
	buckets []bucket
}

type bucket struct {
	kind uint32
	data []byte
}

// find returns the first bucket of a kind.
func (b buffer) find(kind uint32) ([]byte, bool) {
	for _, k := range b.buckets {
		if k.kind == kind {
			return k.data, true
		}
	}
	return nil, false
}

// parseBuffer reads a buffer. Its buckets share memory with data.
func parseBuffer(data []byte) (buffer, error) {
	rest, named := bytes.CutPrefix(data, []byte("gsi\x00"))
	if !named {
		return buffer{}, malformed("a message of %d bytes does not begin with gsi", len(data))
	}
	if len(rest) < 4 {
		return buffer{}, malformed("a message of %d bytes is cut off", len(data))
	}
	b := buffer{step: binary.BigEndian.Uint32(rest)}
	for rest = rest[4:]; ; {
		if len(rest) < 4 {
			return buffer{}, malformed("a message of %d bytes is cut off", len(data))
		}
		kind := binary.BigEndian.Uint32(rest)
		if kind == bucketEnd {
			return b, nil
		}
		if len(rest) < 8 || uint64(len(rest)-8) < uint64(binary.BigEndian.Uint32(rest[4:])) {
			return buffer{}, malformed("a message of %d bytes is cut off in bucket %d", len(data), kind)
		}
		if len(b.buckets) == maxBuckets {
			return buffer{}, malformed("a message has more than %d buckets", maxBuckets)
		}
		size := binary.BigEndian.Uint32(rest[4:])
		b.buckets = append(b.buckets, bucket{kind, rest[8 : 8+size : 8+size]})
		rest = rest[8+size:]
	}
}

// encode writes a buffer.
func encode(step uint32, buckets ...bucket) []byte {
	size := 4 + 4 + 4
	for _, k := range buckets {
		size += 8 + len(k.data)
	}
	out := append(make([]byte, 0, size), "gsi\x00"...)
	out = binary.BigEndian.AppendUint32(out, step)
	for _, k := range buckets {
		out = binary.BigEndian.AppendUint32(out, k.kind)
		out = binary.BigEndian.AppendUint32(out, uint32(len(k.data)))
		out = append(out, k.data...)
	}
	return binary.BigEndian.AppendUint32(out, bucketEnd)
}

func number(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// vectorSize is the length of initialization vectors, for all ciphers.
const vectorSize = 16

// A suite is a cipher in CBC mode, with the name that servers use.
type suite struct {
	name string
	key  int // bytes
	make func(key []byte) (cipher.Block, error)
}

func suites() []suite {
	return []suite{
		{"aes-128-cbc", 16, aes.NewCipher},
		{"aes-192-cbc", 24, aes.NewCipher},
		{"aes-256-cbc", 32, aes.NewCipher},
		{"des-ede3-cbc", 24, des.NewTripleDESCipher},
	}
}

// chooseSuite returns the first cipher of a server's list that this package supports.
func chooseSuite(list string) (suite, error) {
	known := suites()
	for name := range strings.SplitSeq(list, ":") {
		if i := slices.IndexFunc(known, func(s suite) bool { return s.name == name }); i >= 0 {
			return known[i], nil
		}
	}
	return suite{}, fmt.Errorf("the server offers the ciphers %.100q; known are aes-128-cbc, aes-192-cbc, aes-256-cbc and des-ede3-cbc: %w",
		list, errors.ErrUnsupported)
}

// chooseDigest returns the first digest of a server's list that is a common digest. The login uses
// no digest, but the server requires a choice.
func chooseDigest(list string) (string, error) {
	for name := range strings.SplitSeq(list, ":") {
		switch name {
		case "sha256", "sha384", "sha512", "sha1", "md5":
			return name, nil
		}
	}
	return "", fmt.Errorf("the server offers the digests %.100q; known are sha256, sha384, sha512, sha1 and md5: %w", list,
		errors.ErrUnsupported)
}

// A sealer encrypts with the secret of a login. It belongs to one goroutine.
type sealer struct {
	block  cipher.Block
	vector bool             // the ciphertext begins with a random vector; otherwise the vector is zero, as old servers require
	cbc    cipher.BlockMode // kept, since creating it costs as much as encrypting a hash
}

// sealer returns a sealer that uses the agreed secret.
func (s suite) sealer(secret []byte, vector bool) (*sealer, error) {
	if len(secret) < s.key {
		return nil, malformed("an agreed secret of %d bytes is too short for %s", len(secret), s.name)
	}
	block, err := s.make(secret[:s.key])
	return &sealer{block: block, vector: vector}, err
}

// seal encrypts data and appends the ciphertext to b.
func (s *sealer) seal(b, data []byte) []byte {
	size, start := s.block.BlockSize(), len(b)
	b = append(b, make([]byte, vectorSize)...)
	if s.vector {
		_, _ = rand.Read(b[start:]) // never fails
	}
	s.reset(b[start : start+size])
	if !s.vector {
		b = b[:start]
	}
	from := len(b)
	b = append(b, data...)
	for pad := size - len(data)%size; len(b) < from+len(data)+pad; {
		b = append(b, byte(pad))
	}
	s.cbc.CryptBlocks(b[from:], b[from:])
	return b
}

// unseal decrypts data of the server, which begins with its vector.
func (s *sealer) unseal(data []byte) ([]byte, error) {
	size := s.block.BlockSize()
	if len(data) <= vectorSize || (len(data)-vectorSize)%size != 0 {
		return nil, malformed("%d encrypted bytes are no blocks of %d", len(data), size)
	}
	out := make([]byte, len(data)-vectorSize)
	cipher.NewCBCDecrypter(s.block, data[:size]).CryptBlocks(out, data[vectorSize:])
	pad := int(out[len(out)-1])
	if pad == 0 || pad > size || len(bytes.TrimRight(out[len(out)-pad:], string(out[len(out)-1:]))) > 0 {
		return nil, malformed("encrypted bytes have no padding: the server has another key")
	}
	return out[:len(out)-pad], nil
}

// reset starts a message with an initialization vector.
func (s *sealer) reset(iv []byte) {
	if again, ok := s.cbc.(interface{ SetIV([]byte) }); ok {
		again.SetIV(iv)
		return
	}
	s.cbc = cipher.NewCBCEncrypter(s.block, iv)
}

// signBlocks signs data itself, not its digest, in as many blocks as required: the protocol calls
// this encryption with the private key.
func signBlocks(key *rsa.PrivateKey, data []byte) ([]byte, error) {
	most := key.Size() - 11 // bytes of a block without the PKCS #1 padding
	var out []byte
	for len(data) > 0 {
		n := min(most, len(data))
		block, err := rsa.SignPKCS1v15(nil, key, 0, data[:n])
		if err != nil {
			return nil, gridcert.Refuse("sign with the proxy's key: %v", err)
		}
		out, data = append(out, block...), data[n:]
	}
	return out, nil
}

// maxBlocks is more than the number of blocks of a signed agreement of 8192 bits.
const maxBlocks = 32

// recoverBlocks returns the data that was signed with the private key of the given public key, and
// an error if any other key signed it. The standard library only verifies signatures of known data;
// here the data is contained in the signature.
func recoverBlocks(key *rsa.PublicKey, signed []byte) ([]byte, error) {
	size := key.Size()
	if len(signed) == 0 || len(signed)%size != 0 || len(signed) > maxBlocks*size {
		return nil, gridcert.Refuse("a signature of %d bytes cannot be of the server's key of %d bits", len(signed), key.N.BitLen())
	}
	var out []byte
	e := big.NewInt(int64(key.E))
	block := make([]byte, size)
	for ; len(signed) > 0; signed = signed[size:] {
		c := new(big.Int).SetBytes(signed[:size])
		if c.Cmp(key.N) >= 0 {
			return nil, gridcert.Refuse("a signature is not of the server's key")
		}
		data, ok := unpad(c.Exp(c, e, key.N).FillBytes(block))
		if !ok {
			return nil, gridcert.Refuse("a signature is not of the server's key")
		}
		out = append(out, data...)
	}
	return out, nil
}

// unpad removes the padding of PKCS #1 v1.5 signatures: 0, 1, at least eight 255 and 0.
func unpad(block []byte) ([]byte, bool) {
	if len(block) < 11 || block[0] != 0 || block[1] != 1 {
		return nil, false
	}
	end := bytes.IndexByte(block[2:], 0)
	if end < 8 {
		return nil, false
	}
	for _, b := range block[2 : 2+end] {
		if b != 0xff {
			return nil, false
		}
	}
	return block[2+end+1:], true
}
