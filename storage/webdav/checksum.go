package webdav

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"weir/storage"
)

// An algorithm has a name for us and one for each of the two RFCs.
type algorithm struct {
	name, rfc3230, rfc9530 string
	size                   int // bytes of a sum
}

func algorithms() []algorithm {
	return []algorithm{
		{"adler32", "adler32", "adler", 4},
		{"crc32c", "crc32c", "crc32c", 4},
		{"md5", "md5", "md5", 16},
		{"sha256", "sha-256", "sha-256", 32},
	}
}

// checksum is HEAD with the wish for a digest, in the words of both RFCs.
func (x *call) checksum() error {
	var alg algorithm
	for _, a := range algorithms() {
		if a.name == x.op.Sum {
			alg = a
		}
	}
	if alg.size == 0 {
		return fmt.Errorf("checksum %q: use one of adler32, crc32c, md5, sha256: %w", x.op.Sum, errors.ErrUnsupported)
	}
	l, err := x.exchange(&request{
		method: http.MethodHead, path: x.op.Path,
		extra: "Want-Digest: " + alg.rfc3230 + "\r\nWant-Repr-Digest: " + alg.rfc9530 + "=1\r\n",
	})
	if err != nil {
		return err
	}
	if x.head.status != http.StatusOK && x.head.status != http.StatusNoContent {
		return x.refuse(l)
	}
	x.reach(storage.Opened)
	x.res.Size = x.head.length
	sum, err := digest(&x.head, alg)
	x.finish(l)
	x.res.Sum = sum
	return err
}

// digest finds the wanted sum in an answer's head.
func digest(h *head, alg algorithm) (string, error) {
	for _, field := range []struct {
		value []byte
		name  string
	}{{h.repr, alg.rfc9530}, {h.digest, alg.rfc3230}, {h.digest, alg.rfc9530}} {
		value, ok := findDigest(field.value, field.name)
		if !ok {
			continue
		}
		sum, ok := normalizeDigest(value, alg.size)
		if !ok {
			return "", protocolError("digest %s=%q", field.name, clip(value, 100))
		}
		return alg.name + ":" + sum, nil
	}
	return "", fmt.Errorf("the service told no checksum %s: %w", alg.name, errors.ErrUnsupported)
}

// findDigest finds name in "name=value, name=value".
func findDigest(list []byte, name string) ([]byte, bool) {
	for len(list) > 0 {
		var item []byte
		item, list, _ = bytes.Cut(list, []byte{','})
		key, value, found := bytes.Cut(trim(item), []byte{'='})
		if found && is(trim(key), name) {
			return trim(value), true
		}
	}
	return nil, false
}

// normalizeDigest returns a sum of size bytes in hex. Services write it in
// base64 (md5, crc32c), between colons (RFC 9530), or in hex (adler32), then
// often without its leading zeros. The lengths tell them apart.
func normalizeDigest(value []byte, size int) (string, bool) {
	text := string(value)
	if i := strings.IndexByte(text, ';'); i >= 0 {
		text = strings.TrimSpace(text[:i])
	}
	if len(text) >= 2 && text[0] == ':' && text[len(text)-1] == ':' {
		text = text[1 : len(text)-1]
	}
	if b, err := base64.StdEncoding.DecodeString(text); err == nil && len(b) == size {
		return hex.EncodeToString(b), true
	}
	if len(text) == 0 || len(text) > 2*size {
		return "", false
	}
	text = strings.Repeat("0", 2*size-len(text)) + strings.ToLower(text)
	_, err := hex.DecodeString(text)
	return text, err == nil
}
