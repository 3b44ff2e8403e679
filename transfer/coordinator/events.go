package coordinator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"weir/internal/db"
	"weir/internal/wire"
)

const (
	listeners      = 256              // connections that follow events at once
	keepAliveEvery = 10 * time.Second // something is sent to who listens
	eventPage      = 500
	slowEvents     = 30 * time.Second // for one write to who listens
	calmly         = 200 * time.Millisecond
)

// events sends what happens, as server-sent events (WHATWG HTML, 9.2), from the
// one after the number in the query or in Last-Event-ID. Nothing is kept for who
// listens: what he missed is read from the database.
func (c *Coordinator) events(w http.ResponseWriter, r *http.Request) {
	after, err := c.listener(r)
	if err != nil {
		answerError(w, err)
		return
	}
	defer c.listening.Add(-1)
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(slowEvents)) // connections of this server can
		_, err := w.Write([]byte(text))
		return err == nil && out.Flush() == nil
	}
	for send(fmt.Sprintf("data: {\"id\":0,\"time\":%q,\"text\":\"\"}\n\n", c.now().UTC().Format(time.RFC3339Nano))) {
		for late := time.After(keepAliveEvery); late != nil; {
			next := c.eventsChanged.next()
			if c.closing() || c.revoked.has(callerOf(r).token) {
				return
			}
			list, err := c.queue.Events(r.Context(), after, eventPage)
			c.health.say("database", unless(r, err))
			for _, e := range list {
				text, err := json.Marshal(e)
				if err != nil || !send(fmt.Sprintf("id: %d\ndata: %s\n\n", e.ID, text)) {
					return
				}
				after = e.ID
			}
			if len(list) == eventPage {
				continue
			}
			select {
			case <-next:
				c.rest(r.Context(), calmly)
			case <-late:
				late = nil
			case <-r.Context().Done():
				return
			}
		}
	}
}

// unless is an error that is not that of who asked having gone.
func unless(r *http.Request, err error) error {
	if r.Context().Err() != nil {
		return nil
	}
	return err
}

func (c *Coordinator) closing() bool {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	return c.registry.full
}

// listener admits who wants to follow events, and says after which one.
func (c *Coordinator) listener(r *http.Request) (after int64, err error) {
	if _, err := need(r, mayRead); err != nil {
		return 0, err
	}
	if after, err = asked(r, "after", 0, -1, 1<<62); err != nil {
		return 0, err
	}
	if id, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); err == nil && id > after {
		after = id
	}
	switch after {
	case 0:
		if after, err = c.lastEvent(r); err != nil {
			return 0, c.refusal(err)
		}
	case -1:
		after = 0
	}
	if c.listening.Add(1) > listeners {
		c.listening.Add(-1)
		return 0, &wire.Error{Status: http.StatusServiceUnavailable, Text: fmt.Sprintf("%d others follow events already", listeners), After: 10 * time.Second}
	}
	return after, nil
}

// lastEvent is the number of the latest event.
func (c *Coordinator) lastEvent(r *http.Request) (last int64, err error) {
	err = c.db.Read(r.Context(), func(tx *db.Tx) error {
		return tx.Row("SELECT COALESCE(MAX(id), 0) FROM event").Scan(&last)
	})
	return last, err
}

func answerError(w http.ResponseWriter, err error) {
	status := wire.Status(err)
	if status == 0 {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()}) // who is gone asks again
}
