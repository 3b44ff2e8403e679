package coordinator

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"weir/internal/durable"
)

// Files in the state folder, for this user's eyes only.
const (
	secretBoxFile = "secrets.key"  // seals the secrets in the database
	issuerFile    = "issuer.key"   // signs tokens
	nameFile      = "issuer.name"  // what tokens call their issuer
	adminFile     = "admin.token"  // everything is allowed to who shows it
	lockFile      = "lock"         // held by the coordinator that uses the folder
	pageFile      = "sessions.key" // seals the sessions of browsers
	tableFile     = "weir.db"      // the database, if no other is named
)

// A secretBox keeps secrets unreadable for who has the database but not the key.
type secretBox struct{ box cipher.AEAD }

// newSecretBox makes a seal of the key in file, a new one if there is none.
func newSecretBox(file string) (*secretBox, error) {
	key, err := keepFile(file, newKey)
	if err != nil {
		return nil, err
	}
	if len(key) != 32 {
		return nil, fmt.Errorf("%s: a key has 32 bytes; without the right one tokens of sites must be given again", file)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &secretBox{box}, nil
}

func newKey() ([]byte, error) {
	key := make([]byte, 32)
	_, err := rand.Read(key)
	return key, err
}

// close seals a secret for one owner: elsewhere it does not open.
func (s *secretBox) close(secret, owner string) []byte {
	if secret == "" {
		return []byte{}
	}
	return s.box.Seal(nil, nil, []byte(secret), []byte(owner))
}

// open returns a secret.
func (s *secretBox) open(sealed []byte, owner string) (string, error) {
	if len(sealed) == 0 {
		return "", nil
	}
	secret, err := s.box.Open(nil, nil, sealed, []byte(owner))
	if err != nil {
		return "", fmt.Errorf("the token of site %s does not open with the key in %s: give it again", owner, secretBoxFile)
	}
	return string(secret), nil
}

// keepFile returns what is in a file, which it makes if it is missing.
func keepFile(path string, create func() ([]byte, error)) ([]byte, error) {
	text, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	if text, err = create(); err != nil {
		return nil, err
	}
	return text, durable.Write(path, text, 0o600)
}

// keepName returns what tokens call their issuer: the URL that was named, else
// what the first start has called it.
func keepName(dir, url, first string) (string, error) {
	if url != "" {
		return url, nil
	}
	name, err := keepFile(filepath.Join(dir, nameFile), func() ([]byte, error) { return []byte(first + "\n"), nil })
	return strings.TrimSpace(string(name)), err
}
