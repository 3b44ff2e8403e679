package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
)

// A Sum makes the digest of a manifest whose files come in the order of their
// names: the sha256 of lines "STATE NAME SIZE ADLER32".
type Sum struct {
	sum  hash.Hash
	line []byte
}

// NewSum returns the Sum of no files.
func NewSum() *Sum { return &Sum{sum: sha256.New()} }

// Add adds the next file.
func (s *Sum) Add(one Item) {
	s.line = fmt.Appendf(s.line[:0], "%s %s %d %s\n", one.State, one.Name, one.Size, one.Adler)
	s.sum.Write(s.line) // never fails
}

// Digest returns the digest of the files so far, in hex.
func (s *Sum) Digest() string { return hex.EncodeToString(s.sum.Sum(nil)) }
