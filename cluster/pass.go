package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A Pass is what a worker needs to come in. It is a secret: it travels with a
// job as a file that only its user can read, and is never part of a run directory.
type Pass struct {
	Run   string   `json:"run"`   // which run it is for
	URLs  []string `json:"urls"`  // https://HOST:PORT of the controller; the first that answers
	Token string   `json:"token"` // the controller's proof that a worker is its own
	Pin   string   `json:"pin"`   // the workers' proof of the controller: its certificate's SHA-256
}

// Write writes the pass to a file of mode 0600, which must not exist yet.
func (p Pass) Write(path string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("pass: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// longestPass is the most bytes of a pass that are read.
const longestPass = 64 << 10

// ReadPass reads what Write wrote.
func ReadPass(path string) (p Pass, err error) {
	f, err := os.Open(path)
	if err != nil {
		return p, fmt.Errorf("pass: %w", err)
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, longestPass)).Decode(&p); err != nil {
		return p, fmt.Errorf("pass: %s: %w", filepath.Base(path), err)
	}
	if len(p.URLs) == 0 || p.Token == "" || p.Pin == "" {
		return p, fmt.Errorf("pass: %s: it names no controller, or no token", filepath.Base(path))
	}
	return p, nil
}
