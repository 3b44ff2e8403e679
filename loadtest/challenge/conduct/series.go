package conduct

import (
	"sort"
	"time"

	"weir/loadtest/challenge"
	"weir/loadtest/measure"
)

// A part has what one link, or all links together, did in a cell.
type part struct {
	moved, wrong          int64   // wrong: of copies whose verification failed in the cell
	flight, queued        float64 // copies in flight, and of these not begun, times seconds
	target                float64 // bytes
	allowed               int
	started, done, failed int
	reasons               map[challenge.Reason]float64 // seconds
}

// reason returns the reason that was valid for the longest time.
func (p *part) reason() challenge.Reason {
	longest, found := -1.0, challenge.Idle
	for r, seconds := range p.reasons {
		if seconds > longest || seconds == longest && r < found {
			longest, found = seconds, r
		}
	}
	return found
}

// A cell is a piece of time within one stage.
type cell struct {
	start, end time.Time
	stage      int
	over       bool // after the last stage
	parts      []part
	sum        measure.Sum // of the copies of all links
	late       float64     // seconds in which a decision was due
}

func (c *cell) seconds() float64 { return c.end.Sub(c.start).Seconds() }

// A series has the cells that later reports may still change: without gaps, the oldest first. Cells
// end at multiples of the period and at the end of a stage.
type series struct {
	period time.Duration
	parts  int // of a cell
	next   time.Time
	cells  []*cell
}

// extend adds cells until the last one contains now.
func (s *series) extend(now time.Time, l timeline) {
	for !s.next.After(now) {
		c := &cell{start: s.next, parts: make([]part, s.parts)}
		c.end = c.start.Truncate(s.period).Add(s.period)
		if b := l.boundary(c.start); !b.IsZero() && b.Before(c.end) {
			c.end = b
		}
		c.stage, _, c.over = l.at(c.start)
		s.cells, s.next = append(s.cells, c), c.end
	}
}

// at returns the cell that contains t, or the nearest one.
func (s *series) at(t time.Time) *cell { return s.cells[s.index(t)] }

func (s *series) index(t time.Time) int {
	i := sort.Search(len(s.cells), func(i int) bool { return s.cells[i].end.After(t) })
	return min(i, len(s.cells)-1)
}

// spread adds bytes that were moved evenly between two moments. Moments before the first cell, and
// after the last one, count as these cells: no byte is lost.
func (s *series) spread(link int, from, to time.Time, bytes int64) {
	if first := s.cells[0].start; from.Before(first) {
		from = first
	}
	span := to.Sub(from)
	if span <= 0 {
		s.at(to).parts[link].moved += bytes
		return
	}
	given := int64(0)
	for i := s.index(from); i < len(s.cells); i++ {
		c := s.cells[i]
		upTo := bytes
		if c.end.Before(to) && i < len(s.cells)-1 {
			upTo = int64(float64(bytes) * float64(c.end.Sub(from)) / float64(span))
		}
		c.parts[link].moved += upTo - given
		if given = upTo; given == bytes && !c.end.Before(to) {
			return
		}
	}
}

// overlaps calls do with the cells between two moments and the seconds of each in between.
func (s *series) overlaps(from, to time.Time, do func(c *cell, seconds float64)) {
	for i := s.index(from); i < len(s.cells); i++ {
		c := s.cells[i]
		begin, end := c.start, c.end
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		if d := end.Sub(begin); d > 0 {
			do(c, d.Seconds())
		}
		if !c.end.Before(to) {
			return
		}
	}
}

// take removes the cells that end at a moment or before it, and returns them.
func (s *series) take(until time.Time) []*cell {
	n := sort.Search(len(s.cells), func(i int) bool { return s.cells[i].end.After(until) })
	taken := s.cells[:n:n]
	s.cells = s.cells[n:]
	return taken
}

// cut ends the last cell at now, so that it can be taken.
func (s *series) cut(now time.Time) {
	n := len(s.cells)
	if n == 0 {
		return
	}
	if last := s.cells[n-1]; last.end.After(now) {
		last.end, s.next = now, now
	}
}
