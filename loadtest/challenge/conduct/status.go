package conduct

import (
	"strings"
	"time"

	"weir/internal/say"
)

// A Status is the present state of a challenge, for people. Rates are means of the last seconds, in
// bytes per second; later reports may still change them.
type Status struct {
	Time       time.Time `json:"-"`
	Stage      int       `json:"stage"` // from 1
	Stages     int       `json:"stages"`
	Share      float64   `json:"share"` // of the target rates
	Target     float64   `json:"target_bytes_per_second"`
	Achieved   float64   `json:"achieved_bytes_per_second"`
	Links      int       `json:"links"` // with a target
	Held       int       `json:"held"`  // of these within 5% of the target, or above it
	Worst      string    `json:"worst_link,omitempty"`
	WorstShare float64   `json:"worst_share,omitempty"` // achieved over target
	Flight     int       `json:"in_flight"`
	Queued     int       `json:"queued"`
	Done       int64     `json:"done"`
	Failed     int64     `json:"failed"`
	Left       float64   `json:"left_seconds"` // of the profile
	Length     float64   `json:"profile_seconds"`
	Ending     bool      `json:"ending,omitempty"` // no copy is requested any more
}

const (
	// rateTime is the time over which rates for people are computed.
	rateTime = 8 * time.Second
	// within is the share of its target from which a link counts as held.
	within = 0.95
)

// status returns the present state.
func (s *session) status(now time.Time) Status {
	l := s.ledger
	stage, share, over := l.line.at(now)
	st := Status{Time: now, Stage: stage, Stages: len(s.c.Profile), Share: share, Done: l.totals.done, Failed: l.totals.failed,
		Left: max(l.line.end().Sub(now), 0).Seconds(), Length: s.c.Duration().Seconds(), Ending: over || s.Finish.Err() != nil}
	for i := range l.links {
		st.Flight += l.links[i].seen.InFlight
		st.Queued += l.links[i].seen.Queued
	}
	moved, target, seconds := l.each.recent(now)
	if seconds == 0 {
		return st
	}
	for i := range moved {
		st.Achieved += moved[i] / seconds
		st.Target += target[i] / seconds
		if target[i] == 0 {
			continue
		}
		st.Links++
		of := moved[i] / target[i]
		if of >= within {
			st.Held++
		}
		if st.Worst == "" || of < st.WorstShare {
			st.Worst, st.WorstShare = s.c.Links[i].Name(), of
		}
	}
	return st
}

// recent sums the targets of the last cells that have ended, and the bytes without those of copies
// whose verification failed.
func (s *series) recent(now time.Time) (moved, target []float64, seconds float64) {
	moved, target = make([]float64, s.parts), make([]float64, s.parts)
	for i := len(s.cells) - 1; i >= 0 && seconds < rateTime.Seconds(); i-- {
		c := s.cells[i]
		if c.end.After(now.Add(-time.Second)) {
			continue
		}
		seconds += c.seconds()
		for k := range c.parts {
			moved[k] += float64(c.parts[k].moved - c.parts[k].wrong)
			target[k] += c.parts[k].target
		}
	}
	for k := range moved { // wrong copies may have moved before
		moved[k] = max(0, moved[k])
	}
	return moved, target, seconds
}

// oneLine returns text in one line that a terminal can show.
func oneLine(text string) string { return say.Plain(strings.Join(strings.Fields(text), " ")) }
