package webdav

import (
	"context"
	"fmt"
	"time"

	"weir/internal/tpc"
	"weir/storage"
)

// macaroonLife is the requested lifetime of a macaroon. A new one is requested after half of it, so
// that each copy begins with at least that time left.
const macaroonLife = 2 * time.Hour

// macaroons are the credentials that a server receives for the passive end of copies instead of the
// client certificate, which cannot be given away: macaroons of the passive end for the folder, one
// after the other. The methods are safe for concurrent use.
type macaroons struct {
	client     *tpc.Client
	folder     string // URL
	activities string
	turn       chan struct{} // holds a value while a goroutine uses the fields below
	text       string
	renew      time.Time
}

func newMacaroons(folder string, cred storage.Credentials, activities string) *macaroons {
	return &macaroons{client: tpc.New(tpc.Options{TLS: cred.TLS}), folder: folder, activities: activities, turn: make(chan struct{}, 1)}
}

// current returns a macaroon, which it requests if there is none or half of its lifetime is over.
func (m *macaroons) current(ctx context.Context) (string, error) {
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-m.turn }()
	if m.text != "" && time.Now().Before(m.renew) {
		return m.text, nil
	}
	text, err := m.client.Macaroon(ctx, tpc.Target{URL: m.folder}, m.activities, macaroonLife)
	if err != nil {
		return "", fmt.Errorf("a certificate cannot be given to another server, and %s makes no macaroon for it: use a token: %w", m.folder, err)
	}
	m.text, m.renew = text, time.Now().Add(macaroonLife/2)
	return text, nil
}

// drop forgets the macaroon.
func (m *macaroons) drop() {
	m.turn <- struct{}{}
	m.text = ""
	<-m.turn
}

func (m *macaroons) close() {
	if m != nil {
		m.client.Close()
	}
}
