package cluster

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"weir/engine"
	"weir/internal/wire"
)

// ServerOptions say where a Server is.
type ServerOptions struct {
	// Address is HOST or HOST:PORT at which workers reach this machine; "": all of its addresses are tried, at any
	// free port.
	Address string
	// State is a folder for this user's eyes only that is made if it is missing: who opens a server with the same
	// state is taken for the same.
	State string

	// Came is how many workers have come in before at a server with another state: their names and numbers are not
	// given again.
	Came int

	clock func() time.Time // of tests
}

// A Server is where workers come in over the network. Its methods may be called by several goroutines at once.
type Server struct {
	pass    Pass
	server  *wire.Server
	clock   func() time.Time // never jumps
	mu      sync.Mutex
	run     *run // nil: none has begun
	journal *journal
	was     journalState  // before we were killed
	came    int           // workers that have ever come
	begun   chan struct{} // closed when one has
}

// A run is what a Server knows of the run that is controlled.
type run struct {
	*controller
	begin    []byte // packed
	sessions map[string]*session
	over     chan struct{} // closed when it is
}

// NewServer lets workers come in: those that come before Control wait for it. Close ends it.
func NewServer(o ServerOptions) (*Server, error) {
	id, err := wire.Keep(o.State)
	if err != nil {
		return nil, err
	}
	state, err := readState(o.State)
	if err != nil {
		return nil, err
	}
	clock := o.clock
	if clock == nil {
		clock = time.Now
	}
	base, begin := clock().Round(0), time.Now()
	d := &Server{begun: make(chan struct{}), clock: func() time.Time { return base.Add(time.Since(begin)) }}
	if d.journal, d.was, err = openJournal(o.State); err != nil {
		return nil, err
	}
	d.came = max(d.was.came, o.Came)
	listen, host, err := where(o.Address, state.Port)
	if err != nil {
		return nil, err
	}
	if d.server, err = wire.Listen(context.Background(), listen, id, nil); err != nil {
		return nil, err
	}
	d.pass = Pass{Run: state.Run, Token: id.Token, Pin: id.Pin}
	port := portOf(d.server.Addr())
	for _, h := range host {
		d.pass.URLs = append(d.pass.URLs, "https://"+joinHost(h, port))
	}
	state.Port = port
	if err := state.write(o.State); err != nil {
		return nil, errors.Join(err, d.server.Close())
	}
	d.answer()
	return d, nil
}

// Pass returns what a worker needs to come in here.
func (d *Server) Pass() Pass { return d.pass }

// Close ends the server. Workers that still come in find nobody.
func (d *Server) Close() error { return errors.Join(d.server.Close(), d.journal.f.Close()) }

// answer has the server answer questions.
func (d *Server) answer() {
	wire.Handle(d.server, clockPath, longestHello, func(context.Context, *empty) (*clockResponse, error) {
		return &clockResponse{d.clock()}, nil
	})
	wire.Handle(d.server, helloPath, longestHello, d.hello)
	wire.Handle(d.server, ordersPath, longestHello, d.orders)
	wire.Handle(d.server, reportsPath, longestReports, d.reports)
	wire.Handle(d.server, manifestPath, longestReports, d.making)
	wire.HandleBytes(d.server, beginPath, func() ([]byte, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.run == nil {
			return nil, wire.Refuse(http.StatusServiceUnavailable, "the run has not begun")
		}
		return d.run.begin, nil
	})
	d.server.Begin()
}

// Control drives the run c with the workers that come in, each with its share of the plan, and returns when all have
// ended. Of c it uses Plan, Files, Folder, Steps, Sink and Finish. A worker that is lost is an event; the run goes on
// with the others, who do its share from the next step on, and with those that come later. It is called once.
func (d *Server) Control(ctx context.Context, c engine.Config, o WorkerOptions) error {
	b := begin{
		Plan: unbound(c.Plan, -1), Files: c.Files, Folder: c.Folder,
		Homes: c.Plan.First + c.Plan.MostClients(), Making: o.Manifest != nil, Ask: o.Reach != nil,
	}
	packed, err := pack(b)
	if err != nil {
		return err
	}
	r := &run{controller: newController(c, o, d.clock), begin: packed, sessions: map[string]*session{}, over: make(chan struct{})}
	r.journal, r.numbers = d.journal, d.was.numbers
	if err := r.remember(o.ResumeState, d.was.begun); err != nil {
		return err
	}
	d.mu.Lock()
	if d.run != nil {
		d.mu.Unlock()
		return errors.New("cluster: this server has had its run")
	}
	d.run = r
	for _, e := range d.was.here {
		s := r.enroll(e, 0, machine{e.Boot, e.Space})
		s.absent = true
		r.come(s.worker)
		s.worker.absent, s.worker.in, s.worker.held, s.worker.step = true, true, true, e.Step // for all we know
	}
	close(d.begun)
	d.mu.Unlock()
	err = r.finish(ctx, r.steer(ctx))
	close(r.over)
	d.farewell(r)
	return err
}

// farewell waits until the workers that are in touch know that the run is over: who does not may think that we were
// killed, and wait for us to come back.
func (d *Server) farewell(r *run) {
	late := time.NewTimer(r.options.patience / 6)
	defer late.Stop()
	look := time.NewTicker(r.options.patience / 1000)
	defer look.Stop()
	for {
		d.mu.Lock()
		waiting := false
		for _, s := range r.sessions {
			waiting = waiting || !s.knows() && (s.near() || r.silent(s.worker) < r.touch())
		}
		d.mu.Unlock()
		if !waiting {
			return
		}
		select {
		case <-look.C:
		case <-late.C:
			return
		}
	}
}

// enroll makes the session of a worker.
func (r *run) enroll(e journalEntry, files uint64, on machine) *session {
	s := newSession(r.began.UnixNano())
	s.worker = &remote{orderLine: s, name: strconv.Itoa(e.Number), number: e.Number, session: e.Session, room: r.room(files), on: on,
		pid: e.Pid, site: e.Number % max(1, len(r.Plan.Populations))}
	if sites := r.Plan.Links.Sites(); len(sites) > 0 {
		s.worker.site = r.vacancy(sites)
		if len(sites) > 1 {
			s.worker.jobs = sites[s.worker.site].Name
		}
	}
	s.worker.about = WorkerState{Host: e.Host, Job: e.Job, Offset: e.Offset, Doubt: e.Doubt}
	r.sessions[e.Session] = s
	return s
}

func pack(v any) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(v); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

// tell hands something on to the controller and waits until it has dealt with it. false: the run is over.
func (r *run) tell(h workerInput) bool {
	done := make(chan struct{}, 1)
	h.done = done
	select {
	case r.inbox <- h:
	case <-r.over:
		return false
	}
	select {
	case <-done:
		return true
	case <-r.over:
		return false
	}
}

// isOver tells whether the run is.
func (r *run) isOver() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}
