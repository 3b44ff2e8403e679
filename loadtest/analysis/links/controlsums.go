package links

import (
	"math"
	"slices"
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/results"
)

// controlSum sums the lateness of weir itself, by the times of lines.
type controlSum struct {
	usual   float64 // shortest whole line, seconds
	longest float64
	gap     float64 // longest, but those before a resume
	gaps    float64 // sum over the first link
	covered float64 // the same
	late    []float32
}

// line adds the time of a line.
func (c *controlSum) line(s *Sums, l *linkSum, v *results.LinkInterval) {
	if v.Seconds >= 0.5 && (c.usual == 0 || v.Seconds < c.usual) {
		c.usual = v.Seconds
	}
	c.longest = max(c.longest, v.Seconds)
	first := l == &s.links[0]
	if first {
		c.covered += v.Seconds
	}
	gap := 0.0
	if !l.until.IsZero() {
		gap = v.Start.Sub(l.until).Seconds()
	}
	if gap > 0 && s.resumed(l.until, v.Start) {
		return
	}
	c.gap = max(c.gap, gap)
	if first && gap > 0 {
		c.gaps += gap
	}
	late := max(gap, v.Seconds-max(c.usual, 1))
	if late <= 0.5 || c.usual == 0 {
		late = 0
	}
	if late = max(late, v.Late); first && late > 0 {
		i := s.minuteOf(v.Start)
		for len(c.late) <= i {
			c.late = append(c.late, 0)
		}
		c.late[i] += float32(late)
	}
}

// resumed reports whether the run was resumed between two times.
func (s *Sums) resumed(from, to time.Time) bool {
	return slices.ContainsFunc(s.resumes, func(t time.Time) bool { return t.After(from) && t.Before(to.Add(time.Minute)) })
}

// lateness returns the seconds of a minute in which weir wrote no line in time.
func (c *controlSum) lateness(minute int) float64 {
	if minute >= len(c.late) {
		return 0
	}
	return float64(c.late[minute])
}

// Limits of weir's own lateness.
const (
	lateShare = 0.1  // of a minute
	fullCPU   = 0.95 // of its machine
)

// figures returns the figures of weir's own work.
func (s *Sums) controlFigures() Control {
	c := Control{Gap: s.control.gap, Missing: stats.Ratio(s.control.gaps, s.control.gaps+s.control.covered),
		LateMost: s.control.longest, Resumes: len(s.resumes)}
	most := math.Inf(-1)
	for u := range basics.Each(s.hosts.own) {
		if share, ok := u.cpu.mean(); ok {
			most = max(most, share)
		}
	}
	if stats.Finite(most) {
		c.CPU = &most
	}
	for i := range s.control.late {
		if s.late(i) {
			c.Starved++
		}
	}
	return c
}

// late reports whether weir was late in a minute.
func (s *Sums) late(minute int) bool {
	return s.control.lateness(minute) > lateShare*s.minute.Seconds()
}

// starved reports whether the cores of weir's machine are busy.
func (u *usage) starved() bool {
	if u == nil {
		return false
	}
	share, ok := u.cpu.mean()
	return ok && share >= fullCPU
}
