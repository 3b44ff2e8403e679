package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"weir/loadtest/cluster/batch"
	"weir/loadtest/engine"
)

// A Child is this same program, started as another process, that runs until In is closed. In is
// also closed if the parent is killed.
type Child struct {
	In  io.WriteCloser // its standard input
	Out io.Reader      // its standard output
	cmd *exec.Cmd
}

// Start starts command, this program's path and the arguments of its role. Its standard error goes to
// log. The caller stops it, or closes In and waits for it.
func Start(command []string, log io.Writer) (*Child, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Args[0] = "weir"
	cmd.Stderr = log
	batch.Detach(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Child{In: in, Out: out, cmd: cmd}, nil
}

// Wait waits for the child's end, after its output has been read.
func (c *Child) Wait() error { return c.cmd.Wait() }

// Stop ends the child and waits for it.
func (c *Child) Stop() error { return errors.Join(c.In.Close(), c.Wait()) }

// SelfCommand returns the path of this program, followed by args.
func SelfCommand(args ...string) ([]string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot determine the path of this program: %w", err)
	}
	return append([]string{exe}, args...), nil
}

// Local runs c in n processes of this machine, each started as command (this program's path and the arguments that
// make it a worker). Their standard error goes to log. All have ended when Local returns.
func Local(ctx context.Context, c engine.Config, n int, command []string, manifest string, log io.Writer) error {
	var peers []Peer
	var workers []*Child
	for i := range n {
		w, err := Start(command, log)
		if err != nil {
			err = fmt.Errorf("start worker: %w", err)
			for _, w := range workers {
				_ = w.In.Close() // its end is awaited below
			}
			return errors.Join(err, wait(workers))
		}
		workers = append(workers, w)
		peers = append(peers, Peer{Name: strconv.Itoa(i + 1), In: w.Out, Out: w.In})
	}
	err := Control(ctx, c, peers, manifest)
	if e := wait(workers); err == nil {
		err = e
	}
	return err
}

// wait waits for the end of all workers.
func wait(workers []*Child) error {
	var err error
	for i, w := range workers {
		if e := w.Wait(); e != nil {
			err = errors.Join(err, fmt.Errorf("worker %d: %w", i+1, e))
		}
	}
	return err
}

// A Peer is a worker that is a process of this machine: a pair of streams.
type Peer struct {
	Name string
	In   io.Reader      // reports
	Out  io.WriteCloser // orders; closing it ends the worker
	// Reach returns the address:port at which this worker reaches a server, host:port. If it is
	// nil, the server's own address is used.
	Reach func(ctx context.Context, server string) (string, error)
	// Site is the site of the worker if the run distinguishes sites: its intervals then record the
	// jobs of that site. Otherwise it is empty.
	Site string
}

// Control drives the run c with workers, each with its share of the plan, and returns when all have
// ended. manifest is the run directory whose manifest the workers write, or empty. Control uses
// these fields of c: Plan, Files, Folder, Scratch, Steps, Sink and Finish. The loss of a worker is
// an event, and the run continues with the other workers as long as there are any.
func Control(ctx context.Context, c engine.Config, peers []Peer, manifest string) error {
	k := newController(c, WorkerOptions{Want: len(peers), closed: true}, time.Now)
	for i, p := range peers {
		w := &remote{connection: &stream{out: p.Out, enc: json.NewEncoder(p.Out)}, name: p.Name, jobs: p.Site}
		if n := max(len(c.Plan.Links.Sites()), len(c.Plan.Populations)); n > 0 {
			w.site = i % n
		}
		k.admit(w)
	}
	for i, room := range distribute(c.Plan.MostClients(), len(c.Plan.Steps), k.workers, c.Plan) {
		k.workers[i].room = room // clients taken over from others would exceed its open files
	}
	for i, p := range peers {
		b := begin{Plan: unbound(c.Plan, i), Files: c.Files, Folder: c.Folder, Homes: c.Plan.First + c.Plan.MostClients(), Scratch: c.Scratch,
			Quota: k.quota() / int64(len(peers)), Manifest: manifest, Ask: p.Reach != nil}
		if err := k.workers[i].say(order{Begin: &b}); err != nil {
			return fmt.Errorf("worker %s: %w", p.Name, err)
		}
	}
	asking, stopAsking := context.WithCancel(ctx)
	defer stopAsking()
	listening := make(chan struct{}, len(peers))
	for i, p := range peers {
		go func() { k.listen(asking, k.workers[i], p); listening <- struct{}{} }()
	}
	err := k.steer(ctx)
	stopAsking()
	for _, w := range k.workers {
		w.disconnect() // a worker that still runs ends now
	}
	for left := len(peers); left > 0; {
		select {
		case <-k.inbox: // late reports are not part of the run
		case <-listening:
			left--
		}
	}
	return k.finish(ctx, err)
}

// A stream is a connection to a process of this machine.
type stream struct {
	out io.WriteCloser
	mu  sync.Mutex
	enc *json.Encoder
}

func (s *stream) say(o order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enc.Encode(o)
}

func (s *stream) connected() bool { return true }
func (s *stream) disconnect()     { _ = s.out.Close() }
func (s *stream) written(int64)   {}

// listen receives reports of a worker of this machine until it has ended. Its requests for
// addresses of servers are handled concurrently, since that may take a while and steps do not wait
// for the addresses.
func (k *controller) listen(ctx context.Context, w *remote, p Peer) {
	dec := json.NewDecoder(p.In)
	var answers sync.WaitGroup
	defer answers.Wait()
	for {
		var r report
		err := dec.Decode(&r)
		if r.Ask != "" && p.Reach != nil {
			answers.Go(func() { answer(ctx, w, p, r.Ask) })
			continue
		}
		h := workerInput{worker: w, err: err}
		if err == nil {
			h.reports = []report{r}
		}
		k.inbox <- h
		if err != nil {
			return
		}
	}
}

// answer sends the address at which the worker reaches a server.
func answer(ctx context.Context, w *remote, p Peer, server string) {
	at := way{Server: server}
	var err error
	if at.At, err = p.Reach(ctx, server); err != nil {
		at.Error = err.Error()
	}
	_ = w.say(order{Way: &at})
}
