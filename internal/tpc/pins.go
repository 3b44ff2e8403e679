package tpc

import (
	"encoding/hex"
	"fmt"
	"net"
	"strings"
)

// IsPin tells whether a text is the SHA-256 of a certificate, in hex.
func IsPin(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == 32
}

// ReadPins reads certificates that are named as HOST:PORT=SHA256, or HOST=SHA256 for
// port 443, as Options.Pins has them.
func ReadPins(list []string) (map[string]string, error) {
	pins := map[string]string{}
	for _, text := range list {
		at, pin, ok := strings.Cut(text, "=")
		if ok && !strings.Contains(strings.TrimLeft(at, "["), ":") {
			at = net.JoinHostPort(at, "443")
		}
		host, port, err := net.SplitHostPort(at)
		if !ok || err != nil || host == "" || port == "" || !IsPin(pin) {
			return nil, fmt.Errorf("%.200q: write HOST:PORT=SHA256, the latter being 64 hexadecimal digits", text)
		}
		pins[net.JoinHostPort(strings.ToLower(host), port)] = strings.ToLower(pin)
	}
	return pins, nil
}
