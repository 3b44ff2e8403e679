package emulator

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"

	"weir/link"
)

// A Kept is links that a keeper, another process, holds, and the programs at their sites. Its methods may be called
// by several goroutines.
type Kept struct {
	// Service is as Network.Service.
	Service string
	// Pids are the processes of the emulation, whose CPU time is neither the clients' nor the service's.
	Pids []int
	// Posts are the programs at the sites, in the order of KeptOptions.Posts.
	Posts []*Stay

	*helper
}

// A Stay is a program at a site.
type Stay struct {
	In  io.WriteCloser // its standard input; the program is to end when its input does
	Out io.ReadCloser  // its standard output
}

// KeptOptions configure the links of a keeper.
type KeptOptions struct {
	Keeper   []string // a program and its arguments that calls Keep
	Isolated bool     // as Choice.Isolated
	Links    []link.Named
	Posts    []Post
	Seed     uint64        // as Options.Seed
	Take     func(*Sample) // as Options.Take
	Log      io.Writer     // takes the standard error of keeper, mover and posts; nil: nothing
}

// StartKept makes links in another process and starts the programs at their sites. The caller closes it.
func StartKept(ctx context.Context, o KeptOptions) (_ *Kept, err error) {
	k := &Kept{helper: newHelper("keeps the links", o.Keeper, o.Take, o.Log)}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close() // the keeper has its own, or was not started
		}
		if err != nil {
			err = errors.Join(err, k.Close())
		}
	}()
	for range o.Posts {
		in, toIn, err1 := os.Pipe()
		fromOut, out, err2 := os.Pipe()
		theirs = append(theirs, in, out)
		k.Posts = append(k.Posts, &Stay{In: toIn, Out: fromOut})
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
	}
	begin := &beginning{Links: o.Links, Seed: o.Seed, Posts: o.Posts}
	if err := k.start(ctx, o.Isolated, theirs, request{Begin: begin}); err != nil {
		return nil, err
	}
	k.Service, k.Pids = k.up.Service, k.up.Pids
	return k, nil
}

// Reach calls Site.Reach of the site with that index.
func (k *Kept) Reach(ctx context.Context, site int, address string) (string, error) {
	a, err := k.reach(ctx, reaching{Site: site, Address: address})
	return a.Address, err
}

// Forward calls Site.Forward of the site with that index.
func (k *Kept) Forward(ctx context.Context, site int, address string, from netip.Addr) (uint16, error) {
	a, err := k.reach(ctx, reaching{Site: site, Address: address, From: from})
	return a.Port, err
}

func (k *Kept) reach(ctx context.Context, r reaching) (reached, error) {
	a, err := k.asked.ask(ctx, func(id int) error {
		r.ID = id
		return k.say(request{Reach: &r})
	})
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

// SetDown calls Line.SetDown of the link of that name. It returns before the link has changed, by
// less than a millisecond.
func (k *Kept) SetDown(name string, down bool) error {
	return k.say(request{Down: &cut{Link: name, Down: down}})
}

// Close ends the programs at the sites, removes the links, and returns when nothing of them is left. It may be called
// again.
func (k *Kept) Close() error {
	k.close(func() {
		for _, p := range k.Posts {
			_, _ = p.In.Close(), p.Out.Close() // the program has ended, or ends now
		}
	})
	return nil
}
