package trial

import (
	"context"
	"net"

	"weir/internal/ports"
	"weir/link"
	"weir/link/emulator"
)

// CheckLinks returns an error with emulator.ErrImpossible if this process cannot emulate the links:
// they need namespaces, as root has. An isolated process is not sufficient, because connections are
// made in both directions.
func CheckLinks(ctx context.Context, links []link.Named) error {
	if len(links) == 0 {
		return nil
	}
	_, err := emulator.Best(ctx, nil)
	return err
}

// openLinks creates the links. Sites with a link are in namespaces of their own; the coordinator
// and all other sites are at the other end of the links.
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

// at returns the far end of a site's link, or nil if it has no link.
func (t *Trial) at(site string) *emulator.Site {
	if t.network == nil || site == "" {
		return nil
	}
	return t.network.Site(site)
}

// sitePort is the port of agents behind a link. Each of them is alone in its namespace.
const sitePort = "8443"

// listen returns the address on which a site, or the coordinator (""), listens. The other processes
// reach it there, over a link if it has one. The address stays reserved until the trial is closed,
// so that a restarted process has the same address.
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
