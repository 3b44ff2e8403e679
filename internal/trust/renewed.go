package trust

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookAgain is the least time between two checks of a certificate's files.
const lookAgain = time.Second

// A Renewed is a server's certificate in PEM files, which are read again after they have changed. Its methods may be called by
// several goroutines at once.
type Renewed struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	looked  time.Time // time of the last check of the files
	read    [2]stamp  // their state when they were read
	current *tls.Certificate
}

// A stamp identifies the state of a file.
type stamp struct {
	at   time.Time
	size int64
}

// NewRenewed reads a certificate and its key. While files that have changed later cannot be read or do not belong together, the
// certificate stays the one before, and a warning is logged, once for each change.
func NewRenewed(cert, key string, log *slog.Logger) (*Renewed, error) {
	r := &Renewed{cert: cert, key: key, log: log}
	return r, r.load(r.stamps())
}

// Certificate implements GetCertificate of crypto/tls.
func (r *Renewed) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.looked) >= lookAgain {
		r.looked = now
		if found := r.stamps(); found != r.read {
			if err := r.load(found); err != nil {
				r.log.Warn("the certificate has changed and cannot be read: the one before is used", "error", err)
			}
		}
	}
	return r.current, nil
}

func (r *Renewed) load(found [2]stamp) error {
	r.read = found
	pair, err := tls.LoadX509KeyPair(r.cert, r.key)
	if err == nil {
		r.current = &pair
	}
	return err
}

// stamps reads the state of both files. The stamp of a file that cannot be accessed is the zero
// value.
func (r *Renewed) stamps() (found [2]stamp) {
	for i, file := range []string{r.cert, r.key} {
		if info, err := os.Stat(file); err == nil {
			found[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return found
}

// Vouched returns nil if this system's authorities vouch for the first certificate in a PEM file under the name of a host. Other
// certificates in the file may be its authorities.
func Vouched(file, host string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	block, rest := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("%s: it has no certificate in PEM", file)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	others := x509.NewCertPool()
	others.AppendCertsFromPEM(rest)
	_, err = cert.Verify(x509.VerifyOptions{DNSName: host, Intermediates: others})
	return err
}
