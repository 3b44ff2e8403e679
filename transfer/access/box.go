package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"weir/internal/durable"
)

// A Box encrypts the secrets in the database with a key outside of it.
type Box struct{ box cipher.AEAD }

// NewBox returns a box with the key in file, which is created if it is missing.
func NewBox(file string) (*Box, error) {
	key, err := KeepFile(file, NewKey)
	if err != nil {
		return nil, err
	}
	if len(key) != 32 {
		return nil, fmt.Errorf("%s: the key must have 32 bytes; without the right key the tokens of sites must be entered again", file)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	return &Box{box}, err
}

// NewKey returns a random key of 32 bytes.
func NewKey() ([]byte, error) {
	key := make([]byte, 32)
	_, err := rand.Read(key)
	return key, err
}

// Seal encrypts a secret of one owner.
func (s *Box) Seal(secret, owner string) []byte {
	if secret == "" {
		return []byte{}
	}
	return s.box.Seal(nil, nil, []byte(secret), []byte(owner))
}

// Open decrypts a secret of the same owner.
func (s *Box) Open(sealed []byte, owner string) (string, error) {
	if len(sealed) == 0 {
		return "", nil
	}
	secret, err := s.box.Open(nil, nil, sealed, []byte(owner))
	if err != nil {
		return "", fmt.Errorf("the token of site %s cannot be decrypted with the key in %s: enter it again", owner, SecretsFile)
	}
	return string(secret), nil
}

// KeepFile returns the content of a file, which is created if it is missing.
func KeepFile(path string, create func() ([]byte, error)) ([]byte, error) {
	text, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	if text, err = create(); err != nil {
		return nil, err
	}
	return text, durable.Write(path, text, 0o600)
}
