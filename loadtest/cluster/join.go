package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"weir/internal/trust"
	"weir/internal/wire"
	"weir/storage"
)

// JoinOptions describe a worker to its controller. The zero value is valid.
type JoinOptions struct {
	Files   uint64 // number of files that it may open; 0: no limit
	Version string // of the program
	Job     string // name in the batch system; "": from the environment

	patience time.Duration // for tests: the patience of the controller
	limit    time.Duration // longest time without a response of the controller
}

// longestSilence is the time for which a worker continues without a response of the controller,
// which may have been killed and may be restarted.
const longestSilence = 10 * time.Minute

var (
	errGivenUp = errors.New("the controller gave this worker up: it was silent for too long")
	errOver    = errors.New("the run is over")
)

// Join runs a worker that reaches its controller over a network: it registers with the pass,
// executes its share of each step and reports measurements until the run is over. A worker that the
// controller gave up registers again as another worker. When ctx ends, it aborts and reports so.
func Join(ctx context.Context, p Pass, o JoinOptions, drivers []storage.Driver) error {
	if o.patience <= 0 {
		o.patience = patience
	}
	if o.limit <= 0 {
		o.limit = longestSilence
	}
	if o.Job == "" {
		o.Job = jobID(os.Getenv)
	}
	for {
		err := join(ctx, p, o, drivers)
		if errors.Is(err, errOver) {
			return nil
		}
		if !errors.Is(err, errGivenUp) || ctx.Err() != nil {
			return err
		}
	}
}

// join runs one session.
func join(ctx context.Context, p Pass, o JoinOptions, drivers []storage.Driver) error {
	m := newMember(p, o)
	defer m.close()
	if err := m.register(ctx); err != nil {
		return err
	}
	var b begin
	if err := m.quick.Insist(ctx, beginPath, nil, &b, o.limit); err != nil {
		return err
	}
	if b.Plan == nil {
		return errors.New("worker: the controller's response has no plan")
	}
	b.Plan = b.Plan.Of(m.number)
	b.Plan.First += m.number
	m.worker = newWorker(m.send)
	m.worker.own.Clock, m.targets = m.clock.now, b.Plan.Endpoints()
	if b.Making {
		m.worker.own.Manifest = m.ledger
	}
	return m.run(ctx, func(ctx context.Context) error {
		err := m.worker.drive(ctx, &b, drivers, nil)
		m.registering.Lock()
		defer m.registering.Unlock()
		return errors.Join(err, m.guard.stop())
	})
}

// jobID returns the name of this process's job in the batch system.
func jobID(env func(string) string) string {
	if id := env("WEIR_JOB"); id != "" { // the name that its submission gave it
		return id
	}
	if id := env("SLURM_JOB_ID"); id != "" {
		if task := env("SLURM_PROCID"); task != "" {
			return id + "." + task
		}
		return id
	}
	// HTCondor writes the attributes of a job to this file, one "Name = value" a line.
	ad, err := os.ReadFile(env("_CONDOR_JOB_AD"))
	if err != nil {
		return ""
	}
	found := map[string]string{}
	for line := range strings.Lines(string(ad)) {
		if name, value, ok := strings.Cut(line, "="); ok {
			found[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	if found["ClusterId"] == "" {
		return ""
	}
	return found["ClusterId"] + "." + found["ProcId"]
}

// describeSelf returns the registration of this process.
func describeSelf(o JoinOptions) registration {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	host, _ := os.Hostname()
	here := thisMachine()
	return registration{
		identity: identity{Session: hex.EncodeToString(id), Host: host, Boot: here.boot, Space: here.pids, Pid: os.Getpid(), Job: o.Job},
		Version:  o.Version, Cores: runtime.NumCPU(), Files: o.Files,
	}
}

func oneLine(path string) string {
	text, _ := os.ReadFile(path) // if the file is missing, the text is empty
	return strings.TrimSpace(string(text))
}

// register sets the clock and opens the session.
func (m *member) register(ctx context.Context) error {
	if err := m.setClock(ctx); err != nil {
		return refused(err)
	}
	var w registrationResponse
	m.self.Offset, m.self.Doubt = m.clock.offset, m.clock.doubt
	if err := m.slow.Insist(ctx, registerPath, m.self, &w, m.options.limit); err != nil {
		return refused(err)
	}
	if w.Over {
		return errOver
	}
	m.number = w.Number
	return nil
}

// refused describes an error response of the controller.
func refused(err error) error {
	switch {
	case errors.Is(err, trust.ErrPin):
		return fmt.Errorf("worker: the certificate is not that of the controller in the pass: %w", err)
	case wire.Status(err) == http.StatusUnauthorized:
		return fmt.Errorf("worker: the controller refused this pass, which is of another run: %w", err)
	case wire.Status(err) == http.StatusGone:
		return errGivenUp
	}
	return fmt.Errorf("worker: the controller cannot be reached: %w", err)
}

// A clock is a worker's estimate of the controller's clock: the clock of its own machine may be
// wrong and may jump.
type clock struct {
	at, then time.Time     // the controller's time, and our time at that moment
	offset   time.Duration // of this machine's clock: positive if it is behind the controller's
	doubt    time.Duration // uncertainty of offset, to both sides
}

// now returns the controller's time.
func (c *clock) now() time.Time { return c.at.Add(time.Since(c.then)) }

// questions is the number of requests for the time.
const questions = 8

// setClock requests the controller's time. The response was made at some moment between request and
// response; of several requests the fastest is the most precise, and half of its duration is the
// remaining uncertainty (as in NTP, RFC 5905, section 8).
func (m *member) setClock(ctx context.Context) error {
	for i := range questions {
		var answer clockResponse
		begin := time.Now()
		var err error
		if i == 0 {
			err = m.quick.Insist(ctx, clockPath, empty{}, &answer, m.options.limit)
			if err != nil {
				return err
			}
			continue // its time includes the connection setup
		}
		if err = m.quick.Ask(ctx, clockPath, empty{}, &answer); err != nil {
			continue
		}
		took := time.Since(begin)
		if doubt := took / 2; m.clock.then.IsZero() || doubt < m.clock.doubt {
			m.clock = clock{at: answer.Time, then: begin.Add(doubt), doubt: doubt}
			m.clock.offset = m.clock.at.Sub(m.clock.then.Round(0))
		}
	}
	if m.clock.then.IsZero() {
		return m.setClock(ctx)
	}
	return nil
}
