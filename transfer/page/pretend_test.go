package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/page"
)

// A pretender is a server with the API of a coordinator and data that a test made up, such as a
// million files, and unusual names.
type pretender struct {
	*httptest.Server
	page *page.Page

	mu       sync.Mutex
	sites    []catalog.Site
	datasets []catalog.Dataset
	requests []transfer.Request
	links    []transfer.Link
	samples  []transfer.Sample
	reasons  []transfer.Reason
	attempts []transfer.Attempt
	item     func(r transfer.Request, id int64) transfer.Item // the id-th file, from 1
	asked    []string                                         // requests that were received
	events   chan transfer.Event
	away     bool // no request is answered
}

// may returns the holder of a token, whose role is its first part.
func may(_ context.Context, token string) (page.Who, error) {
	role, name, _ := strings.Cut(token, ":")
	if !slices.Contains([]string{"read", "submit", "approve", "admin"}, role) {
		return page.Who{}, errors.New("the token is not good: its issuer is not trusted here")
	}
	return page.Who{Name: name, Roles: []string{"weir." + role}}, nil
}

func pretend(t *testing.T) *pretender {
	t.Helper()
	pg, err := page.New(page.Config{Check: may, Loopback: true})
	require.NoError(t, err)
	p := &pretender{page: pg, events: make(chan transfer.Event)}
	mux := http.NewServeMux()
	for _, pattern := range page.Patterns() {
		mux.Handle(pattern, pg)
	}
	show := func(path string, of func(r *http.Request) any) {
		mux.HandleFunc("GET /api/v1/"+path, func(w http.ResponseWriter, r *http.Request) { p.tell(w, r, of) })
	}
	show("sites", func(*http.Request) any { return p.sites })
	show("links", func(*http.Request) any { return p.links })
	show("samples", func(*http.Request) any { return p.samples })
	show("datasets", func(r *http.Request) any { return p.page1(r) })
	show("dataset", func(r *http.Request) any {
		if i := slices.IndexFunc(p.datasets, func(d catalog.Dataset) bool { return d.Name == r.URL.Query().Get("name") }); i >= 0 {
			return p.datasets[i]
		}
		return nil
	})
	show("requests", func(r *http.Request) any { return p.list(r) })
	show("requests/{id}", func(r *http.Request) any { return p.one(r) })
	show("requests/{id}/items", func(r *http.Request) any { return p.items(r) })
	show("requests/{id}/attempts", func(*http.Request) any { return p.attempts })
	show("requests/{id}/explain", func(r *http.Request) any {
		return transfer.Explanation{Request: *p.one(r).(*transfer.Request), Reasons: p.reasons}
	})
	mux.HandleFunc("GET /api/v1/events", p.stream)
	mux.HandleFunc("POST /api/v1/requests", func(w http.ResponseWriter, r *http.Request) {
		p.tell(w, r, func(r *http.Request) any {
			var s transfer.Submission
			if json.NewDecoder(r.Body).Decode(&s) != nil {
				return nil
			}
			made := transfer.Request{ID: int64(len(p.requests) + 1), Submission: s, Status: transfer.Awaiting, By: "somebody", Made: time.Now()}
			p.requests = append(p.requests, made)
			return &made
		})
	})
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		away := p.away
		p.mu.Unlock()
		if away {
			http.Error(w, `{"error":"the database is busy"}`, http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

func (p *pretender) tell(w http.ResponseWriter, r *http.Request, of func(r *http.Request) any) {
	token, err := p.page.Token(r)
	if err != nil || token == "" {
		http.Error(w, `{"error":"nobody is signed in"}`, http.StatusUnauthorized)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r.URL.RequestURI())
	v := of(r)
	if v == nil {
		http.Error(w, `{"error":"there is no such thing"}`, http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(v)
}

func (p *pretender) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	for {
		e := transfer.Event{}
		select {
		case <-r.Context().Done():
			return
		case e = <-p.events:
		case <-beat.C:
		}
		b, _ := json.Marshal(e)
		if _, err := fmt.Fprintf(w, "data: %s\n\n", b); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

func count(r *http.Request) (after int64, n int) {
	after, _ = strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	n, _ = strconv.Atoi(r.URL.Query().Get("n"))
	return after, n
}

func (p *pretender) page1(r *http.Request) any {
	_, n := count(r)
	list := []catalog.Dataset{}
	for _, d := range p.datasets {
		if d.Name > r.URL.Query().Get("after") && len(list) < n {
			list = append(list, d)
		}
	}
	return list
}

func (p *pretender) list(r *http.Request) any {
	q := r.URL.Query()
	before, _ := strconv.ParseInt(q.Get("before"), 10, 64)
	_, n := count(r)
	list := []transfer.Request{}
	for _, x := range slices.Backward(p.requests) {
		if (before == 0 || x.ID < before) && (q.Get("status") == "" || q.Get("status") == string(x.Status)) &&
			(q.Get("open") == "" || !x.Status.Ended()) && (q.Get("to") == "" || q.Get("to") == x.To) && len(list) < n {
			list = append(list, x)
		}
	}
	return list
}

func (p *pretender) one(r *http.Request) any {
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if id < 1 || int(id) > len(p.requests) {
		return nil
	}
	return &p.requests[id-1]
}

func (p *pretender) items(r *http.Request) any {
	req, ok := p.one(r).(*transfer.Request)
	if !ok {
		return nil
	}
	after, n := count(r)
	state := r.URL.Query().Get("state")
	list := []transfer.Item{}
	for id := after + 1; id <= req.Count.Files && len(list) < n; id++ {
		if i := p.item(*req, id); state == "" || string(i.State) == state {
			list = append(list, i)
		}
	}
	return list
}
