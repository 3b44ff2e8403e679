package dispatch

import (
	"slices"
	"sync"

	"weir/transfer"
)

// keptChanges is the maximum number of changes of limits that are kept in memory.
const keptChanges = 1000

// LimitChanges are the latest changes of the limits of links. The zero value is empty.
type LimitChanges struct {
	mu   sync.Mutex
	last int64 // id
	all  []transfer.LimitChange
}

// Add adds changes, and returns them with their ids.
func (l *LimitChanges) Add(some []transfer.LimitChange) []transfer.LimitChange {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range some {
		l.last++
		some[i].ID = l.last
	}
	l.all = append(l.all, some...)
	l.all = slices.Delete(l.all, 0, max(0, len(l.all)-keptChanges))
	return some
}

// List returns the changes, the oldest first.
func (l *LimitChanges) List() []transfer.LimitChange {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}
