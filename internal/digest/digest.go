// Package digest reads and writes the checksums in HTTP headers: Digest of RFC 3230, and Repr-Digest and
// Content-Digest of RFC 9530.
package digest

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
)

// An Algorithm is a checksum algorithm with the names that the two RFCs give it.
type Algorithm struct {
	Name, RFC3230, RFC9530 string
	Size                   int // bytes of a checksum
}

// Algorithms returns all algorithms that can be read and written.
func Algorithms() []Algorithm {
	return []Algorithm{
		{"adler32", "adler32", "adler", 4},
		{"crc32c", "crc32c", "crc32c", 4},
		{"md5", "md5", "md5", 16},
		{"sha256", "sha-256", "sha-256", 32},
	}
}

// Adler32 returns the algorithm that scientific storage services agree on.
func Adler32() Algorithm { return Algorithms()[0] }

// Lookup returns the algorithm that has a name, in either RFC and in any case.
func Lookup(name string) (a Algorithm, ok bool) {
	for _, a := range Algorithms() {
		if a.named(name) {
			return a, true
		}
	}
	return a, false
}

// Short returns a checksum ALGORITHM:DIGITS in the form in which the checksums of files are stored:
// an adler32 without its name.
func Short(sum string) string { return strings.TrimPrefix(sum, Adler32().Name+":") }

// Split returns algorithm and digits of a checksum that Short has returned, adler32 of "".
func Split(short string) (a Algorithm, digits string) {
	name, digits, named := strings.Cut(short, ":")
	if a, ok := Lookup(name); named && ok {
		return a, digits
	}
	return Adler32(), short
}

// Words returns such a checksum as errors have it: "adler32 1a2b3c4d".
func Words(short string) string {
	a, digits := Split(short)
	return a.Name + " " + digits
}

// Kept returns the result of Short for digits of the algorithm; "" if digits is empty.
func (a Algorithm) Kept(digits string) string {
	if digits == "" {
		return ""
	}
	return Short(a.Name + ":" + digits)
}

func (a Algorithm) named(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return name == a.Name || name == a.RFC3230 || name == a.RFC9530
}

// InHeader calls Find for the headers of a response.
func (a Algorithm) InHeader(h http.Header) (sum string) {
	sum, _ = a.Find(strings.Join(h["Digest"], ","), strings.Join(h["Repr-Digest"], ","))
	return sum
}

// Find returns the checksum that the values of a Digest and a Repr-Digest header state, in hexadecimal digits.
// Without a valid one it returns "" and the value that could not be read, if there is any.
func (a Algorithm) Find(digest, repr string) (sum, invalid string) {
	for member := range strings.SplitSeq(repr, ",") {
		name, value, _ := strings.Cut(member, "=")
		if value = strings.TrimSpace(value); !a.named(name) {
			continue
		}
		if strings.HasPrefix(value, ":") {
			if sum, ok := a.Hex(value); ok {
				return sum, ""
			}
		}
		invalid = value
	}
	for member := range strings.SplitSeq(digest, ",") {
		name, value, _ := strings.Cut(member, "=")
		if value = strings.TrimSpace(value); !a.named(name) {
			continue
		}
		if sum, ok := a.Hex(value); ok {
			return sum, ""
		}
		invalid = value
	}
	return "", invalid
}

// Hex returns a header's value as hexadecimal digits of full length. Services write base64 (md5,
// crc32c, sha256), base64 between colons (RFC 9530), or hexadecimal digits (adler32), often without
// leading zeros. The length distinguishes these encodings.
func (a Algorithm) Hex(value string) (sum string, ok bool) {
	value, _, _ = strings.Cut(value, ";")
	value = strings.Trim(strings.TrimSpace(value), `"`)
	inner, colons := strings.CutPrefix(value, ":")
	if b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, ":")); err == nil && len(b) == a.Size {
		return hex.EncodeToString(b), true
	}
	digits := strings.TrimPrefix(strings.ToLower(value), "0x")
	if colons || digits == "" || len(digits) > 2*a.Size {
		return "", false
	}
	digits = strings.Repeat("0", 2*a.Size-len(digits)) + digits
	_, err := hex.DecodeString(digits)
	return digits, err == nil
}

// Base64 returns hexadecimal digits as base64, as headers have most checksums.
func Base64(digits string) string {
	raw, _ := hex.DecodeString(digits) // from hex.EncodeToString
	return base64.StdEncoding.EncodeToString(raw)
}
