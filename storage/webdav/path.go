package webdav

import (
	"net/url"
)

const hexDigits = "0123456789ABCDEF"

// appendPath appends a path, escaped so that nothing in it can be taken for
// anything but a part of a path (RFC 3986). Only unreserved characters and
// slashes stay as they are.
func appendPath(dst []byte, path string) []byte {
	for i := range len(path) {
		c := path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '/' || c == '.' || c == '-' || c == '_' || c == '~' {
			dst = append(dst, c)
			continue
		}
		dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

// appendPrintable appends text that is escaped already, and escapes only what
// would end or break a request line.
func appendPrintable(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f {
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// parseReference reads the Location of a redirect, relative to where it came
// from.
func parseReference(location string, from *origin, path string) (*url.URL, error) {
	base, err := url.Parse(from.scheme() + "://" + from.authority + path)
	if err != nil {
		return nil, err
	}
	return base.Parse(location)
}
