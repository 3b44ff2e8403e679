package trial

import (
	"context"
	"net"

	"weir/internal/ports"
	"weir/link"
	"weir/link/emulator"
)

// CheckLinks returns an error with emulator.ErrImpossible if this process cannot emulate the links: they need namespaces, as root
// has. An isolated process would not do, since connections are made in both directions.
func CheckLinks(ctx context.Context, links []link.Named) error {
	if len(links) == 0 {
		return nil
	}
	_, err := emulator.Best(ctx, nil)
	return err
}

// openLinks makes the links. Sites with one are in namespaces of their own; the coordinator and all other sites are at the
// links' other end.
func (t *Trial) openLinks(ctx context.Context) (err error) {
	if len(t.o.Links) == 0 {
		return nil
	}
	if err := CheckLinks(ctx, t.o.Links); err != nil {
		return err
	}
	mover := append(t.o.Program[:len(t.o.Program):len(t.o.Program)], "mover")
	t.network, err = emulator.Up(ctx, t.o.Links, emulator.Options{Mover: mover, Seed: 1})
	return err
}

// at returns the far end of a site's link, nil if it has none.
func (t *Trial) at(site string) *emulator.Site {
	if t.network == nil || site == "" {
		return nil
	}
	return t.network.Site(site)
}

// sitePort is where agents behind a link listen. Each is alone in its namespace.
const sitePort = "8443"

// listen returns where a site listens, "" is the coordinator: where the others reach it, over links if it has one. The
// address stays its own until the trial is closed, so that a process that is started again is found again.
func (t *Trial) listen(site string) (string, error) {
	host := "127.0.0.1"
	if at := t.at(site); at != nil {
		return net.JoinHostPort(at.Address, sitePort), nil
	} else if t.network != nil {
		host = t.network.Service
	}
	p, err := ports.Reserve(host)
	if err != nil {
		return "", err
	}
	t.ports = append(t.ports, p)
	return p.Address(), nil
}
