package analysis

import (
	"weir/loadtest/analysis/fit"
	"weir/loadtest/scenario"
)

// A window is what was counted in a stretch of a step's time.
type window struct{ seconds, clients, moved, done float64 } // clients in client seconds

// add counts share of x.
func (w *window) add(x *second, share float64) {
	w.seconds += share * x.seconds
	w.clients += share * x.seconds * x.clients
	w.moved += share * float64(x.moved)
	w.done += share * float64(x.done)
}

func (w *window) figure() Window {
	return Window{Seconds: w.seconds, Clients: ratio(w.clients, w.seconds), Throughput: ratio(w.moved, w.seconds),
		Operations: ratio(w.done, w.seconds)}
}

// quarters is how many subintervals a step is cut into.
const quarters = 4

// subintervalName names subinterval i of a step, from 0: jobs come, are all there for half of the time, and leave.
func subintervalName(i int) string {
	return [quarters]string{"ramp up", "steady", "steady", "cool down"}[i]
}

func (w *window) subinterval(step, i int) Subinterval {
	x := w.figure()
	return Subinterval{Step: step, Number: i + 1, Name: subintervalName(i), Seconds: x.Seconds, Clients: x.Clients,
		Throughput: x.Throughput, PerClient: ratio(x.Throughput, x.Clients), Operations: x.Operations}
}

// A piece is where a second, or a row of a table, begins and ends in its step, which runs from 0 to quarters.
type piece struct{ from, to float64 }

// pieces are those of a step whose seconds are so long; nil if it has no length.
func pieces(lengths []float64) []piece {
	span, at := 0.0, 0.0
	for _, x := range lengths {
		span += x
	}
	if !(span > 0) {
		return nil
	}
	out := make([]piece, len(lengths))
	for i, x := range lengths {
		out[i] = piece{quarters * at / span, quarters * (at + x) / span}
		at += x
	}
	return out
}

// shares calls add for each subinterval that p has a part in, with that share of p.
func (p piece) shares(add func(i int, share float64)) {
	for i := max(0, int(p.from)); i < quarters && float64(i) < p.to; i++ {
		if share := min(p.to, float64(i+1)) - max(p.from, float64(i)); share > 0 {
			add(i, share/(p.to-p.from))
		}
	}
}

// subintervals cuts each step, from its first second to its last, into four stretches of equal length. A second that
// two of them share counts for both, each with its part.
func (d *data) subintervals() []Subinterval {
	all := []Subinterval{}
	for _, seconds := range d.bySteps() {
		lengths := make([]float64, len(seconds))
		for i := range seconds {
			lengths[i] = seconds[i].seconds
		}
		cut := pieces(lengths)
		if cut == nil {
			continue
		}
		var windows [quarters]window
		for i, p := range cut {
			p.shares(func(q int, share float64) { windows[q].add(&seconds[i], share) })
		}
		for q := range windows {
			all = append(all, windows[q].subinterval(seconds[0].step, q))
		}
	}
	return all
}

// partFits lays fourth-order functions through the parts of all steps: yield against the clients that were active,
// and that of each client. nil where there are too few parts.
func (f *Findings) partFits() *PartFits {
	of := func(each bool) *Fit {
		var points []fit.Point
		for _, p := range f.Subintervals {
			y := p.Throughput
			if f.Measure == Rate {
				y = p.Operations
			}
			if p.Clients <= 0 || y <= 0 {
				continue
			}
			if each {
				y /= p.Clients
			}
			points = append(points, fit.Point{Clients: p.Clients, Yield: y})
		}
		fits, err := fit.Of(points, fit.Options{})
		if err != nil || fits.Poly4 == nil {
			return nil
		}
		fits.Poly4.Band = nil // it need not be the best model here
		return fits.Poly4
	}
	if p := (&PartFits{Total: of(false), Each: of(true)}); p.Total != nil || p.Each != nil {
		return p
	}
	return nil
}

// bySteps returns the seconds of each step in the order of time, the steps in the order in which they began.
func (d *data) bySteps() [][]second {
	var all [][]second
	place := map[int]int{}
	for _, x := range d.seconds {
		i, ok := place[x.step]
		if !ok {
			i = len(all)
			place[x.step] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], x)
	}
	return all
}

// allThere is the share of a step's clients, as a mean over an interval, that counts as all of them.
const allThere = 0.99

// windows fills in what step s gave while all its clients were there, and with the time in which they came and left.
func (d *data) windows(s *Step, seconds []second) {
	var active, whole window
	for x := range each(seconds) {
		if x.seconds <= 0 {
			continue
		}
		whole.add(x, 1)
		if x.clients >= allThere*float64(s.Clients) {
			active.add(x, 1)
		}
	}
	if whole.seconds > 0 {
		w := whole.figure()
		s.WithTail = &w
	}
	if active.seconds > 0 && d.plan.Model != scenario.OpenModel {
		w := active.figure()
		s.AllActive = &w
	}
}
