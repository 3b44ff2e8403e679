package analysis

import (
	"math"
	"strings"

	"weir/measure"
	"weir/scenario"
)

// doubt is by how many standard deviations a count or a quantile must be
// beyond a limit to break it in the middle of a hold. A step is looked at many
// times, so 95% would stop one run in a few by chance.
const doubt = 3

// surely returns the value next to the limit that the step's figure can still
// be believed to have: its lower bound for thresholds with <, the upper one
// for those with >. It is not known where that cannot be said.
func (s *soFar) surely(t scenario.Threshold) figure {
	name, upper := t.Measure.Name, t.Upper()
	switch name {
	case "error_ratio":
		return wilson(s.errors, s.done+s.errors, upper)
	case "missed_ratio":
		return wilson(s.missed, s.done+s.errors+s.missed, upper)
	case "wait_ratio": // an operation can be told to wait many times: a count of Poisson's
		n, k := float64(s.ended()), float64(s.waits)
		return figure{value: ratio(max(0, k+side(upper)*doubt*math.Sqrt(max(k, 1))), n), known: n > 0}
	case "job_failure_ratio":
		return wilson(s.jobs.Broken, s.jobs.Ended+s.jobs.Broken+s.jobs.Crashed, upper)
	case "crash_ratio":
		return wilson(s.jobs.Crashed, s.jobs.Ended+s.jobs.Broken+s.jobs.Crashed, upper)
	case "throughput", "per_client", "rate", "per_client_rate", "cpu_efficiency", "cluster_throughput", "events_rate":
		step := s.step()
		v := step.figure(name)
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
	h := map[string]*measure.Histogram{"latency": &s.latency, "first_byte": &s.firstByte, "connect": &s.connect, "login": &s.login, "redirect": &s.redirect, "job": &s.jobs.Wall}[name[:i]]
	if h == nil {
		return figure{}
	}
	return duringOf(h, name[i+1:], upper)
}

// side is the direction in which the doubt lies.
func side(upper bool) float64 {
	if upper {
		return -1
	}
	return 1
}

// wilson returns a bound of the share k/n (Wilson, Journal of the American
// Statistical Association 22, 1927).
func wilson(k, n int64, lower bool) figure {
	if n == 0 {
		return figure{}
	}
	p, m := float64(k)/float64(n), float64(n)
	half := doubt * math.Sqrt(p*(1-p)/m+doubt*doubt/(4*m*m))
	x := (p + doubt*doubt/(2*m) + side(lower)*half) / (1 + doubt*doubt/m)
	return known(min(max(x, 0), 1))
}

// duringOf returns a bound of a quantile, the mean or the maximum of durations.
// How many of n values lie below their q-quantile is a binomial count, so a
// quantile's bounds are those of its neighbors in rank.
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
	q := map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}[which]
	at := q + side(lower)*doubt*math.Sqrt(q*(1-q)/n)
	if q == 0 || at <= 0 || at >= 1 {
		return figure{}
	}
	return known(h.Quantile(at))
}
