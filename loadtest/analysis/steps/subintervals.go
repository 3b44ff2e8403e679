package steps

import (
	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/scenario"
)

// A Stretch has the counts of a part of a step's time.
type Stretch struct{ Seconds, Clients, Moved, Done float64 } // clients in client seconds

// add adds the given share of the counts of x.
func (w *Stretch) add(x *Second, share float64) {
	w.Seconds += share * x.Seconds
	w.Clients += share * x.Seconds * x.Clients
	w.Moved += share * float64(x.Moved)
	w.Done += share * float64(x.Done)
}

func (w *Stretch) figure() Window {
	return Window{Seconds: w.Seconds, Clients: stats.Ratio(w.Clients, w.Seconds), Throughput: stats.Ratio(w.Moved, w.Seconds),
		Operations: stats.Ratio(w.Done, w.Seconds)}
}

// Quarters is the number of subintervals of a step.
const Quarters = 4

// subintervalName returns the name of subinterval i of a step, from 0: jobs start, are all active
// for half of the time, and leave.
func subintervalName(i int) string {
	return [Quarters]string{"ramp up", "steady", "steady", "cool down"}[i]
}

// Subinterval returns w as subinterval i of a step, from 0.
func (w *Stretch) Subinterval(step, i int) Subinterval {
	x := w.figure()
	return Subinterval{Step: step, Number: i + 1, Name: subintervalName(i), Seconds: x.Seconds, Clients: x.Clients,
		Throughput: x.Throughput, PerClient: stats.Ratio(x.Throughput, x.Clients), Operations: x.Operations}
}

// A Piece is the span of a second, or of a row of a table, in its step, which extends from 0 to
// Quarters.
type Piece struct{ From, To float64 }

// Pieces returns the pieces of a step from the lengths of its seconds, or nil if the step has no
// length.
func Pieces(lengths []float64) []Piece {
	span, at := 0.0, 0.0
	for _, x := range lengths {
		span += x
	}
	if !(span > 0) {
		return nil
	}
	out := make([]Piece, len(lengths))
	for i, x := range lengths {
		out[i] = Piece{Quarters * at / span, Quarters * (at + x) / span}
		at += x
	}
	return out
}

// Shares calls add for each subinterval that overlaps p, with the share of p in it.
func (p Piece) Shares(add func(i int, share float64)) {
	for i := max(0, int(p.From)); i < Quarters && float64(i) < p.To; i++ {
		if share := min(p.To, float64(i+1)) - max(p.From, float64(i)); share > 0 {
			add(i, share/(p.To-p.From))
		}
	}
}

// Subintervals divides each step, from its first second to its last, into four parts of equal
// length. A second at the border of two parts counts in each of them in proportion.
func (d *Run) Subintervals() []Subinterval {
	all := []Subinterval{}
	for _, seconds := range d.BySteps() {
		lengths := make([]float64, len(seconds))
		for i := range seconds {
			lengths[i] = seconds[i].Seconds
		}
		cut := Pieces(lengths)
		if cut == nil {
			continue
		}
		var windows [Quarters]Stretch
		for i, p := range cut {
			p.Shares(func(q int, share float64) { windows[q].add(&seconds[i], share) })
		}
		for q := range windows {
			all = append(all, windows[q].Subinterval(seconds[0].Step, q))
		}
	}
	return all
}

// BySteps returns the seconds of each step in the order of time, with the steps in the order of
// their start.
func (d *Run) BySteps() [][]Second {
	var all [][]Second
	place := map[int]int{}
	for _, x := range d.Seconds {
		i, ok := place[x.Step]
		if !ok {
			i = len(all)
			place[x.Step] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], x)
	}
	return all
}

// AllThere is the share of a step's clients, as a mean over an interval, from which all clients
// count as active.
const AllThere = 0.99

// Windows fills in the figures of step s while all its clients were active, and including the
// ramps.
func (d *Run) Windows(s *Working, seconds []Second) {
	var active, whole Stretch
	for x := range basics.Each(seconds) {
		if x.Seconds <= 0 {
			continue
		}
		whole.add(x, 1)
		if x.Clients >= AllThere*float64(s.Clients) {
			active.add(x, 1)
		}
	}
	if whole.Seconds > 0 {
		w := whole.figure()
		s.WithTail = &w
	}
	if active.Seconds > 0 && d.Plan.Model != scenario.OpenModel {
		w := active.figure()
		s.AllActive = &w
	}
}
