package gsi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// vectorSize is the length of initialization vectors, whatever the cipher.
const vectorSize = 16

// A suite is a cipher in CBC mode, by the name that servers use.
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

// chooseSuite returns the first cipher of a server's list that we know, too.
func chooseSuite(list string) (suite, error) {
	known := suites()
	for name := range strings.SplitSeq(list, ":") {
		if i := slices.IndexFunc(known, func(s suite) bool { return s.name == name }); i >= 0 {
			return known[i], nil
		}
	}
	return suite{}, fmt.Errorf("the server offers the ciphers %.100q; known are aes-128-cbc, aes-192-cbc, aes-256-cbc and des-ede3-cbc: %w", list, errors.ErrUnsupported)
}

// chooseDigest returns the first digest of a server's list that is a usual
// one. Nothing is digested with it during the login, but the server insists.
func chooseDigest(list string) (string, error) {
	for name := range strings.SplitSeq(list, ":") {
		switch name {
		case "sha256", "sha384", "sha512", "sha1", "md5":
			return name, nil
		}
	}
	return "", fmt.Errorf("the server offers the digests %.100q; known are sha256, sha384, sha512, sha1 and md5: %w", list, errors.ErrUnsupported)
}

// seal encrypts data with the secret that was agreed upon. With a vector the
// result begins with it; otherwise the vector is zero, as old servers want it.
func (s suite) seal(secret, data []byte, vector bool) ([]byte, error) {
	if len(secret) < s.key {
		return nil, malformed("an agreed secret of %d bytes is too short for %s", len(secret), s.name)
	}
	block, err := s.make(secret[:s.key])
	if err != nil {
		return nil, err
	}
	pad := block.BlockSize() - len(data)%block.BlockSize()
	iv := make([]byte, vectorSize, vectorSize+len(data)+pad)
	if vector {
		_, _ = rand.Read(iv) // never fails
	}
	out := append(iv, data...)
	for range pad {
		out = append(out, byte(pad))
	}
	cipher.NewCBCEncrypter(block, iv[:block.BlockSize()]).CryptBlocks(out[vectorSize:], out[vectorSize:])
	if !vector {
		out = out[vectorSize:]
	}
	return out, nil
}
