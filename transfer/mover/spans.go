package mover

import "sync"

// A span is a run of bytes to be fetched.
type span struct{ from, to int64 }

// A queue holds the spans that are still to be fetched. Streams take from it in turn, so that a
// slow stream does not delay all the others.
type queue struct {
	mu    sync.Mutex
	spans []span
}

// pieces is the number of spans into which a file is cut for each stream.
const pieces = 4

// fill puts all missing data of a part into the queue, cut where chunks end. With one stream they
// are not divided further.
func (q *queue) fill(p *part, streams int) {
	var missing int64
	for i := range p.chunks {
		missing += p.length(i) - p.chunks[i].got
	}
	most := p.size
	if streams > 1 {
		n := int64(streams * pieces)
		most = max((missing+n-1)/n, p.step)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spans = q.spans[:0]
	for i := range p.chunks {
		from, to := int64(i)*p.step+p.chunks[i].got, int64(i)*p.step+p.length(i)
		if from == to {
			continue
		}
		if n := len(q.spans); n > 0 && q.spans[n-1].to == from && q.spans[n-1].to-q.spans[n-1].from < most {
			q.spans[n-1].to = to
			continue
		}
		q.spans = append(q.spans, span{from, to})
	}
}

func (q *queue) take() (s span, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.spans) == 0 {
		return s, false
	}
	s = q.spans[0]
	q.spans = q.spans[1:]
	return s, true
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.spans)
}
