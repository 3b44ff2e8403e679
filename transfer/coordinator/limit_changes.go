package coordinator

import (
	"slices"
	"sync"

	"weir/transfer"
)

// keptChanges is how many changes of limits are kept, in memory.
const keptChanges = 1000

// limitChanges are the latest changes of the limits of links.
type limitChanges struct {
	mu   sync.Mutex
	last int64 // id
	all  []transfer.LimitChange
}

func (c *Coordinator) addLimitChanges(all []transfer.LimitChange) {
	l := &c.changes
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range all {
		l.last++
		one.ID = l.last
		l.all = append(l.all, one)
		c.counters.Changed(one)
	}
	l.all = slices.Delete(l.all, 0, max(0, len(l.all)-keptChanges))
}

// listLimitChanges answers with changes of limits, the oldest first.
func (c *Coordinator) listLimitChanges(q *call, _ *struct{}) ([]transfer.LimitChange, error) {
	source, dest, after, n := q.param("source"), q.param("dest"), q.after(), q.rows()
	c.changes.mu.Lock()
	defer c.changes.mu.Unlock()
	list := []transfer.LimitChange{}
	for _, one := range c.changes.all {
		if one.ID > after && (source == "" || one.Source == source) && (dest == "" || one.Dest == dest) && len(list) < n {
			list = append(list, one)
		}
	}
	return list, nil
}
