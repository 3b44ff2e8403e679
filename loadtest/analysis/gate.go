package analysis

import (
	"math"
	"strings"
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// A Gate compares a run, while it is in progress, with the thresholds that may stop it ("or stop").
// When the hold of a step ends, the step is judged as Analyze judges it. During the hold it is
// judged about every ten seconds on the data recorded so far, and only a threshold that is broken
// beyond doubt counts. It is not safe for concurrent use.
type Gate struct {
	thresholds []scenario.Threshold
	texts      []string
	steps      map[int]scenario.Step
	sum        soFar
	ended      int // the last step that was judged as a whole
}

// A step is judged during its hold every gateEvery if at least gateLeast operations have ended.
const (
	gateEvery = 10 * time.Second
	gateLeast = 20
)

// NewGate returns the gate of a plan, nil if no threshold of the plan may stop the run. It ignores
// thresholds that cannot be parsed: Analyze reports them.
func NewGate(p *scenario.Plan) *Gate {
	g := &Gate{steps: map[int]scenario.Step{}}
	for _, text := range p.Thresholds {
		if t, err := scenario.ParseThreshold(text); err == nil && t.Stop {
			g.thresholds, g.texts = append(g.thresholds, t), append(g.texts, text)
		}
	}
	if len(g.thresholds) == 0 {
		return nil
	}
	for _, s := range p.Steps {
		g.steps[s.Number] = s
	}
	return g
}

// A Violation is a threshold that ends a run because it is not met.
type Violation struct {
	Threshold string // as in the plan
	Text      string // for people: the threshold and the value that broke it
	Stopped   *measure.StoppedStep
}

// Saw adds the next interval of the run. It returns the threshold that ends the run now, nil if the
// run continues. Intervals of one second arrive in order; a second is judged when the next second
// begins.
func (g *Gate) Saw(v *measure.Interval) (broken *Violation) {
	switch {
	case g.sum.Number > 0 && (v.Step != g.sum.Number || v.Phase != measure.Measured):
		broken = g.End()
	case !v.Start.Equal(g.sum.at) && g.sum.Span >= g.sum.next && g.sum.ended() >= gateLeast:
		g.sum.next = g.sum.Span + gateEvery.Seconds()
		broken = g.judge(func(t scenario.Threshold) figure { return g.sum.surely(t) })
	}
	if v.Phase == measure.Measured && v.Step > g.ended {
		g.sum.take(v)
	}
	return broken
}

// End ends the hold of the current step, if there is a current step, and returns as Saw does.
func (g *Gate) End() *Violation {
	if g.sum.Number == 0 {
		return nil
	}
	s := g.sum.Step()
	broken := g.judge(func(t scenario.Threshold) figure { return figureOf(s, t.Measure.Name) })
	g.ended, g.sum = max(g.ended, g.sum.Number), soFar{}
	return broken
}

// judge returns the first threshold that the current step does not meet. A quantity that was not
// measured does not stop a run.
func (g *Gate) judge(value func(scenario.Threshold) figure) *Violation {
	now, step := g.sum.Step(), g.steps[g.sum.Number]
	clients := step.Clients
	if step.Number == 0 { // not a step of the plan
		clients = int(math.Round(now.ActiveClients))
	}
	for i, t := range g.thresholds {
		if v := value(t); t.Holds(clients, float64(step.Rate)) && v.known && !t.Met(v.value) {
			s := &measure.StoppedStep{Step: g.sum.Number, Seconds: g.sum.Span, Clients: clients, Rate: float64(step.Rate),
				Value: figureOf(now, t.Measure.Name).value}
			return &Violation{g.texts[i], g.texts[i] + ": " + stoppedStep(t, s).Text, s}
		}
	}
	return nil
}

// plannedLoad returns the planned load of a step as a text.
func plannedLoad(clients int, rate float64) string {
	c := &steps.Curve{Model: scenario.ClosedModel}
	if rate > 0 {
		c.Model = scenario.OpenModel
	}
	return c.At(&steps.Working{Figures: &steps.Figures{Clients: clients, Rate: rate}})
}

// soFar is the measured part of the hold of a step. Its zero value belongs to no step.
type soFar struct {
	steps.Total
	at   time.Time // start of the newest second
	next float64   // seconds of hold after which the step is judged next
}

func (s *soFar) ended() int64 { return s.Done + s.Errors() }

func (s *soFar) take(v *measure.Interval) {
	if s.Number == 0 {
		*s = soFar{Total: steps.Total{Number: v.Step}, next: gateEvery.Seconds()}
	}
	if !v.Start.Equal(s.at) || len(s.Seconds) == 0 {
		s.at = v.Start
		s.Span += v.Seconds
		s.Seconds = append(s.Seconds, steps.Second{Start: v.Start})
	}
	s.Seconds[len(s.Seconds)-1].Add(v)
	s.Add(&v.Sum)
}

// doubt is the number of standard deviations by which a count or a quantile must exceed a limit to
// break it in the middle of a hold. A step is judged many times, so 95% would stop one run in a few
// by chance.
const doubt = 3

// surely returns the bound of the confidence interval of the step's figure that is closest to
// meeting the threshold: its lower bound for thresholds with <, the upper bound for thresholds with
// >. The figure is not known if it has no such bound.
func (s *soFar) surely(t scenario.Threshold) figure {
	name, upper := t.Measure.Name, t.Upper()
	switch name {
	case "error_ratio":
		return wilson(min(s.Bad(), s.ended()), s.ended(), upper)
	case "missed_ratio":
		return wilson(s.Missed, s.ended()+s.Missed, upper)
	case "wait_ratio": // the service can delay an operation many times: a count of Poisson's
		n, k := float64(s.ended()), float64(s.Waits)
		return figure{value: stats.Ratio(max(0, k+side(upper)*doubt*math.Sqrt(max(k, 1))), n), known: n > 0}
	case "job_failure_ratio":
		return wilson(s.JobsFailed, s.Ended+s.Lost(), upper)
	case "crash_ratio":
		return wilson(s.Crashed, s.Ended+s.Lost(), upper)
	case "throughput", "per_client", "rate", "per_client_rate", "cpu_efficiency", "cluster_throughput", "events_rate":
		step := s.Step()
		v := figureOf(step, name)
		if v.low == nil || v.high == nil {
			return figure{}
		}
		if upper {
			return known(*v.low)
		}
		return known(*v.high)
	}
	i := strings.LastIndexByte(name, '_')
	if i < 0 {
		return figure{}
	}
	h := map[string]*measure.Histogram{
		"latency": &s.Latency, "first_byte": &s.FirstByte, "connect": &s.Connect, "tls_handshake": &s.Handshake, "login": &s.Login,
		"redirect": &s.Redirect, "job": &s.Wall,
	}[name[:i]]
	if h == nil {
		return figure{}
	}
	return duringOf(h, name[i+1:], upper)
}

// side returns the sign of the deviation that doubt adds.
func side(upper bool) float64 {
	if upper {
		return -1
	}
	return 1
}

// wilson returns a bound of the share k/n (Wilson, Journal of the American Statistical Association 22, 1927).
func wilson(k, n int64, lower bool) figure {
	if n == 0 {
		return figure{}
	}
	p, m := float64(k)/float64(n), float64(n)
	half := doubt * math.Sqrt(p*(1-p)/m+doubt*doubt/(4*m*m))
	x := (p + doubt*doubt/(2*m) + side(lower)*half) / (1 + doubt*doubt/m)
	return known(min(max(x, 0), 1))
}

// duringOf returns a bound of a quantile, the mean or the maximum of durations. The number of n
// values that lie below their q-quantile is a binomial count, so the bounds of a quantile are its
// neighbors in rank.
func duringOf(h *measure.Histogram, which string, lower bool) figure {
	n := float64(h.Count())
	if n == 0 {
		return figure{}
	}
	switch which {
	case "max": // it can only grow
		return figure{value: h.Max(), known: lower}
	case "mean":
		var squares float64
		h.Buckets(func(from, to float64, count int64) {
			d := (from+to)/2 - h.Mean()
			squares += float64(count) * d * d
		})
		return known(h.Mean() + side(lower)*doubt*math.Sqrt(squares)/n)
	}
	q := map[string]float64{"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}[which]
	at := q + side(lower)*doubt*math.Sqrt(q*(1-q)/n)
	if q == 0 || at <= 0 || at >= 1 {
		return figure{}
	}
	return known(h.Quantile(at))
}
