package dashboard

import (
	"time"

	"weir/internal/say"
)

// now tells how far the run is. s.mu is held for reading.
func (s *shown) now(at time.Time) now {
	n := now{State: s.state(), Time: s.covered(), Problem: s.problem, Report: s.reported, Seconds: 1 << s.h.merged, Workers: s.h.workers.text()}
	if s.plan == nil {
		return n
	}
	if i := len(s.h.rows.at) - 1; i >= 0 {
		n.Start = s.h.start.UnixMilli()
		n.Clients = float64(s.h.rows.cols[colClients][i])
		if p := int(s.h.rows.cols[colPhase][i]); p >= 0 && p < len(phases()) {
			n.Phase = phases()[p]
		}
	}
	n.Of = len(s.plan.Steps)
	since := time.Duration(0)
	for _, st := range s.h.steps {
		if !st.Broken {
			n.Place++
		}
		n.Step, since = st.Step, at.Sub(st.begin)
	}
	if n.Of > 0 {
		n.Place = min(n.Place, n.Of)
	}
	spent := s.spent()
	left := s.plan.Left(n.Place, since, spent)
	n.Left, n.AtMost = left.Seconds(), s.plan.Find != nil || len(s.plan.Steps) > 0 && s.plan.Steps[0].Jobs > 0
	if sum := spent + left; sum > 0 {
		n.Share = float64(spent) / float64(sum)
	}
	if s.over {
		n.Left = 0
		if s.ended {
			n.Share = 1
		}
		if i := len(s.h.events) - 1; i >= 0 {
			n.Last = s.h.events[i].Text
		}
	}
	return n
}

func (s *shown) state() string {
	switch {
	case s.about == nil:
		return waiting
	case s.over && s.ended:
		return ended
	case s.over:
		return broken
	case len(s.h.rows.at) == 0:
		return preparing
	}
	return running_
}

// spent is how long there was load, without the time between two parts of a run
// that was resumed.
func (s *shown) spent() time.Duration {
	sum := 0.0
	for _, x := range s.h.rows.cols[colSeconds] {
		sum += float64(x)
	}
	return seconds(sum)
}

func seconds(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }

// title is what a page of the run is called. s.mu is held for reading.
func (s *shown) title() string {
	if s.plan == nil {
		return "waiting for " + say.Plain(s.dir)
	}
	return say.Plain(s.plan.Name)
}
