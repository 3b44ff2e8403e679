package tpc

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
)

// Adler writes an adler32 checksum as everything here has it: eight hexadecimal
// digits in lower case. It takes digits in either case, with or without leading
// zeros or "0x", and with the name of the algorithm before them. ok is false for
// what is no such checksum.
func Adler(text string) (digits string, ok bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	for _, name := range []string{"adler32:", "adler32="} {
		text = strings.TrimPrefix(text, name)
	}
	text = strings.TrimPrefix(text, "0x")
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil || text == "" || len(strings.TrimLeft(text, "0")) > 8 {
		return "", false
	}
	digits = "00000000" + strconv.FormatUint(n, 16)
	return digits[len(digits)-8:], true
}

// AskAdler sets the headers that ask an endpoint for adler32: RFC 3230's, which all
// storage servers know, and RFC 9530's.
func AskAdler(h http.Header) {
	h.Set("Want-Digest", "adler32")
	h.Set("Want-Repr-Digest", "adler=5")
}

// ToldAdler returns the adler32 that an answer's headers tell, "" if they tell none.
func ToldAdler(h http.Header) string {
	for _, line := range h.Values("Digest") { // RFC 3230: adler32=HEX
		for member := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(member), "=")
			if !strings.EqualFold(name, "adler32") {
				continue
			}
			if digits, ok := Adler(strings.Trim(value, `"`)); ok {
				return digits
			}
		}
	}
	for _, line := range h.Values("Repr-Digest") { // RFC 9530: adler=:BASE64 of 4 bytes:
		for member := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(member), "=")
			raw, err := base64.StdEncoding.DecodeString(strings.Trim(value, ":"))
			if (name == "adler" || name == "adler32") && err == nil && len(raw) == 4 {
				return hex.EncodeToString(raw)
			}
		}
	}
	return ""
}
