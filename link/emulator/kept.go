package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"weir/link"
)

// A Kept is links that a keeper, another process, holds, and the programs at
// their sites. Its methods may be called by several goroutines.
type Kept struct {
	// Service is as Network.Service.
	Service string
	// Pids are the processes of the emulation, whose CPU time is nobody's.
	Pids []int
	// Posts are the programs at the sites, in the order of KeptOptions.Posts.
	Posts []*Stay

	cmd  *exec.Cmd
	in   io.WriteCloser
	gone chan struct{} // closed when the links are gone before Close
	over chan struct{} // closed when the keeper has ended

	out  *jsonWriter // takes requests
	take func(*Sample)

	mu      sync.Mutex
	last    int
	waiting map[int]chan reached
	err     error // why the links are gone
	closed  bool
	done    bool // over is closed
}

// A Stay is a program at a site.
type Stay struct {
	In  io.WriteCloser // its standard input; it is to end when that does
	Out io.ReadCloser  // its standard output
}

// KeptOptions say how links are made by a keeper.
type KeptOptions struct {
	Keeper []string // a program and its arguments that calls Keep
	Choice Choice
	Links  []link.Named
	Posts  []Post
	Seed   uint64        // as Options.Seed
	Take   func(*Sample) // as Options.Take
	Log    io.Writer     // takes what keeper, mover and posts write to standard error; nil: nothing
}

// StartKept makes links in another process and starts what is to run at their
// sites. The caller closes it.
func StartKept(ctx context.Context, o KeptOptions) (_ *Kept, err error) {
	k := &Kept{gone: make(chan struct{}), over: make(chan struct{}), take: o.Take, waiting: map[int]chan reached{}}
	k.cmd = exec.Command(o.Keeper[0], o.Keeper[1:]...)
	k.cmd.Args[0] = "weir"
	k.cmd.Stderr, k.cmd.WaitDelay = o.Log, 10*time.Second
	ownGroup(k.cmd)
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
	k.cmd.ExtraFiles = theirs
	ready := make(chan struct{})
	if err := k.start(o.Choice.Isolated, ready); err != nil {
		return nil, err
	}
	err = k.out.say(request{Begin: &beginning{Way: o.Choice.Way, Links: o.Links, Seed: o.Seed, Posts: o.Posts}})
	select {
	case <-ready:
	case <-k.gone:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return k, errors.Join(err, k.Err())
}

// start starts the keeper, and what hears it.
func (k *Kept) start(isolated bool, ready chan struct{}) error {
	in, err1 := k.cmd.StdinPipe()
	out, err2 := k.cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	k.in, k.out = in, newJSONWriter(in)
	var dialer *HostDialer
	if isolated {
		var err error
		if dialer, err = Isolate(k.cmd); err != nil {
			return err
		}
	}
	if err := k.cmd.Start(); err != nil {
		k.done = true
		close(k.over)
		if dialer != nil {
			err = errors.Join(err, dialer.Close())
		}
		return fmt.Errorf("start what keeps links: %w", err)
	}
	go func() { // ends when the keeper does, which Close waits for
		k.listen(out, ready)
		k.fail(errKeeper)
		err := k.cmd.Wait()
		if dialer != nil {
			_ = dialer.Close() // nobody is inside any more
		}
		k.ended(err)
	}()
	return nil
}

// listen hears the keeper until it ends.
func (k *Kept) listen(out io.Reader, ready chan struct{}) {
	dec := json.NewDecoder(out)
	for {
		var m message
		if err := dec.Decode(&m); err != nil {
			return
		}
		switch {
		case m.Up != nil:
			k.Service, k.Pids = m.Up.Service, m.Up.Pids
			close(ready)
		case m.Sample != nil && k.take != nil:
			k.take(m.Sample)
		case m.Reached != nil:
			k.mu.Lock()
			answer := k.waiting[m.Reached.ID]
			delete(k.waiting, m.Reached.ID)
			k.mu.Unlock()
			if answer != nil {
				answer <- *m.Reached
			}
		case m.Error != "":
			k.fail(errors.New(m.Error))
		}
	}
}

var errKeeper = errors.New("what keeps the links has ended")

// fail notes why the links are gone: the first reason counts.
func (k *Kept) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil && !k.closed {
		k.err = err
		close(k.gone)
		_ = k.in.Close() // what is left of it ends
	}
}

func (k *Kept) ended(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if errors.Is(k.err, errKeeper) && err != nil {
		k.err = fmt.Errorf("%w: %w", errKeeper, err)
	}
	for id, answer := range k.waiting {
		answer <- reached{ID: id, Error: "the links are gone"}
	}
	k.waiting, k.done = nil, true
	close(k.over)
}

// Err returns why the links are gone before Close, nil while they are there.
func (k *Kept) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// Gone is closed when the links are gone before Close. What runs at the sites
// goes on: it ends with its input, as at Close.
func (k *Kept) Gone() <-chan struct{} { return k.gone }

// Reach is Site.Reach of the site of that place.
func (k *Kept) Reach(ctx context.Context, site int, address string) (string, error) {
	answer := make(chan reached, 1)
	k.mu.Lock()
	if k.done {
		k.mu.Unlock()
		return "", errors.New("the links are gone")
	}
	k.last++
	id := k.last
	k.waiting[id] = answer
	k.mu.Unlock()
	if err := k.out.say(request{Reach: &reaching{ID: id, Site: site, Address: address}}); err != nil {
		return "", err
	}
	select {
	case a := <-answer:
		if a.Error != "" {
			return "", errors.New(a.Error)
		}
		return a.Address, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// SetDown is Site.SetDown of the site of that place. It returns before the
// link has changed, by less than a millisecond.
func (k *Kept) SetDown(site int, down bool) error {
	return k.out.say(request{Down: &cut{Site: site, Down: down}})
}

// Close ends what runs at the sites, takes the links away, and returns when
// nothing of them is left. It may be called again.
func (k *Kept) Close() error {
	k.mu.Lock()
	again := k.closed
	k.closed = true
	k.mu.Unlock()
	if again || k.in == nil {
		return k.closePosts()
	}
	err := k.closePosts()
	_ = k.in.Close() // it may have been closed already
	<-k.over
	return err
}

func (k *Kept) closePosts() error {
	for _, p := range k.Posts {
		_, _ = p.In.Close(), p.Out.Close() // who ran there has ended, or ends now
	}
	return nil
}
