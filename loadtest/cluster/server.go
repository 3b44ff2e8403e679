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

	"weir/internal/wire"
	"weir/loadtest/engine"
)

// ServerOptions configure a Server.
type ServerOptions struct {
	// Address is the HOST or HOST:PORT at which workers reach this machine. If it is empty, workers
	// try all addresses of this machine, at any free port.
	Address string
	// State is a private folder, created if it is missing. A server that is opened with the state
	// of an earlier server continues in its place.
	State string

	// Came is the number of workers that connected before to a server with another state: their
	// names and numbers are not reused.
	Came int

	clock func() time.Time // for tests
}

// A Server accepts workers over the network. Its methods may be called by several goroutines at once.
type Server struct {
	pass    Pass
	server  *wire.Server
	clock   func() time.Time // does not jump
	mu      sync.Mutex
	run     *run // nil: no run has begun
	journal *journal
	was     journalState  // before the restart
	came    int           // number of workers that ever connected
	begun   chan struct{} // closed when a run has begun
}

// A run is the Server's state of the run that is controlled.
type run struct {
	controller *controller
	begin      []byte // compressed
	sessions   map[string]*session
	over       chan struct{} // closed when the run is over
}

// NewServer starts a server for workers: workers that connect before Control wait for it. The
// caller closes the server.
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

// Pass returns the pass with which a worker connects.
func (d *Server) Pass() Pass { return d.pass }

// Close ends the server. Workers can no longer connect.
func (d *Server) Close() error { return errors.Join(d.server.Close(), d.journal.f.Close()) }

// answer sets the handlers of requests and starts the server.
func (d *Server) answer() {
	wire.Handle(d.server, clockPath, longestRegistration, func(context.Context, *empty) (*clockResponse, error) {
		return &clockResponse{d.clock()}, nil
	})
	wire.Handle(d.server, registerPath, longestRegistration, d.register)
	wire.Handle(d.server, ordersPath, longestRegistration, d.orders)
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

// Control drives the run c with the workers that connect, each with its share of the plan, and
// returns when all have ended. Control uses these fields of c: Plan, Files, Folder, Steps, Sink and
// Finish. The loss of a worker is an event; the run continues with the other workers, which take
// its share from the next step on, and with workers that connect later. Control is called once.
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
	r.controller.journal, r.controller.numbers = d.journal, d.was.numbers
	if err := r.controller.loadState(o.ResumeState, d.was.begun); err != nil {
		return err
	}
	d.mu.Lock()
	if d.run != nil {
		d.mu.Unlock()
		return errors.New("this server has had its run")
	}
	d.run = r
	for _, e := range d.was.here {
		s := r.enroll(e, 0, machine{e.Boot, e.Space})
		s.absent = true
		r.controller.admit(s.worker)
		s.worker.absent, s.worker.in, s.worker.held, s.worker.step = true, true, true, e.Step // for all we know
	}
	close(d.begun)
	d.mu.Unlock()
	err = r.controller.finish(ctx, r.controller.steer(ctx))
	close(r.over)
	d.awaitNotified(r)
	return err
}

// awaitNotified waits until the connected workers have been notified that the run is over: a worker
// without this notice may assume that the controller was killed, and wait for its restart.
func (d *Server) awaitNotified(r *run) {
	late := time.NewTimer(r.controller.options.patience / 6)
	defer late.Stop()
	look := time.NewTicker(r.controller.options.patience / 1000)
	defer look.Stop()
	for {
		d.mu.Lock()
		waiting := false
		for _, s := range r.sessions {
			waiting = waiting || !s.notified() && (s.connected() || r.controller.silent(s.worker) < r.controller.silenceLimit())
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
	s := newSession(r.controller.began.UnixNano())
	s.worker = &remote{connection: s, name: strconv.Itoa(e.Number), number: e.Number, session: e.Session, room: r.room(files), on: on,
		pid: e.Pid, site: e.Number % max(1, len(r.controller.Plan.Populations))}
	if sites := r.controller.Plan.Links.Sites(); len(sites) > 0 {
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

// deliver passes h to the controller and waits until it has been handled. It returns false if the run is over.
func (r *run) deliver(h workerInput) bool {
	done := make(chan struct{}, 1)
	h.done = done
	select {
	case r.controller.inbox <- h:
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

// isOver reports whether the run is over.
func (r *run) isOver() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}
