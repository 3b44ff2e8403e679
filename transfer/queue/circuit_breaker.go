package queue

import (
	"maps"
	"sync"
	"time"

	"weir/internal/say"
	"weir/transfer"
)

// mostMisses is how many files in a row may be bad at a source until it is not the
// files that are doubted but the source: its storage may not be mounted.
const mostMisses = 20

// doubtPause is how long a file waits before such a source is asked for it again.
const doubtPause = time.Minute

// A circuitBreaker counts for each source the files that were bad there since it gave the
// last good one, as far as this process knows.
type circuitBreaker struct {
	mu sync.Mutex
	of map[string]int
}

func (m *circuitBreaker) copy() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		return map[string]int{}
	}
	return maps.Clone(m.of)
}

// keep notes what an edit has found: so many more files of a source in a row, or
// since is set, only those after a good one. Edits may end in any order.
func (m *circuitBreaker) keep(found map[string]badRun) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]int{}
	}
	for site, one := range found {
		if one.since {
			m.of[site] = 0
		}
		if m.of[site] += one.n; m.of[site] == 0 {
			delete(m.of, site)
		}
	}
}

// A badRun is what one edit has seen of a source: bad files in a row, and whether a
// good one was before them.
type badRun struct {
	n     int
	since bool
}

// Doubts are sources that have had nothing good for too many files in a row, and
// what is to be said of them. Their replicas are not marked as bad any more.
func (q *Queue) Doubts() map[string]string {
	all := map[string]string{}
	for site, n := range q.breaker.copy() {
		if n > mostMisses {
			all[site] = doubt(n)
		}
	}
	return all
}

func doubt(n int) string {
	return "the last " + say.Plural(n, "file") + " that were asked for were missing or bad there, one after the other: is its storage mounted?"
}

// doubted counts what a source has given. A bad file of a source that is doubted
// is asked for again later, and its replica stays what it is.
func (e *edit) doubted(source string, o transfer.Outcome) transfer.Outcome {
	if o.Fault != "" && o.Fault != transfer.SourceBad {
		return o
	}
	if e.missedNow == nil {
		e.missedNow = map[string]badRun{}
		e.after = append(e.after, func() { e.breaker.keep(e.missedNow) })
	}
	if o.Fault == "" {
		e.missedNow[source] = badRun{since: true}
		return o
	}
	one := e.missedNow[source]
	one.n++
	e.missedNow[source] = one
	n := one.n
	if !one.since {
		n += e.breaker.copy()[source]
	}
	if n > mostMisses {
		o.Fault, o.After = transfer.Throttled, doubtPause
		o.Reason += "; it is tried again, as " + doubt(n)
	}
	return o
}
