package xrootd

import (
	"slices"

	"weir/storage"
)

// How much is asked for at once where the operation does not say: what xrdcp
// does (XRD_CPCHUNKSIZE, XRD_CPPARALLELCHUNKS of XRootD 5).
const (
	defaultChunk = 8 << 20
	defaultAhead = 4
	maxAhead     = 256
	maxChunk     = 512 << 20 // what fits in one answer, checksums included
)

// A slot is one request for a part of a file that is under way.
type slot struct {
	offset int64 // in the file, of the first byte that is still to come
	left   int64 // bytes that are still to come
	busy   bool

	from, to int64 // the part
	holes    bool  // pages have come in another order: what is missing is not all that follows offset
}

// A window is what is under way of one file. The slots' numbers are the
// requests' streams.
type window struct {
	slots []slot
	busy  int
	chunk int64
}

func (w *window) clear() { w.slots, w.busy = w.slots[:0], 0 }

// open makes room for what op wants to have under way.
func (w *window) open(op *storage.Op) {
	ahead := op.Ahead
	if ahead <= 0 {
		ahead = defaultAhead
	}
	w.chunk = int64(op.Chunk)
	if w.chunk <= 0 {
		w.chunk = defaultChunk
	}
	w.chunk = min(w.chunk, maxChunk)
	w.clear()
	for range min(ahead, maxAhead) {
		w.slots = append(w.slots, slot{})
	}
}

// take returns the number of a free slot, which is taken then, or -1.
func (w *window) take(offset, length int64) int {
	for i := range w.slots {
		if !w.slots[i].busy {
			w.slots[i] = slot{offset: offset, left: length, busy: true, from: offset, to: offset + length}
			w.busy++
			return i
		}
	}
	return -1
}

// free marks a slot as answered.
func (w *window) free(s *slot) {
	s.busy = false
	w.busy--
}

// holes tells whether nobody knows which bytes are still to come.
func (w *window) holes() bool {
	return slices.ContainsFunc(w.slots, func(s slot) bool { return s.busy && s.holes })
}

// answered reads the head of an answer to one of the requests under way, whose
// slot becomes x.slot.
func (x *call) answered(l *link) (frame, error) {
	h, err := x.next(l)
	if err != nil {
		return h, err
	}
	if x.slot = x.window.of(h.stream, l.base()); x.slot == nil {
		return h, strange(h)
	}
	return h, nil
}

// of returns the slot that an answer belongs to, nil for none.
func (w *window) of(stream, base uint16) *slot {
	i := int(stream) - int(base) - 1
	if i < 0 || i >= len(w.slots) || !w.slots[i].busy {
		return nil
	}
	return &w.slots[i]
}
