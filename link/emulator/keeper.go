package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"weir/link"
)

// A Post is a program at a site.
type Post struct {
	Site    int      `json:"site"` // place of its link among link.Sites
	Command []string `json:"command"`
}

// A request is a message from the run to its keeper, a JSON line. Exactly one field is set.
type request struct {
	Begin *beginning `json:"begin,omitempty"` // first
	Reach *reaching  `json:"reach,omitempty"`
	Down  *cut       `json:"down,omitempty"`
}

// beginning lists the links to make and the processes to run at their sites: input and output of
// post i are descriptors first+2i and first+2i+1.
type beginning struct {
	Links []link.Named `json:"links"`
	Seed  uint64       `json:"seed"`
	Posts []Post       `json:"posts,omitempty"`
}

type reaching struct {
	ID      int    `json:"id"`
	Site    int    `json:"site"`
	Address string `json:"address"`
	// From is set for Site.Forward.
	From netip.Addr `json:"from,omitzero"`
}

type cut struct {
	Link string `json:"link"`
	Down bool   `json:"down"`
}

// Keep runs a keeper, the process that makes the links of a run, and keeps them until in ends: the
// run does not need the keeper's privileges and namespaces, and the keeper's CPU time is not
// counted as the clients'. mover is this program with arguments that make it call Move. It reads
// requests from in and reports events on out.
func Keep(ctx context.Context, in io.Reader, out io.Writer, mover []string, log io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := &keeping{jsonWriter: newJSONWriter(out)}
	dec := json.NewDecoder(in)
	var first request
	if err := dec.Decode(&first); err != nil {
		return fmt.Errorf("keeper of links: first request: %w", err)
	}
	if first.Begin == nil {
		return errors.New("keeper of links: the first request must make them")
	}
	if err := k.begin(ctx, first.Begin, mover, log); err != nil {
		return errors.Join(k.say(message{Error: err.Error()}), k.close()) // the parent process reports the error and ends the posts
	}
	go k.watch(ctx) // ends with ctx
	err := k.serve(ctx, dec)
	cancel()
	k.group.Wait()
	return errors.Join(err, k.close())
}

type keeping struct {
	*jsonWriter // takes messages

	dialer *HostDialer
	net    *Network
	posts  []*exec.Cmd
	group  sync.WaitGroup // pending responses
}

// begin makes the links and starts the processes at their sites.
func (k *keeping) begin(ctx context.Context, b *beginning, mover []string, log io.Writer) (err error) {
	streams := make([]*os.File, 2*len(b.Posts))
	for i := range streams {
		streams[i] = os.NewFile(uintptr(firstStream+i), "stream")
		syscall.CloseOnExec(int(streams[i].Fd()))
	}
	defer func() { // the posts have their own of them
		for _, f := range streams {
			err = errors.Join(err, f.Close())
		}
	}()
	o := Options{Mover: mover, Log: log, Seed: b.Seed, Take: func(s *Sample) { _ = k.say(message{Sample: s}) }} // the other end is closed
	if k.dialer, err = Enter(); err != nil {
		return err
	}
	if k.dialer != nil {
		o.Outside, o.OutsideListen = k.dialer.Dial, k.dialer.Listen
	}
	if k.net, err = Up(ctx, b.Links, o); err != nil {
		return err
	}
	for i, p := range b.Posts {
		cmd := exec.Command(p.Command[0], p.Command[1:]...)
		cmd.Args[0] = "weir"
		cmd.Stdin, cmd.Stdout, cmd.Stderr = streams[2*i], streams[2*i+1], log
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as this process
		if err := k.net.Sites[p.Site].Start(cmd); err != nil {
			return fmt.Errorf("start at a site: %w", err)
		}
		k.posts = append(k.posts, cmd)
	}
	return k.say(message{Up: &state{Service: k.net.Service, Pids: append(k.net.pids, os.Getpid())}})
}

// firstStream is the first descriptor that a keeper inherits.
const firstStream = 3

// watch reports the loss of the links.
func (k *keeping) watch(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-k.net.over:
		if err := k.net.Err(); err != nil {
			_ = k.say(message{Error: err.Error()}) // the other end is closed
		}
	}
}

// serve handles requests until the other end is closed.
func (k *keeping) serve(ctx context.Context, dec *json.Decoder) error {
	for {
		var r request
		if err := dec.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("keeper of links: %w", err)
		}
		switch {
		case r.Reach != nil:
			k.group.Go(func() { k.reach(ctx, r.Reach) })
		case r.Down != nil:
			if err := k.down(r.Down); err != nil {
				_ = k.say(message{Error: err.Error()}) // as above
			}
		}
	}
}

func (k *keeping) down(c *cut) error {
	l := k.net.Line(c.Link)
	if l == nil {
		return fmt.Errorf("there is no link %q", c.Link)
	}
	return l.SetDown(c.Down)
}

func (k *keeping) reach(ctx context.Context, r *reaching) {
	answer := reached{ID: r.ID}
	site := k.net.Sites[r.Site]
	var err error
	if r.From.IsValid() {
		answer.Port, err = site.Forward(ctx, r.Address, r.From)
	} else {
		answer.Address, err = site.Reach(ctx, r.Address)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	_ = k.say(message{Reached: &answer}) // as above
}

// postPatience limits the time that a process at a site may need to end.
const postPatience = 20 * time.Second

// close waits for the processes at the sites, whose inputs have ended, and removes the links.
func (k *keeping) close() error {
	var err error
	for _, cmd := range k.posts {
		late := time.AfterFunc(postPatience, func() { _ = cmd.Process.Kill() })
		err = errors.Join(err, cmd.Wait())
		late.Stop()
	}
	if k.net != nil {
		err = errors.Join(err, k.net.Close())
	}
	if k.dialer != nil {
		err = errors.Join(err, k.dialer.Close())
	}
	return err
}
