package analysis

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
	return Window{Seconds: w.seconds, Clients: ratio(w.clients, w.seconds), Throughput: ratio(w.moved, w.seconds), Operations: ratio(w.done, w.seconds)}
}

// quarters is how many subintervals a step is cut into.
const quarters = 4

// subintervalName names subinterval i of a step, from 0: jobs come, are all
// there for half of the time, and leave.
func subintervalName(i int) string {
	return [quarters]string{"ramp up", "steady", "steady", "cool down"}[i]
}

// subintervals cuts each step, from its first second to its last, into four
// stretches of equal length. A second that two of them share counts for both,
// each with its part.
func (d *data) subintervals() []Subinterval {
	all := []Subinterval{}
	for _, seconds := range d.bySteps() {
		span := 0.0
		for i := range seconds {
			span += seconds[i].seconds
		}
		if span <= 0 {
			continue
		}
		var parts [quarters]window
		at := 0.0
		for i := range seconds {
			x := &seconds[i]
			from, to := quarters*at/span, quarters*(at+x.seconds)/span
			at += x.seconds
			for q := max(0, int(from)); q < quarters && float64(q) < to; q++ {
				if share := min(to, float64(q+1)) - max(from, float64(q)); share > 0 {
					parts[q].add(x, share/(to-from))
				}
			}
		}
		for q := range parts {
			w := parts[q].figure()
			all = append(all, Subinterval{Step: seconds[0].step, Number: q + 1, Name: subintervalName(q), Seconds: w.Seconds, Clients: w.Clients,
				Throughput: w.Throughput, PerClient: ratio(w.Throughput, w.Clients), Operations: w.Operations})
		}
	}
	return all
}

// bySteps returns the seconds of each step in the order of time, the steps in
// the order in which they began.
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

// allThere is the share of a step's clients, as a mean over an interval, that
// counts as all of them.
const allThere = 0.99

// windows fills in what step s gave while all its clients were there, and
// with the time in which they came and left.
func (d *data) windows(s *Step, seconds []second) {
	var active, whole window
	for i := range seconds {
		x := &seconds[i]
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
	if active.seconds > 0 && d.plan.Model != "open" {
		w := active.figure()
		s.AllActive = &w
	}
}
