package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/results"
)

// patience only ends tests that hang.
const patience = time.Minute

// serving serves the page of dir until the test ends, and checks that no goroutine remains then.
func serving(t *testing.T, conf Config) *Server {
	t.Helper()
	before := runtime.NumGoroutine()
	if conf.Listen == "" {
		conf.Listen = "127.0.0.1:0"
	}
	s, err := Open(t.Context(), conf, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(end) {
				buf := make([]byte, 1<<20)
				t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
			}
		}
	})
	return s
}

// A reader is a page as seen by a program.
type reader struct {
	t      *testing.T
	events *bufio.Scanner
	id     string
	resets int
	first  *got // the first message
	last   *got
	run    about
	runs   []entry
	found  *Found
	at     []float64
	cols   map[string][]*float64
	steps  map[int]stepTally
	errors map[string]errorTally
	tracks map[string]int // number of rows of each track
	texts  []string       // of events
	gone   string
}

type gotBlock struct {
	Kind, Name string
	From       int
	At         []float64
	Cols       map[string][]*float64
}

type got struct {
	Reset  bool
	Run    *about
	Runs   []entry
	Shown  string
	Now    now
	Rows   *gotBlock
	Hosts  []struct{ Name, Role string }
	Stores []storeOf
	Tracks []gotBlock
	Steps  []stepTally
	Events []event
	Errors []errorTally
	Found  *Found
}

// connect opens a page with that query; id is the state that the page already has.
func connect(t *testing.T, s *Server, query url.Values, id string) *reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Split(s.URL(), "?")[0]+"events?"+query.Encode(), nil)
	require.NoError(t, err)
	req.Header.Set("Last-Event-ID", id)
	if s.guard.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.guard.token)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { cancel(); resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	r := &reader{t: t, events: bufio.NewScanner(resp.Body)}
	r.events.Buffer(nil, 64<<20)
	r.forget()
	return r
}

func (r *reader) forget() {
	r.at, r.cols, r.steps, r.errors, r.tracks = nil, map[string][]*float64{}, map[int]stepTally{}, map[string]errorTally{}, map[string]int{}
	r.found, r.texts = nil, nil
}

// until reads messages until is returns true.
func (r *reader) until(what string, is func() bool) {
	r.t.Helper()
	for r.last == nil || !is() {
		if !r.read() {
			r.t.Fatalf("the stream ended before: %s (%v); last %+v", what, r.events.Err(), r.last)
		}
	}
}

func (r *reader) read() bool {
	r.t.Helper()
	kind := ""
	for r.events.Scan() {
		name, value, _ := strings.Cut(r.events.Text(), ": ")
		switch name {
		case "event":
			kind = value
		case "id":
			r.id = value
		case "data":
			if kind == "gone" {
				r.gone, r.last = value, &got{}
				return true
			}
			m := new(got)
			if err := json.Unmarshal([]byte(value), m); err != nil {
				r.t.Fatalf("%v: %.300s", err, value)
			}
			r.take(m)
			return true
		}
	}
	return false
}

func (r *reader) take(m *got) {
	if r.first == nil {
		r.first = m
	}
	r.last = m
	if m.Reset {
		r.resets++
		r.forget()
	}
	if m.Run != nil {
		r.run = *m.Run
	}
	if m.Runs != nil {
		r.runs = m.Runs
	}
	if m.Found != nil {
		r.found = m.Found
	}
	if b := m.Rows; b != nil {
		if b.From > len(r.at) {
			r.t.Fatalf("rows from %d, but there are %d", b.From, len(r.at))
		}
		r.at = append(r.at[:b.From], b.At...)
		for name, col := range b.Cols {
			r.cols[name] = append(r.cols[name][:min(b.From, len(r.cols[name]))], col...)
		}
	}
	for i := range m.Tracks {
		b := &m.Tracks[i]
		if key := b.Kind + " " + b.Name; b.From > r.tracks[key] {
			r.t.Fatalf("%s: rows from %d, but there are %d", key, b.From, r.tracks[key])
		} else {
			r.tracks[key] = b.From + len(b.At)
		}
	}
	for _, s := range m.Steps {
		r.steps[s.Step] = s
	}
	for _, e := range m.Errors {
		r.errors[e.Class] = e
	}
	for _, e := range m.Events {
		r.texts = append(r.texts, e.Text)
	}
}

func (r *reader) state(want string) func() bool {
	return func() bool { return r.last.Now.State == want }
}

func jsonLine(w *strings.Builder, v any) error { return json.NewEncoder(w).Encode(v) }

type resultsAbout = results.About
