package steps

import (
	"math"
	"time"

	"weir/internal/stats"
	"weir/loadtest/scenario"
	"weir/storage"
)

// Step converts the sums of a step's measurement time to its point of the curve, without its hosts.
func (d *Run) Step(t *Total) *Working {
	s := t.Step()
	s.Clients = int(math.Round(s.ActiveClients))
	for _, p := range d.Plan.Steps {
		if p.Number == t.Number {
			s.Clients, s.Rate = p.Clients, stats.OrZero(float64(p.Rate))
		}
	}
	if e := d.Announced(t.Number); e != nil { // also for steps that no plan contains
		s.Clients, s.Rate = e.Clients, stats.OrZero(e.Rate)
	}
	if d.Plan.On.JobPerClient { // the batch system decided on their number
		s.Planned, s.Clients = s.Clients, int(math.Round(s.ActiveClients))
	}
	if s.Bounded = d.bounded(t.Number); !s.Bounded {
		s.steady(t)
	}
	d.jobs(s)
	s.Little = d.little(s)
	s.Fairness = d.fairness(s, t)
	s.TaskSeconds = d.taskSeconds(s)
	return s
}

// Step returns the figures that the sums alone determine.
func (t *Total) Step() *Working {
	s := &Working{Figures: &Figures{
		Step: t.Number, Duration: t.Span,
		Throughput: stats.Ratio(float64(t.Moved), t.Span), Operations: stats.Ratio(float64(t.Done), t.Span),
		Moved: t.Moved, Discarded: t.Discarded, Done: t.Done, Errors: t.Errors(), Wrong: t.Wrong, Canceled: t.Failed[storage.Canceled],
		ErrorsBy: t.Failures(), Retried: t.Retried, Missed: t.Missed,
		Verified: t.Verified, Unverified: t.Unverifiable, Encoded: t.Encoded,
		SessionRate: stats.Ratio(float64(t.Sessions), t.Span), Handshakes: t.Handshakes, Resumed: t.Resumed, Tasks: t.Tasks,
		Waits: t.Waits, Waited: stats.OrZero(t.Waited), Reopened: t.Reopened, Signed: t.Signed, Redirect: QuantilesOf(&t.Redirect),
		Servers: t.shares(),
		Latency: QuantilesOf(&t.Latency), FirstByte: QuantilesOf(&t.FirstByte),
		Connect: QuantilesOf(&t.Connect), Handshake: QuantilesOf(&t.Handshake), Login: QuantilesOf(&t.Login),
		ExternalCores: stats.Ratio(t.CPU, t.Span), Paused: stats.OrZero(t.Paused), RetryAfter: stats.OrZero(t.RetryAfter),
	}}
	s.LatencySeconds, s.ThinkSeconds, s.lateSeconds = t.Latency.Sum(), t.Think, t.Late.Sum()
	s.BusySeconds, s.closingSeconds = t.OperationTime, t.Closing
	if q := QuantilesOf(&t.Late); q != nil {
		s.LateP99, s.TimedStarts = &q.P99, q.Count
	}
	s.ErrorRatio = min(stats.Ratio(float64(s.Bad()), float64(s.Done+s.Errors)), 1)
	for _, sec := range t.Seconds {
		s.ActiveClients += sec.Clients * sec.Seconds
	}
	s.ActiveClients = stats.Ratio(s.ActiveClients, t.Span)
	s.PausedShare = min(1, stats.Ratio(t.Paused, s.ActiveClients*t.Span))
	s.AskedShare = min(1, stats.Ratio(t.RetryAfter, s.ActiveClients*t.Span))
	s.PerClient = stats.Ratio(s.Throughput, s.ActiveClients)
	s.PerClientRate = stats.Ratio(s.Operations, s.ActiveClients)
	s.spread(t)
	s.Peak = t.peak()
	s.jobs(t)
	return s
}

