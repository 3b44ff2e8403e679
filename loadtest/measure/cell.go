package measure

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir/storage"
)

// An address identifies the operations that a cell counts.
type address struct {
	kind   storage.Kind
	server string
}

// A shard holds the cells of some of the clients.
type shard struct {
	mu    sync.Mutex
	cells map[address]*cell
	named int      // cells of data servers
	_     [64]byte // the next shard begins on another cache line
}

func (s *shard) cell(a address) *cell {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cells[a]
	if c == nil && a.server != "" && s.named >= mostNamed {
		a.server = Others
		c = s.cells[a]
	}
	if c == nil {
		c = &cell{address: a}
		s.cells[a] = c
		if a.server != "" {
			s.named++
		}
	}
	return c
}

// mostNamed is the number of data servers, times kinds of operations, that are counted apart: a
// service that keeps inventing servers must not fill the memory.
const mostNamed = 1024

// Others represents the remaining data servers, which are not counted apart.
const Others = "(others)"

// list returns the cells in no particular order.
func (s *shard) list() []*cell {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.cells))
}

// A cell counts one kind of operation on one data server for the clients of
// one shard. moved changes while operations run; the rest when they begin and end.
type cell struct {
	address
	moved atomic.Int64
	_     [64]byte

	mu                  sync.Mutex
	open                int64         // operations that began here, less operations that ended here
	spent               time.Duration // clock at their ends less at their beginnings; may overflow
	sum                 Sum           // without Failed, FirstDone and LastDone, for which counting needs no memory:
	failed              [storage.Classes]int64
	firstDone, lastDone time.Duration // readings of the recorder's clock; 0: no operation was done
	_                   [64]byte
}

// drain adds the cell's counts to v and empties the cell. date converts a reading of the recorder's
// clock to a time. The results of drain, summed over all cells, are the time that clients have
// spent in operations until now; the result of a single cell has no meaning, as an operation can
// begin in one cell and end in another.
func (c *cell) drain(v *Interval, now time.Duration, date func(time.Duration) time.Time) time.Duration {
	moved := c.moved.Swap(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum.Moved = moved
	if c.lastDone > 0 {
		c.sum.FirstDone, c.sum.LastDone = date(c.firstDone), date(c.lastDone)
		c.firstDone, c.lastDone = 0, 0
	}
	v.Sum.Add(&c.sum)
	c.sum.Reset()
	for class, n := range c.failed {
		if n > 0 {
			if v.Failed == nil {
				v.Failed = map[storage.Class]int64{}
			}
			v.Failed[storage.Class(class)] += n
		}
	}
	c.failed = [storage.Classes]int64{}
	return c.spent + time.Duration(c.open)*now
}
