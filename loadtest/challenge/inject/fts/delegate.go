package fts

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"weir/loadtest/challenge/inject/service"
	"weir/storage"
	"weir/storage/gridcert"
)

const (
	leastLife    = 2 * time.Hour   // of a delegated proxy, as FTS's client; FTS refuses jobs below 1 h
	delegateWait = 5 * time.Minute // until another delegation, if the certificate itself ends soon
)

// A delegator delegates a proxy of the client certificate to FTS, and renews it.
type delegator struct {
	client *service.Client
	cred   *storage.Credentials

	mu    sync.Mutex
	until time.Time // of the delegated proxy
	next  time.Time // no delegation before
}

// certificate returns the client certificate, nil without one.
func certificate(cred *storage.Credentials) (*tls.Certificate, error) {
	if cred.TLS == nil || cred.TLS.GetClientCertificate == nil {
		return nil, nil
	}
	cert, err := cred.TLS.GetClientCertificate(&tls.CertificateRequestInfo{Version: tls.VersionTLS12, SignatureSchemes: []tls.SignatureScheme{
		tls.PSSWithSHA256, tls.PKCS1WithSHA256, tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.Ed25519}})
	if err != nil || len(cert.Certificate) == 0 {
		return nil, err
	}
	return cert, nil
}

// ensure delegates a proxy if the delegated proxy ends soon, or if now is set.
func (d *delegator) ensure(ctx context.Context, id string, now bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !now && (time.Until(d.until) >= leastLife || time.Now().Before(d.next)) {
		return nil
	}
	if !now && d.until.IsZero() {
		if err := d.look(ctx, id); err != nil || time.Until(d.until) >= leastLife {
			return err
		}
	}
	cert, err := certificate(d.cred)
	if err != nil {
		return err
	}
	if cert == nil {
		return errors.New("delegate a proxy to FTS: inject.auth has no certificate")
	}
	_, request, err := d.client.Do(ctx, service.Request{Method: http.MethodGet, Path: "/delegation/" + id + "/request", Accept: "*/*"})
	if err != nil {
		return err
	}
	chain, until, err := gridcert.DelegateFull(cert, request, time.Now())
	if err != nil {
		return fmt.Errorf("delegate a proxy to FTS: %w", err)
	}
	if _, _, err := d.client.Do(ctx, service.Request{Method: http.MethodPut, Path: "/delegation/" + id + "/credential", Body: chain,
		Type: "text/plain"}); err != nil {
		return err
	}
	d.until, d.next = until, time.Now().Add(delegateWait)
	return nil
}

// look sets the end of the delegated proxy that FTS has.
func (d *delegator) look(ctx context.Context, id string) error {
	_, body, err := d.client.Do(ctx, service.Request{Method: http.MethodGet, Path: "/delegation/" + id})
	if err != nil {
		return err
	}
	var has *struct {
		Until string `json:"termination_time"`
	}
	if err := json.Unmarshal(body, &has); err != nil {
		return fmt.Errorf("GET /delegation/%s: malformed response: %w", id, err)
	}
	if has != nil {
		d.until = parseTime(has.Until)
	}
	return nil
}
