package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// events sends a page the data that it lacks, as server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html), until the page disconnects. A
// slow page receives fewer and larger messages: only this goroutine waits for it.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead { // the response has no end
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		return
	}
	if s.streams.Add(1) > mostPages {
		s.streams.Add(-1)
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open already: close one of them.", mostPages))
		return
	}
	defer s.streams.Add(-1)
	q := r.URL.Query()
	has := r.Header.Get("Last-Event-ID") // of a browser that reconnects by itself
	if has == "" {
		has = q.Get("since")
	}
	p := &pageStream{hub: s.hub, key: q.Get("run"), has: parseCursor(has), picks: newPicks(q), out: w, control: http.NewResponseController(w)}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx as a proxy
	if err := p.run(ctx, s.ctx); err != nil && !errors.Is(err, errGone) {
		s.debug("a page was lost", err)
	}
}

// A pageStream is one connected page.
type pageStream struct {
	hub     *hub
	key     string // of the earlier run that it shows; "": the newest run
	has     cursor
	listed  int64 // seq of the list of runs that it has
	picks   *picks
	out     http.ResponseWriter
	control *http.ResponseController
	buf     bytes.Buffer
}

// run sends messages until ctx ends. Runs are followed until life ends.
func (p *pageStream) run(ctx, life context.Context) error {
	s, err := p.hub.get(life, p.key)
	if err != nil {
		return p.event("gone", "", map[string]string{"problem": err.Error()})
	}
	defer func() { s.leave() }()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for ctx.Err() == nil {
		next := s.next()
		list, seq, newest, changed := p.hub.choice()
		if p.key == "" && newest != s { // the page continues with the next run
			s.leave()
			s = newest
			s.enter()
			p.picks.forget()
			continue
		}
		if err := p.send(s, list, seq); err != nil {
			return err
		}
		select {
		case <-next:
		case <-changed:
		case <-beat.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// send sends the data of s that the page lacks.
func (p *pageStream) send(s *shown, list []entry, seq int64) error {
	s.mu.RLock()
	m, has := s.message(p.has, p.picks, s.clock())
	if seq != p.listed {
		m.Runs, m.Shown, p.listed = list, s.key, seq
	}
	if m.Reset {
		m.Runs, m.Shown = list, s.key
	}
	p.buf.Reset()
	err := json.NewEncoder(&p.buf).Encode(m) // under the lock: the message shares memory with the history
	s.mu.RUnlock()
	if err != nil {
		return err
	}
	p.has = has
	return p.write("message", has.String(), p.buf.Bytes())
}

func (p *pageStream) event(event, id string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return p.write(event, id, b)
}

// write sends one event. Its data is JSON in one line.
func (p *pageStream) write(event, id string, data []byte) error {
	if err := p.control.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.out, "event: %s\nid: %s\ndata: %s\n\n", event, id, bytes.TrimSpace(data)); err != nil {
		return err
	}
	return p.control.Flush()
}
