package search

import (
	"cmp"
	"math"
	"slices"

	"weir/loadtest/analysis/fact"
)

// Bounds of the refinement around the best load.
const (
	dropped   = 0.85 // a neighbor of the best below this share of it: something breaks down in between
	level     = 0.98 // the heaviest load is as good as the best
	window    = 8    // the curve is laid through points that are no farther from the best, as a factor
	least     = 0.6  // and at least so good
	flat      = 0.01 // loads that cost no more than this share of the best cannot be distinguished from it
	flatten   = 6    // steps of refinement before a top is called flat
	twice     = 2    // and before a narrow interval is believed
	drawn     = 400
	enough    = 7   // steps that a curve is laid through
	explained = 1.5 // misfit up to which a wider curve is as good as one through the nearest points
	octaves   = 8   // candidates for the next step in each doubling
	about     = 1.7 // they lie this far around the peak, as a factor
	kneeGap   = 1.25
	repeated  = 3 // steps of the best load of a service without a maximum
)

// cliff returns a load between the best load and the next heavier, if the throughput breaks down
// there, else 0. Up to the edge it may well grow with the clients, so the edge is located more
// closely than a round top.
func (s *state) cliff() int {
	if s.best == len(s.points)-1 {
		return 0
	}
	top, next := s.points[s.best], s.points[s.best+1]
	if next.yield >= dropped*top.yield {
		return 0
	}
	return s.between(top.clients, next.clients, 1+s.Within/4)
}

// between returns the load in the middle of two, 0 if they are closer than the factor or there is
// no load between them.
func (s *state) between(a, b int, factor float64) int {
	middle := int(math.Round(math.Sqrt(float64(a) * float64(b))))
	if middle <= a || middle >= b || float64(b) <= factor*float64(a) {
		return 0
	}
	return middle
}

// open reports whether the heaviest load is as good as the best load, and not certainly less, so
// that there is no maximum to be found.
func (s *state) open() bool {
	last := s.points[len(s.points)-1]
	o := s.optimum()
	return last.yield >= level*s.points[s.best].yield && (o == nil || !o.Inside)
}

// rise returns the next decision if no maximum was found: it looks for the load from which on
// throughput is as good as at the end.
func (s *state) rise() Decision {
	top := s.points[s.best].yield
	from := s.best
	for from > 0 && s.points[from-1].yield >= 0.95*top {
		from--
	}
	level := from < len(s.points)-1
	if from > 0 && level {
		if n := s.between(s.points[from-1].clients, s.points[from].clients, kneeGap); n > 0 {
			return Decision{Clients: n, Why: fact.New("search.plateau")}
		}
	}
	if p := s.points[len(s.points)-1]; p.steps < repeated && len(s.points) > 1 && !level {
		return Decision{Clients: p.clients, Why: fact.New("search.heaviest")}
	}
	return end(Rising, fact.New("search.end.rising", "clients", s.heaviest()))
}

// refine narrows the place of the peak, with the step that narrows it most.
func (s *state) refine() Decision {
	c := s.fit()
	if c == nil {
		return s.fill()
	}
	o, loss := s.estimate(c)
	narrow := o.high-o.low <= 1 || float64(o.high) <= (1+s.Within)*float64(o.low)
	switch {
	case s.refined() >= twice && narrow && s.untested(o):
		return Decision{Clients: o.clients, Why: fact.New("search.at_peak")}
	case s.refined() >= twice && narrow:
		return end(Narrow, fact.New("search.end.narrow"))
	case loss <= flat && s.refined() >= flatten:
		return end(Flat, fact.New("search.end.flat"))
	}
	n := s.beyond(c, o)
	if n == 0 {
		n = s.sharpest(c, o)
	}
	return Decision{Clients: n, Why: fact.New("search.peak")}
}

// untested reports whether no load was held within the interval of the peak's place.
func (s *state) untested(o *peak) bool {
	return !slices.ContainsFunc(s.points, func(p point) bool { return p.clients >= o.low && p.clients <= o.high })
}

// beyond returns a load between the last load that the curve was laid through and the next load, if
// the peak may lie there, else 0.
func (s *state) beyond(c *curve, o *peak) int {
	if c.to == len(s.points) || o.high < s.points[c.to].clients-1 {
		return 0
	}
	return s.between(s.points[c.to-1].clients, s.points[c.to].clients, 1+s.Within/4)
}

// refined counts the steps that were held after the ladder.
func (s *state) refined() int {
	rungs := 1
	for rungs < len(s.done) && s.done[rungs].Clients > s.done[rungs-1].Clients {
		rungs++
	}
	return len(s.done) - rungs
}

// fill holds loads beside the best load if there are too few points to lay a curve through.
func (s *state) fill() Decision {
	at := s.points[s.best].clients
	if s.best < len(s.points)-1 {
		if n := s.between(at, s.points[s.best+1].clients, 1+s.Within); n > 0 {
			return Decision{Clients: n, Why: fact.New("search.neighbor")}
		}
	}
	if s.best > 0 {
		if n := s.between(s.points[s.best-1].clients, at, 1+s.Within); n > 0 {
			return Decision{Clients: n, Why: fact.New("search.neighbor")}
		}
	}
	return end(Edge, fact.New("search.end.edge"))
}

