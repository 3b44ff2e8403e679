package serve

import (
	"fmt"
	"io"
	"sync"
)

// rooms count what senders whose tokens say how much they may store are storing
// now, each of them in all its uploads together: what is left behind by one that
// is whole is bounded by the names that its token has.
type rooms struct {
	mu   sync.Mutex
	held map[string]int64 // bytes, by token
}

// A room is what one upload may bring.
type room struct {
	of   *rooms
	who  string // "": nobody counts beside this upload
	most int64  // below 0: any number of bytes
	held int64
}

// room is what the sender of r may store. Who has it gives it back when the upload
// is over.
func (s *Server) room(r *request) *room {
	if who, most, ok := r.rights.Most(); ok {
		return &room{of: &s.rooms, who: who, most: most}
	}
	if s.conf.MaxFile > 0 {
		return &room{of: &s.rooms, most: s.conf.MaxFile}
	}
	return &room{of: &s.rooms, most: -1}
}

// tooLarge says that more comes than may be stored.
type tooLarge struct{ most int64 }

func (e *tooLarge) Error() string {
	return fmt.Sprintf("at most %d bytes may be stored here with these credentials", e.most)
}

// take takes room for n more bytes. Its error is a *tooLarge.
func (m *room) take(n int64) error {
	if m.most < 0 || n <= 0 {
		return nil
	}
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	all := m.held
	if m.who != "" {
		all = m.of.held[m.who]
	}
	if n > m.most-all {
		return &tooLarge{m.most}
	}
	m.held += n
	if m.who != "" {
		if m.of.held == nil {
			m.of.held = map[string]int64{}
		}
		m.of.held[m.who] += n
	}
	return nil
}

// give gives back all that was taken.
func (m *room) give() {
	if m.held == 0 {
		return
	}
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	if m.who == "" {
		m.held = 0
		return
	}
	if m.of.held[m.who] -= m.held; m.of.held[m.who] == 0 {
		delete(m.of.held, m.who)
	}
	m.held = 0
}

// measured is a body of which nobody has said how long it is: room is taken for
// what comes.
type measured struct {
	io.ReadCloser
	room *room
}

// Read implements io.Reader.
func (b *measured) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if over := b.room.take(int64(n)); over != nil {
		return 0, over
	}
	return n, err
}
