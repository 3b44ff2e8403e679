package analysis

import (
	"cmp"
	"math"
	"slices"
	"time"

	"weir/internal/stats"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/storage"
)

// step turns the sums of a step's measurement time into its point of the curve.
func (d *data) step(t *total) Step {
	s := t.step()
	s.Clients = int(math.Round(s.ActiveClients))
	for _, p := range d.plan.Steps {
		if p.Number == t.number {
			s.Clients, s.Rate = p.Clients, finite(float64(p.Rate))
		}
	}
	if e := d.announced(t.number); e != nil { // also steps that no plan listed
		s.Clients, s.Rate = e.Clients, finite(e.Rate)
	}
	if d.plan.On.JobPerClient { // how many there were the batch system decided
		s.Planned, s.Clients = s.Clients, int(math.Round(s.ActiveClients))
	}
	if s.bounded = d.bounded(t.number); !s.bounded {
		s.steady(t)
	}
	d.jobs(&s)
	s.Little = d.little(&s)
	s.Fairness = d.fairness(&s, t)
	s.TaskSeconds = d.taskSeconds(&s)
	d.hosts(&s, t)
	return s
}

// step is what the sums alone say.
func (t *total) step() Step {
	s := Step{
		Step: t.number, Duration: t.span,
		Throughput: ratio(float64(t.Moved), t.span), Operations: ratio(float64(t.Done), t.span),
		Moved: t.Moved, Discarded: t.Discarded, Done: t.Done, Errors: t.Errors(), Wrong: t.Wrong, Canceled: t.Failed[storage.Canceled],
		ErrorsBy: t.Failures(), Retried: t.Retried, Missed: t.Missed,
		Verified: t.Verified, Unverified: t.Unverifiable, Encoded: t.Encoded,
		SessionRate: ratio(float64(t.Sessions), t.span), Handshakes: t.Handshakes, Resumed: t.Resumed, Tasks: t.Tasks,
		Waits: t.Waits, Waited: finite(t.Waited), Reopened: t.Reopened, Signed: t.Signed, Redirect: QuantilesOf(&t.Redirect), Servers: t.shares(),
		Latency: QuantilesOf(&t.Latency), FirstByte: QuantilesOf(&t.FirstByte),
		Connect: QuantilesOf(&t.Connect), Handshake: QuantilesOf(&t.Handshake), Login: QuantilesOf(&t.Login),
		ExternalCores: ratio(t.CPU, t.span), latencySeconds: t.Latency.Sum(), thinkSeconds: t.Think, lateSeconds: t.Late.Sum(),
		Paused: finite(t.Paused), RetryAfter: finite(t.RetryAfter), busySeconds: t.OperationTime, closingSeconds: t.Closing,
	}
	if q := QuantilesOf(&t.Late); q != nil {
		s.LateP99, s.timedStarts = &q.P99, q.Count
	}
	s.ErrorRatio = min(ratio(float64(s.Bad()), float64(s.Done+s.Errors)), 1)
	for _, sec := range t.seconds {
		s.ActiveClients += sec.clients * sec.seconds
	}
	s.ActiveClients = ratio(s.ActiveClients, t.span)
	s.PausedShare = min(1, ratio(t.Paused, s.ActiveClients*t.span))
	s.AskedShare = min(1, ratio(t.RetryAfter, s.ActiveClients*t.span))
	s.PerClient = ratio(s.Throughput, s.ActiveClients)
	s.PerClientRate = ratio(s.Operations, s.ActiveClients)
	s.spread(t)
	s.Peak = t.peak()
	s.jobs(t)
	return s
}

// taskSeconds is the mean wall clock time of a task by Little's law: the time of all clients, less their pauses, over
// the tasks that ended.
func (d *data) taskSeconds(s *Step) *float64 {
	if d.plan.Model == scenario.OpenModel || s.Tasks <= 0 {
		return nil
	}
	seconds := (s.ActiveClients*s.Duration - s.thinkSeconds - s.Paused - s.RetryAfter) / float64(s.Tasks)
	if !(seconds > 0) || math.IsInf(seconds, 0) {
		return nil
	}
	return &seconds
}

// A Peak is the window of a step's measurement time in which most was moved or, where nothing was, most operations ended.
// Windows follow each other and are a twentieth of the measurement time long, but at least a second.
type Peak struct {
	Start      time.Time `json:"start"`
	After      float64   `json:"after_seconds"` // from the start of the measurement
	Seconds    float64   `json:"seconds"`       // length of the window
	Throughput float64   `json:"throughput_bytes_per_second"`
	Operations float64   `json:"operations_per_second"` // that ended well
}

