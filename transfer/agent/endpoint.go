package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"weir/internal/durable"
	"weir/internal/token"
	"weir/internal/tpc"
	"weir/internal/trust"
	"weir/internal/wire"
	"weir/serve"
	"weir/transfer"
	"weir/transfer/endpoint"
)

// EndpointOptions configure the endpoint of a site.
type EndpointOptions struct {
	Listen            string            // HOST:PORT
	URL               string            // under which other sites reach it; "": the address at which it listens
	CertFile, KeyFile string            // PEM; "": beyond loopback a generated certificate
	ClientCA          string            // PEM file of authorities: Clients with their certificates may do everything
	Clients           []string          // names in certificates of clients
	Issuers           []string          // other issuers whose tokens are accepted: https URLs, from which their keys are fetched
	Audience          []string          // audiences of their tokens, beside the URL of the endpoint and the name of the site
	Peers             []string          // hosts that a client may copy from or to (COPY, HTTP-TPC)
	Private           bool              // allow private addresses as well
	Pins              map[string]string // their certificates by HOST:PORT, as read by trust.ReadPins, instead of authorities
	MaxFile           int64             // maximum size of a file stored there, unless a token of the coordinator sets it; 0 is no limit
}

// A localEndpoint serves the files of the site to other sites: each request needs a token of the
// coordinator for exactly its file.
type localEndpoint struct {
	server   *serve.Server
	listener net.Listener
	url, pin string
	o        *EndpointOptions
	site     string
	file     string // keeps the last registration
	clock    *clock
	checker  atomic.Pointer[token.Checker] // nil: no issuer is known yet
}

const registrationFile = "registration.json"

// openEndpoint opens the listener. It admits no client until the coordinator has sent, now or to an
// earlier process, the issuers whose tokens are accepted.
func (a *Agent) openEndpoint(ctx context.Context) (*localEndpoint, error) {
	o := a.o.Endpoint
	d := &localEndpoint{o: o, site: a.o.Site, file: filepath.Join(a.state, registrationFile), clock: a.clock}
	conf := serve.Config{
		Dir: a.o.Root, Listen: o.Listen, ClientCA: o.ClientCA, Clients: o.Clients,
		Authenticate: d.authenticate, MaxFile: o.MaxFile, Sync: true, Log: slog.New(slog.DiscardHandler),
		Extensions: []serve.Extension{&endpoint.Parts{Busy: a.activity.has}},
	}
	if len(o.Peers) > 0 {
		guard, trusted := tpc.Guard{Hosts: o.Peers, Private: o.Private}, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.trust}
		conf.Extensions = append(conf.Extensions, endpoint.NewCopier(endpoint.CopyOptions{Guard: guard, Pins: o.Pins, TLS: trusted}))
	}
	var err error
	if conf.Certificate, err = a.certificate(); err != nil {
		return nil, err
	}
	if conf.Certificate != nil {
		d.pin = trust.Fingerprint(conf.Certificate.Certificate[0])
	}
	if d.server, err = serve.New(conf); err != nil {
		return nil, err
	}
	if d.listener, err = d.server.Listen(ctx); err != nil {
		return nil, errors.Join(err, d.server.Close())
	}
	if d.url, err = a.reached(d.server.URL()); err != nil {
		return nil, errors.Join(err, d.close())
	}
	if text, err := os.ReadFile(d.file); err == nil {
		var w transfer.Registration
		if json.Unmarshal(text, &w) == nil {
			_ = d.trust(w) // the coordinator sends it again
		}
	}
	return d, nil
}

// certificate returns the certificate of the endpoint: the configured certificate, or a generated
// certificate beyond loopback. Other sites identify it by its pin in either case.
func (a *Agent) certificate() (*tls.Certificate, error) {
	o := a.o.Endpoint
	if o.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("certificate of the endpoint: %w", err)
		}
		return &pair, nil
	}
	if loopback(o.Listen) {
		return nil, nil
	}
	dir := filepath.Join(a.state, "endpoint")
	// Older versions named the folder door. Its certificate is kept: other sites have its digest.
	err := os.Rename(filepath.Join(a.state, "door"), dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	id, err := wire.Keep(dir)
	if err != nil {
		return nil, err
	}
	return &id.Cert, nil
}

// loopback reports whether a listen address cannot be reached from other machines.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// reached returns the URL under which other sites reach the endpoint: its listen address, with this
// machine's name if it listens at all addresses.
func (a *Agent) reached(url string) (string, error) {
	if given := a.o.Endpoint.URL; given != "" {
		return strings.TrimSuffix(given, "/"), nil
	}
	scheme, address, _ := strings.Cut(url, "://")
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return "", fmt.Errorf("under which name do others reach this machine? Say --url https://HOST:%s: %w", port, err)
		}
	}
	return scheme + "://" + net.JoinHostPort(host, port), nil
}

// authenticate accepts requests with a valid token.
func (d *localEndpoint) authenticate(r *http.Request) (serve.Rights, error) {
	checker := d.checker.Load()
	if checker == nil {
		return nil, fmt.Errorf("%w: this site has not heard from its coordinator yet", token.ErrKeys)
	}
	return endpoint.Bearer(checker)(r)
}

// register stores the issuers whose tokens the endpoint accepts.
func (d *localEndpoint) register(w transfer.Registration) error {
	if err := d.trust(w); err != nil {
		return err
	}
	text, err := json.Marshal(w)
	if err == nil {
		err = durable.Write(d.file, text, 0o600)
	}
	return err
}

func (d *localEndpoint) trust(w transfer.Registration) error {
	o := token.Options{
		Trust:    []token.Trust{{Issuer: w.Issuer, Keys: w.Keys}},
		Audience: slices.Concat([]string{d.url, d.site}, w.Audience, d.o.Audience), Now: d.clock.now,
	}
	for _, i := range d.o.Issuers {
		o.Trust = append(o.Trust, token.Trust{Issuer: i})
	}
	checker, err := token.NewChecker(o)
	if err == nil {
		d.checker.Store(checker)
	}
	return err
}

// serve serves requests until ctx ends.
func (d *localEndpoint) serve(ctx context.Context) error { return d.server.Serve(ctx, d.listener) }

func (d *localEndpoint) close() error {
	_ = d.listener.Close() // it is closed already if it was served
	return d.server.Close()
}