// fit lays curves through the points around the best point, the nearest points first: with nearer
// points the curve's form matters less, with farther points noise matters less. It considers the
// curves whose misfit is no larger than their points' errors explain, and whose peak lies in the
// interval of the nearest curve; otherwise only the nearest curve. Of these it returns the curve
// with the most certain peak, nil if there are too few points.
func (s *state) fit() *curve {
	top := s.points[s.best]
	var best *curve
	var near *peak // by the curve through the nearest points that are enough
	var wide float64
	for w := about; w <= window; w *= math.Sqrt2 {
		from, to := s.best, s.best+1
		for from > 0 && s.near(s.points[from-1], top, w) {
			from--
		}
		for to < len(s.points) && s.near(s.points[to], top, w) && !edge(s.points[to-1], s.points[to]) {
			to++
		}
		c, ok := lay(s.points, from, to, float64(top.clients), top.yield)
		if !ok {
			continue
		}
		o, _ := s.estimate(c)
		open := float64(o.high) / float64(max(o.low, 1))
		if near == nil || c.misfit <= explained && open < wide && o.clients >= near.low && o.clients <= near.high {
			best, wide = c, open
		}
		if near == nil && c.steps >= enough && c.to-c.from > 3 {
			near = o
		}
	}
	return best
}

// edge reports whether throughput breaks down between two loads: no curve without
// a corner falls so steeply.
func edge(p, next point) bool {
	return next.yield < dropped*p.yield && float64(next.clients) <= 1.25*float64(p.clients)
}

func (s *state) near(p, top point, w float64) bool {
	far := float64(p.clients) / float64(top.clients)
	return p.yield >= least*top.yield && far <= w && far >= 1/w
}

// A peak is the highest place of a curve through some of the points, with its 95% interval: it
// locates the next step that narrows it most, and is no result.
type peak struct{ clients, low, high int }

// estimate returns the peak of the curve with its 95% interval, and the loss
// of throughput at the worse end of that, as a share, with 95% confidence.
func (s *state) estimate(c *curve) (*peak, float64) {
	low, high := float64(s.points[c.from].clients), float64(s.points[c.to-1].clients)
	var peaks, losses []float64
	draws := c.draws(drawn)
	for _, beta := range draws {
		peaks = append(peaks, c.peak(beta, low, high))
	}
	slices.Sort(peaks)
	from, to := quantile(peaks, 0.025), quantile(peaks, 0.975)
	for _, beta := range draws {
		top := c.at(beta, c.peak(beta, low, high))
		losses = append(losses, 1-min(c.at(beta, from), c.at(beta, to))/top)
	}
	slices.Sort(losses)
	at := c.peak(c.beta, low, high)
	o := &peak{clients: int(math.Round(at)), low: int(math.Round(from)), high: int(math.Round(to))}
	o.low, o.high = min(o.low, o.clients), max(o.high, o.clients)
	// Beyond its points the curve is not valid: the peak may lie anywhere up to the next load that
	// was held.
	if from <= low*1.001 && c.from > 0 {
		o.low = s.points[c.from-1].clients + 1
	}
	if to >= high/1.001 && c.to < len(s.points) {
		o.high = s.points[c.to].clients - 1
	}
	return o, quantile(losses, 0.95)
}

// sharpest returns the load whose next step makes the variance of the peak's place smallest: the
// c-optimal next point of a linear model (Fedorov, Theory of Optimal Experiments, 1972). Of two
// loads that are nearly as good, it takes the load on the other side of the peak than the last
// step, so that a drift of the service does not look like a slope.
func (s *state) sharpest(c *curve, o *peak) int {
	last := s.done[len(s.done)-1].Clients
	best, gain := 0, 0.0
	for _, n := range s.candidates(c, o) {
		g := c.gain(float64(n), typical(s.done))
		if (n < o.clients) == (last < o.clients) {
			g *= 0.8
		}
		if n == last {
			g *= 0.5
		}
		if g > gain {
			best, gain = n, g
		}
	}
	best = cmp.Or(best, o.clients)
	return best
}

// candidates returns loads around the peak, within the bounds of the search.
func (s *state) candidates(c *curve, o *peak) (all []int) {
	low, high := float64(s.points[c.from].clients), float64(s.points[c.to-1].clients)
	for k := -octaves; k <= octaves; k++ {
		x := float64(o.clients) * math.Pow(about, float64(k)/octaves)
		if x < low/1.001 || x > high*1.001 || c.at(c.beta, x) < least*c.top {
			continue
		}
		n := min(max(int(math.Round(x)), s.Min), s.Max)
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// gain returns the amount by which a step at n clients lowers the variance of the logarithm of the
// peak's place.
func (c *curve) gain(n, noise float64) float64 {
	g := [3]float64{0.5 / c.beta[0], 0, -0.5 / c.beta[2]}
	if c.beta[0] <= 0 || c.beta[2] <= 0 {
		g = [3]float64{1, 0, -1}
	}
	x := c.basis(n)
	var cx [3]float64
	for i := range 3 {
		cx[i] = dot(c.cov[i], x)
	}
	y := dot(c.beta, x)
	if !(y > 0) {
		return 0
	}
	w := 1 / (y * y * noise * noise)
	d := dot(g, cx)
	return w * d * d / (1 + w*dot(x, cx))
}