// peak returns the step's best window, nil if no operation ended and nothing moved.
func (t *total) peak() *Peak {
	const tolerance = 0.1 // seconds that are cut at the wall clock's are not quite as long
	want := max(1, t.span/20) - tolerance
	var best *Peak
	for i := 0; i < len(t.seconds); {
		w := Peak{Start: t.seconds[i].start, After: t.seconds[i].start.Sub(t.seconds[0].start).Seconds()}
		for ; i < len(t.seconds) && w.Seconds < want; i++ {
			s := &t.seconds[i]
			w.Seconds, w.Throughput, w.Operations = w.Seconds+s.seconds, w.Throughput+float64(s.moved), w.Operations+float64(s.done)
		}
		w.Throughput, w.Operations = ratio(w.Throughput, w.Seconds), ratio(w.Operations, w.Seconds)
		whole := w.Seconds >= want || best == nil // what is left at the end is too short to compare
		if whole && w.Throughput+w.Operations > 0 && (best == nil || w.Throughput > best.Throughput || t.Moved == 0 &&
			w.Operations > best.Operations) {
			best = &w
		}
	}
	return best
}

// spread fills in the intervals of the means.
func (s *Step) spread(t *total) {
	moved, done := batches(t.seconds, movedIn), batches(t.seconds, doneIn)
	s.Batches = len(moved)
	s.means = means(moved)
	if t.Moved == 0 {
		s.means = means(done)
	}
	s.ThroughputLow, s.ThroughputHigh = interval(moved)
	s.OperationsLow, s.OperationsHigh = interval(done)
}

// widen makes the intervals of all steps as wide as is right for batches whose neighbors resemble each other, and
// returns their correlation; 0 if that is no more than chance.
func widen(steps []Step) float64 {
	series := make([][]float64, len(steps))
	for i := range steps {
		if steps[i].Excluded == "" {
			series[i] = steps[i].means
		}
	}
	rho := stats.Persistence(series)
	for s := range each(steps) {
		factor := stats.Widening(rho, s.Batches)
		s.ThroughputLow, s.ThroughputHigh = widened(s.Throughput, s.ThroughputHigh, factor)
		s.OperationsLow, s.OperationsHigh = widened(s.Operations, s.OperationsHigh, factor)
	}
	return rho
}

// widened returns an interval by its mean and upper end, by a factor wider.
func widened(mean float64, high *float64, factor float64) (l, h *float64) {
	if high == nil {
		return nil, nil
	}
	half := (*high - mean) * factor
	return new(max(0, mean-half)), new(mean + half)
}

// means are the values of batches.
func means(batches []stats.Point) []float64 {
	out := make([]float64, len(batches))
	for i, p := range batches {
		out[i] = p.Value
	}
	return out
}

// QuantilesOf returns those of what h has recorded; nil if that is nothing.
func QuantilesOf(h *measure.Histogram) *Quantiles {
	if h.Count() == 0 {
		return nil
	}
	return &Quantiles{Count: h.Count(), Mean: finite(h.Mean()), P50: h.Quantile(0.5), P90: h.Quantile(0.9),
		P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max()}
}

// parts lists sums by name, the largest first.
func parts(m map[string]*total) []Part {
	all := []Part{}
	for _, t := range m {
		all = append(all, Part{Name: t.name, Throughput: ratio(float64(t.Moved), t.span), Operations: ratio(float64(t.Done), t.span),
			Moved: t.Moved, Done: t.Done, Errors: t.Errors(), Wrong: t.Wrong, ErrorsBy: t.Failures(),
			Latency: QuantilesOf(&t.Latency)})
	}
	slices.SortFunc(all, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Moved, a.Moved), cmp.Compare(b.Done, a.Done), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// yield returns what steps are compared by, with its interval.
func (f *Findings) yield(s *Step) (mean float64, low, high *float64) {
	if f.Measure == Rate {
		return s.Operations, s.OperationsLow, s.OperationsHigh
	}
	return s.Throughput, s.ThroughputLow, s.ThroughputHigh
}

// bounds is yield's interval, the mean itself where there is none.
func (f *Findings) bounds(s *Step) (low, high float64) {
	mean, l, h := f.yield(s)
	if l == nil || h == nil {
		return mean, mean
	}
	return *l, *h
}

// best returns the place in the curve of the optimum's step; -1 if there is none.
func (f *Findings) best() int {
	if f.Optimum == nil {
		return -1
	}
	return slices.IndexFunc(f.Curve, func(s Step) bool { return s.Step == f.Optimum.Step })
}

// load is where a step lies on the curve's axis: arrivals per second in the open model, else clients.
func (f *Findings) load(s *Step) float64 {
	if f.Open() {
		return s.Rate
	}
	if s.fromTable { // the mean of a table's rows, which need not be whole
		return s.ActiveClients
	}
	return float64(s.Clients)
}

// Open reports whether the load was planned as arrivals per second.
func (f *Findings) Open() bool { return f.Model == scenario.OpenModel }

// heaviest returns the place of the step with the largest load.
func (f *Findings) heaviest() int {
	at := 0
	for i := range f.Curve {
		if f.load(&f.Curve[i]) > f.load(&f.Curve[at]) {
			at = i
		}
	}
	return at
}

// lightest returns the place of the step with the smallest load.
func (f *Findings) lightest() int {
	at := 0
	for i := range f.Curve {
		if f.load(&f.Curve[i]) < f.load(&f.Curve[at]) {
			at = i
		}
	}
	return at
}
