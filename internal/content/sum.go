package content

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"strings"

	"weir/internal/adler"
)

// Algorithms returns the names of the checksums that NewHash supports.
func Algorithms() []string { return []string{"adler32", "crc32c", "md5", "sha256"} }

// NewHash returns a hash that computes the checksum alg, one of Algorithms.
func NewHash(alg string) (hash.Hash, error) {
	switch alg {
	case "adler32":
		return adler.New(), nil
	case "crc32c":
		return crc32.New(crc32.MakeTable(crc32.Castagnoli)), nil
	case "md5":
		return md5.New(), nil
	case "sha256":
		return sha256.New(), nil
	}
	return nil, fmt.Errorf("unknown checksum %q: use one of %s", alg, strings.Join(Algorithms(), ", "))
}

// Summed returns the checksum alg, in the form of Text, of the bytes that read writes to its hash.
// If alg is empty, the hash is nil and the sum is "".
func Summed(alg string, read func(hash.Hash) error) (string, error) {
	if alg == "" {
		return "", read(nil)
	}
	h, err := NewHash(alg)
	if err == nil {
		err = read(h)
	}
	if err != nil {
		return "", err
	}
	return Text(alg, h), nil
}

// Text returns h's sum as results and logs have it: "adler32:1a2b3c4d", in
// lower case hex, most significant byte first.
func Text(alg string, h hash.Hash) string {
	var b [sha256.Size]byte
	return alg + ":" + hex.EncodeToString(h.Sum(b[:0]))
}

// Sum returns the checksum alg of n bytes of seed's stream from off on, as
// Text writes it. For a whole file off is 0 and n its size.
func Sum(alg string, seed uint64, off, n int64) (string, error) {
	if off < 0 || n < 0 || off+n < 0 {
		return "", fmt.Errorf("sum of %d bytes from %d on: no such part of a file", n, off)
	}
	h, err := NewHash(alg)
	if err != nil {
		return "", err
	}
	if _, err := write(h, seed, off, n); err != nil {
		return "", err
	}
	return Text(alg, h), nil
}
