package tlsconn

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	_ "crypto/sha256" // the hashes of the suites
	_ "crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"
)

// A suite has the parameters of records under a cipher suite.
type suite struct {
	keySize int
	hash    crypto.Hash // of TLS 1.3's key schedule and TLS 1.2's PRF
	chacha  bool
}

// suiteOf returns nil for suites that crypto/tls has to handle.
func suiteOf(id uint16) *suite {
	switch id {
	case tls.TLS_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_RSA_WITH_AES_128_GCM_SHA256:
		return &suite{keySize: 16, hash: crypto.SHA256}
	case tls.TLS_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_RSA_WITH_AES_256_GCM_SHA384:
		return &suite{keySize: 32, hash: crypto.SHA384}
	case tls.TLS_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
		return &suite{keySize: 32, hash: crypto.SHA256, chacha: true}
	}
	return nil
}

func (s *suite) aead(key []byte) (cipher.AEAD, error) {
	if s.chacha {
		return chacha20poly1305.New(key)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// A half is one direction of a connection.
type half struct {
	aead     cipher.AEAD
	suite    *suite
	secret   []byte   // TLS 1.3: traffic secret
	iv       [12]byte // TLS 1.2 with AES-GCM: the first four bytes only
	explicit int      // bytes of the nonce that each record contains
	seq      uint64   // of the next record
	nonce    [12]byte
	extra    [13]byte // additional data
}

// use13 sets keys of TLS 1.3 (RFC 8446, 7.3).
func (h *half) use13(s *suite, secret []byte) error {
	key, err := expandLabel(s.hash, secret, "key", s.keySize)
	if err != nil {
		return err
	}
	iv, err := expandLabel(s.hash, secret, "iv", len(h.iv))
	if err != nil {
		return err
	}
	if h.aead, err = s.aead(key); err != nil {
		return err
	}
	h.suite, h.secret, h.seq = s, secret, 0
	copy(h.iv[:], iv)
	return nil
}

// update replaces the keys by their successors (RFC 8446, 7.2).
func (h *half) update() error {
	next, err := expandLabel(h.suite.hash, h.secret, "traffic upd", h.suite.hash.Size())
	if err != nil {
		return err
	}
	return h.use13(h.suite, next)
}

// expandLabel computes HKDF-Expand-Label without a context (RFC 8446, 7.1).
func expandLabel(hash crypto.Hash, secret []byte, label string, size int) ([]byte, error) {
	info := binary.BigEndian.AppendUint16(nil, uint16(size))
	info = append(info, byte(len("tls13 ")+len(label)))
	info = append(append(info, "tls13 "...), label...)
	return hkdf.Expand(hash.New, secret, string(append(info, 0)), size)
}

// keys12 sets the keys of TLS 1.2 (RFC 5246, 6.3). Each side has sent one record with them, its Finished.
func keys12(s *suite, from *secrets, in, out *half) error {
	ivSize, explicit := 4, 8 // RFC 5288, 3
	if s.chacha {
		ivSize, explicit = 12, 0 // RFC 7905, 2
	}
	seed := slices.Concat([]byte("key expansion"), from.hello[helloSize-32:], from.random)
	block := prf12(s.hash, from.master, seed, 2*s.keySize+2*ivSize)
	keys, ivs := block[:2*s.keySize], block[2*s.keySize:]
	var err error
	if out.aead, err = s.aead(keys[:s.keySize]); err != nil {
		return err
	}
	if in.aead, err = s.aead(keys[s.keySize:]); err != nil {
		return err
	}
	copy(out.iv[:], ivs[:ivSize])
	copy(in.iv[:], ivs[ivSize:])
	in.explicit, out.explicit = explicit, explicit
	in.seq, out.seq = 1, 1
	return nil
}

// prf12 computes the pseudorandom function of TLS 1.2 (RFC 5246, 5).
func prf12(hash crypto.Hash, secret, seed []byte, size int) []byte {
	mac := func(parts ...[]byte) []byte {
		h := hmac.New(hash.New, secret)
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	var all []byte
	for a := mac(seed); len(all) < size; a = mac(a) {
		all = append(all, mac(a, seed)...)
	}
	return all[:size]
}
