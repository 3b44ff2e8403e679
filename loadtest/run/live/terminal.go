package live

import (
	"io"
	"sync"
	"time"

	"weir/internal/screen"
)

// plainEvery is the time between two lines if no row can move.
const plainEvery = 30 * time.Second

// A terminal has what views of all kinds of runs need: permanent lines and, below these, rows that
// move. mu guards the fields after it.
type terminal struct {
	screen     *screen.Screen
	lines      *screen.Queue // permanent lines
	look       screen.Look
	stopMoving func()

	mu      sync.Mutex
	loading bool        // the load has begun
	task    screen.Task // preparation or clean-up under way
	written time.Time   // when the last line was written
}

func newTerminal(out io.Writer) terminal {
	s := screen.New(out)
	return terminal{screen: s, lines: screen.NewQueue(s), look: s.Look(), stopMoving: func() {}}
}

// Stop removes the rows that move and waits until all lines are written.
func (t *terminal) Stop() {
	_ = t.lines.Close() // the run survives the loss of its terminal
	t.stopMoving()
}

// due reports whether a line is to be written because no row can move.
func (t *terminal) due() bool {
	if t.screen.Moves() || time.Since(t.written) < plainEvery {
		return false
	}
	t.written = time.Now()
	return true
}
