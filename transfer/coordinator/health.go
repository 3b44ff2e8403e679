package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"weir/internal/db"
	"weir/internal/wire"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
	"weir/transfer/queue"
)

// Health is what does not work now. What goes on being wrong is said once, and
// again when it works.
type health struct {
	log   *slog.Logger
	mu    sync.Mutex
	wrong map[string]string
}

func newHealth(log *slog.Logger) *health { return &health{log: log, wrong: map[string]string{}} }

// say notes what became of something; nil: it works.
func (h *health) say(what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, was := h.wrong[what]
	switch {
	case err == nil && was:
		delete(h.wrong, what)
		h.log.Info("works again", "what", what)
	case err != nil && (!was || old != err.Error()):
		h.wrong[what] = err.Error()
		h.log.Warn("does not work now", "what", what, "error", err)
	}
}

// list is what is wrong.
func (h *health) list() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make(map[string]string, len(h.wrong))
	for k, v := range h.wrong {
		all[k] = v
	}
	return all
}

// comeAgain is when to ask again when the database cannot serve.
const comeAgain = 2 * time.Second

// refusal is how an error is answered.
func (c *Coordinator) refusal(err error) error {
	var conflict *store.ConflictError
	switch {
	case err == nil, wire.Status(err) != 0:
		return err
	case errors.Is(err, db.ErrBusy):
		c.health.say("database", err)
		return &wire.Error{Status: http.StatusServiceUnavailable, Text: "the database cannot serve now: ask again", After: comeAgain}
	case errors.Is(err, queue.ErrNotFound), errors.Is(err, store.ErrNotFound):
		return wire.Refuse(http.StatusNotFound, "%s", without(err, queue.ErrNotFound))
	case errors.Is(err, queue.ErrRefused), errors.Is(err, store.ErrExists), errors.As(err, &conflict):
		return wire.Refuse(http.StatusConflict, "%s", without(err, queue.ErrRefused))
	case errors.Is(err, catalog.ErrBad):
		return wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	c.log.Error("a question could not be answered", "error", err)
	return wire.Refuse(http.StatusInternalServerError, "%s", err.Error())
}

// without is the text of an error without that of its kind, which the status says.
func without(err, kind error) string {
	text := strings.TrimPrefix(err.Error(), kind.Error()+": ")
	return strings.TrimSuffix(text, ": "+kind.Error())
}

// A liveness answers whether something serves. It asks no more than once a second, and
// one question at a time, however many want to know: who asks cannot break the
// question off, nor make many of it.
type liveness struct {
	ask  func(context.Context) error
	turn chan struct{} // holds one token: who has it may ask
	at   time.Time     // of the last answer
	said error
}

const (
	livenessEach = time.Second
	livenessTime = 5 * time.Second
)

func newLiveness(ask func(context.Context) error) *liveness {
	p := &liveness{ask: ask, turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

// answer returns what became of the last question, or the end of ctx.
func (p *liveness) answer(ctx context.Context) error {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { p.turn <- struct{}{} }()
	if time.Since(p.at) >= livenessEach {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), livenessTime)
		defer cancel()
		p.said = p.ask(ctx)
		p.at = time.Now()
	}
	return p.said
}

// healthy answers whether the coordinator serves.
func (c *Coordinator) healthy(w http.ResponseWriter, r *http.Request) {
	if err := c.alive.answer(r.Context()); err != nil {
		w.Header().Set("Retry-After", "2")
		http.Error(w, "the database cannot serve now", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n")) // who is gone does not need it
}
