package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"weir/internal/redact"
)

// A place is a server's name and port.
type place struct {
	host string
	port uint16
}

// found is where a worker reaches a place, once known is closed.
type found struct {
	known chan struct{}
	at    netip.AddrPort
	err   error
}

// reach implements storage.Reach: the controller is asked once for each
// server. Whoever is refused asks anew.
func (w *worker) reach(ctx context.Context, host string, port uint16) (netip.AddrPort, error) {
	p := place{host, port}
	w.places.RLock()
	f := w.ways[p]
	w.places.RUnlock()
	if f == nil {
		w.places.Lock()
		if f = w.ways[p]; f == nil {
			f = &found{known: make(chan struct{})}
			w.ways[p] = f
			if err := w.say(report{Ask: net.JoinHostPort(host, strconv.Itoa(int(port)))}); err != nil {
				w.places.Unlock()
				return netip.AddrPort{}, err
			}
		}
		w.places.Unlock()
	}
	select {
	case <-f.known:
		return f.at, f.err
	case <-ctx.Done():
		return netip.AddrPort{}, ctx.Err()
	}
}

// learn takes the controller's answer. An error is not kept: the server may
// be there the next time.
func (w *worker) learn(answer *way) {
	host, port, err := net.SplitHostPort(answer.Server)
	n, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil {
		return // nobody asked for that
	}
	p := place{host, uint16(n)}
	w.places.Lock()
	defer w.places.Unlock()
	f := w.ways[p]
	if f == nil {
		return
	}
	if answer.Error != "" {
		f.err = fmt.Errorf("reach %s over the link: %w", answer.Server, errors.New(answer.Error))
	} else {
		f.at, f.err = netip.ParseAddrPort(answer.At)
	}
	if f.err != nil {
		delete(w.ways, p)
	}
	close(f.known)
}

// reached returns u with the address where its host is reached. What an
// external program does with a redirection is its own affair.
func reached(ctx context.Context, u *url.URL, reach func(context.Context, string, uint16) (netip.AddrPort, error)) (*url.URL, error) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "dav": "80", "https": "443", "davs": "443", "root": "1094", "roots": "1094", "xroot": "1094", "xroots": "1094", "ftp": "21", "gsiftp": "2811"}[strings.ToLower(u.Scheme)]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("target %s: over a link the port has to be known: write it, as in %s://%s:1234/", redact.URL(u.String()), u.Scheme, u.Hostname())
	}
	at, err := reach(ctx, u.Hostname(), uint16(n))
	if err != nil {
		return nil, err
	}
	there := *u
	there.Host = at.String()
	return &there, nil
}
