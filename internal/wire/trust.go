package wire

import (
	"crypto/x509"
	"fmt"
	"os"
)

// Trust returns the system's authorities with those of a PEM file besides; nil,
// which stands for the system's alone, if none is named.
func Trust(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // see above
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // this system has none
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: there is no certificate in it", file)
	}
	return pool, nil
}