// taskSeconds returns the mean wall clock time of a task by Little's law: the time of all clients,
// without their pauses, divided by the number of tasks that ended.
func (d *Run) taskSeconds(s *Working) *float64 {
	if d.Plan.Model == scenario.OpenModel || s.Tasks <= 0 {
		return nil
	}
	seconds := (s.ActiveClients*s.Duration - s.ThinkSeconds - s.Paused - s.RetryAfter) / float64(s.Tasks)
	if !(seconds > 0) || math.IsInf(seconds, 0) {
		return nil
	}
	return &seconds
}

// A Peak is the window of a step's measurement time with the most payload or, without payload, with
// the most operations that ended. Windows are consecutive and last a twentieth of the measurement
// time, but at least a second.
type Peak struct {
	Start      time.Time `json:"start"`
	After      float64   `json:"after_seconds"` // from the start of the measurement
	Seconds    float64   `json:"seconds"`       // length of the window
	Throughput float64   `json:"throughput_bytes_per_second"`
	Operations float64   `json:"operations_per_second"` // that ended well
}

// peak returns the step's best window, or nil if no operation ended and nothing was moved.
func (t *Total) peak() *Peak {
	const tolerance = 0.1 // intervals cut at whole seconds of the clock may be slightly shorter
	want := max(1, t.Span/20) - tolerance
	var best *Peak
	for i := 0; i < len(t.Seconds); {
		w := Peak{Start: t.Seconds[i].Start, After: t.Seconds[i].Start.Sub(t.Seconds[0].Start).Seconds()}
		for ; i < len(t.Seconds) && w.Seconds < want; i++ {
			s := &t.Seconds[i]
			w.Seconds, w.Throughput, w.Operations = w.Seconds+s.Seconds, w.Throughput+float64(s.Moved), w.Operations+float64(s.Done)
		}
		w.Throughput, w.Operations = stats.Ratio(w.Throughput, w.Seconds), stats.Ratio(w.Operations, w.Seconds)
		whole := w.Seconds >= want || best == nil // the rest at the end is too short to compare
		if whole && w.Throughput+w.Operations > 0 && (best == nil || w.Throughput > best.Throughput || t.Moved == 0 &&
			w.Operations > best.Operations) {
			best = &w
		}
	}
	return best
}

// spread fills in the confidence intervals of the means.
func (s *Working) spread(t *Total) {
	moved, done := batches(t.Seconds, movedIn), batches(t.Seconds, doneIn)
	s.Batches = len(moved)
	s.Means = means(moved)
	if t.Moved == 0 {
		s.Means = means(done)
	}
	s.ThroughputLow, s.ThroughputHigh = interval(moved)
	s.OperationsLow, s.OperationsHigh = interval(done)
}

// Widen widens the intervals of all steps according to the correlation of neighboring batches, and
// returns this correlation, or 0 if it is no more than chance.
func Widen(steps []*Working) float64 {
	series := make([][]float64, len(steps))
	for i := range steps {
		if steps[i].Excluded == "" {
			series[i] = steps[i].Means
		}
	}
	rho := stats.Persistence(series)
	for _, s := range steps {
		factor := stats.Widening(rho, s.Batches)
		s.ThroughputLow, s.ThroughputHigh = widened(s.Throughput, s.ThroughputHigh, factor)
		s.OperationsLow, s.OperationsHigh = widened(s.Operations, s.OperationsHigh, factor)
	}
	return rho
}

// widened returns an interval, given by its mean and upper end, that is wider by a factor.
func widened(mean float64, high *float64, factor float64) (l, h *float64) {
	if high == nil {
		return nil, nil
	}
	half := (*high - mean) * factor
	return new(max(0, mean-half)), new(mean + half)
}

// means returns the values of batches.
func means(batches []stats.Point) []float64 {
	out := make([]float64, len(batches))
	for i, p := range batches {
		out[i] = p.Value
	}
	return out
}
