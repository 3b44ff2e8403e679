package calibration

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"weir/loadtest/run/calibration/relay"
)

// A Wire has the requests of clients, by file.
type Wire struct {
	Requests   []Request `json:"requests"`
	Sent       Both      `json:"sent_bytes_per_file"`     // by clients
	Received   Both      `json:"received_bytes_per_file"` // by clients
	Redirected bool      `json:"redirected,omitempty"`    // only requests to the target itself
	Opaque     bool      `json:"opaque,omitempty"`        // encrypted: there are no requests to see
	Late       bool      `json:"late,omitempty"`          // servers count reads and bytes when a connection ends
}

// Both holds a figure of weir's clients and the same figure of the program's.
type Both struct {
	Weir float64 `json:"weir"`
	Real float64 `json:"program"`
}

// A Request is a request with its number for each file.
type Request struct {
	Name string `json:"name"`
	Both
}

// Differ reports whether the two sides are not the same, beyond the effect of one file that began
// too early or ended too late.
func (b Both) Differ() bool { return math.Abs(b.Weir-b.Real) > 0.05*max(b.Weir, b.Real, 0.2) }

// seen returns the counts of the relay, nil if it has no operation of one side.
func seen(l [2]Look) *Wire {
	if l[0].Operations == 0 || l[1].Operations == 0 {
		return nil
	}
	w := &Wire{Redirected: l[0].Redirected, Opaque: l[0].Seen.Opaque+l[1].Seen.Opaque > 0}
	names := map[string]bool{}
	for _, side := range l {
		for name := range side.Seen.Requests {
			names[name] = true
		}
	}
	both := func(of func(*Look) int64) Both {
		return Both{float64(of(&l[0])) / float64(l[0].Operations), float64(of(&l[1])) / float64(l[1].Operations)}
	}
	w.Requests = append(w.Requests, Request{"connection", both(func(x *Look) int64 { return x.Seen.Connections })})
	for name := range names {
		if name != "handshake" { // as many as connections
			w.Requests = append(w.Requests, Request{name, both(func(x *Look) int64 { return x.Seen.Requests[name] })})
		}
	}
	byOrder(w.Requests)
	w.Sent, w.Received = both(func(x *Look) int64 { return x.Seen.Up }), both(func(x *Look) int64 { return x.Seen.Down })
	return w
}

// counted returns the counts of the servers, nil unless they counted for both sides.
func (r *Result) counted() *Wire {
	var done [2]float64
	var sent, received [2]float64
	sums := map[string]*[2]float64{}
	add := func(name string, side int, n int64) {
		if n == 0 {
			return
		}
		if sums[name] == nil {
			sums[name] = &[2]float64{}
		}
		sums[name][side] += float64(n)
	}
	w := &Wire{}
	for side, steps := range r.sides[:2] {
		for i := range steps {
			s := &steps[i]
			if len(s.Services) == 0 || s.Done == 0 {
				continue
			}
			done[side] += float64(s.Done)
			for _, v := range s.Services {
				w.Late = w.Late || v.Late
				add("connection", side, v.Connected)
				add("login", side, v.Logins)
				add("redirect", side, v.Redirects)
				add("wait", side, v.Waits)
				add("asynchronous I/O", side, v.Async)
				for name, n := range v.Ops {
					add(name, side, n)
				}
				sent[side] += float64(v.Received)
				received[side] += float64(v.Sent)
			}
		}
	}
	if done[0] == 0 || done[1] == 0 {
		return nil
	}
	by := func(x [2]float64) Both { return Both{x[0] / done[0], x[1] / done[1]} }
	for name, n := range sums {
		w.Requests = append(w.Requests, Request{name, by(*n)})
	}
	byOrder(w.Requests)
	w.Sent, w.Received = by(sent), by(received)
	return w
}

// byOrder puts requests into the order in which a client makes them.
func byOrder(all []Request) {
	order := []string{"connection", "protocol", "login", "authentication", "redirect", "wait", "stat", "HEAD", "PROPFIND", "open", "open" +
		relay.Async, "GET", "PUT", "page read", "read", "vector read", "page write", "write", "sync", "close", "end session"}
	place := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(all, func(a, b Request) int {
		return cmp.Or(cmp.Compare(place(a.Name), place(b.Name)), cmp.Compare(a.Name, b.Name))
	})
}

// request returns the number of requests of a name.
func (w *Wire) request(name string) Both {
	if w != nil {
		for _, q := range w.Requests {
			if q.Name == name {
				return q.Both
			}
		}
	}
	return Both{}
}

// kinds returns the requests without entries that are no requests, and without options: these are
// reported in a note.
func (w *Wire) kinds() []Request {
	var all []Request
	for _, q := range w.Requests {
		name := strings.TrimSuffix(q.Name, relay.Async)
		if slices.Contains([]string{"connection", "redirect", "wait", "asynchronous I/O"}, name) {
			continue
		}
		if i := slices.IndexFunc(all, func(o Request) bool { return o.Name == name }); i >= 0 {
			all[i].Weir, all[i].Real = all[i].Weir+q.Weir, all[i].Real+q.Real
			continue
		}
		q.Name = name
		all = append(all, q)
	}
	return all
}
