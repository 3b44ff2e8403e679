package v1

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"weir/internal/db"
	"weir/internal/pause"
	"weir/internal/wire"
	"weir/transfer/api"
)

const (
	listeners      = 256              // connections that follow events
	keepAliveEvery = 10 * time.Second // something is sent to each
	eventPage      = 500
	slowEvents     = 30 * time.Second       // for one write to a follower
	eventPause     = 200 * time.Millisecond // in which events are collected
)

// events sends events as server-sent events (WHATWG HTML, 9.2), beginning after the id in the query
// or in Last-Event-ID. Nothing is buffered: missed events are read from the database.
func (h *Handlers) events(q *api.Call, w http.ResponseWriter) error {
	after, err := h.firstEvent(q)
	if err != nil {
		return err
	}
	defer h.listening.Add(-1)
	if h.listening.Add(1) > listeners {
		return &wire.Error{Status: http.StatusServiceUnavailable, Text: fmt.Sprintf("%d connections follow events already", listeners),
			After: 10 * time.Second}
	}
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(slowEvents)) // connections of this server can
		_, err := w.Write([]byte(text))
		return err == nil && out.Flush() == nil
	}
	for send(fmt.Sprintf("data: {\"id\":0,\"time\":%q,\"text\":\"\"}\n\n", h.Now().UTC().Format(time.RFC3339Nano))) {
		for late := time.After(keepAliveEvery); late != nil; {
			next := h.Events.Next()
			if h.State.Agents.Closed() || h.Access.Revoked(q.Token) {
				return nil
			}
			list, err := h.Queue.Read.Events(q.Context(), after, eventPage)
			if q.Context().Err() == nil {
				h.Health.Database(err)
			}
			for _, e := range list {
				text, err := json.Marshal(e)
				if err != nil || !send(fmt.Sprintf("id: %d\ndata: %s\n\n", e.ID, text)) {
					return nil
				}
				after = e.ID
			}
			if len(list) == eventPage {
				continue
			}
			select {
			case <-next:
				pause.For(q.Context(), eventPause)
			case <-late:
				late = nil
			case <-q.Context().Done():
				return nil
			}
		}
	}
	return nil
}

// firstEvent returns the id after which a follower requests events.
func (h *Handlers) firstEvent(q *api.Call) (int64, error) {
	after := q.Integer("after", 0, -1, 1<<62)
	if q.Invalid != nil {
		return 0, q.Invalid
	}
	if id, err := strconv.ParseInt(q.Header.Get("Last-Event-ID"), 10, 64); err == nil && id > after {
		after = id
	}
	if after != 0 {
		return max(after, 0), nil
	}
	last, err := db.Select(q.Context(), h.DB, db.Value[int64], "SELECT COALESCE(MAX(id), 0) FROM event")
	if err != nil {
		return 0, err
	}
	return last[0], nil
}
