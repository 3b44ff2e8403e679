package schedule

import (
	"fmt"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer"
)

// A Limit is the number of copies that a link may have at once, with its reason. It is a value that
// can be kept as JSON.
type Limit struct {
	N       int                 `json:"n"`
	Why     string              `json:"why"`
	Cause   transfer.LimitCause `json:"cause,omitempty"`
	Success float64             `json:"success"` // of recent copies, 0 to 1

	Before     int     `json:"before,omitempty"`      // the limit before the trial of N; 0: there is no trial
	BeforeRate float64 `json:"before_rate,omitempty"` // bytes per second with Before
	Seen       int     `json:"seen,omitempty"`        // windows since N was set
	Sum        float64 `json:"sum,omitempty"`         // of their rates, except the first
	Rest       int     `json:"rest,omitempty"`        // windows until the next trial
	Down       bool    `json:"down,omitempty"`        // the next trial is with fewer copies
	Settled    bool    `json:"settled,omitempty"`     // a trial had no gain: from then on steps are small
}

// A Window holds the measurements of a link over a period of time.
type Window struct {
	Rate   float64 // bytes per second
	Active float64 // copies at once, on average
	Good   int     // copies that succeeded
	Bad    int     // copies that failed because of the link or its ends
}

const (
	hasty    = 2    // windows until a limit is judged, while it is doubled; the rate of the first does not count
	judged   = 5    // later, when gains are smaller
	rest     = 30   // windows between a trial without gain and the next trial
	weight   = 0.3  // weight of the last window in the mean success
	noise    = 0.03 // variation of a rate without a cause
	worthOne = 0.25 // fraction of the ideal gain (as if copies did not slow each other down) that a trial must reach
)

// Next returns the limit after another window.
func (l Limit) Next(w Window, r Rules) Limit {
	r = r.filled()
	if l.N == 0 {
		l = Limit{N: r.Start, Success: 1, Cause: transfer.LimitStart,
			Why: fmt.Sprintf("%s at once to begin with", say.Plural(r.Start, "copy"))}
	}
	if ended := w.Good + w.Bad; ended > 0 {
		now := float64(w.Good) / float64(ended)
		l.Success += (now - l.Success) * max(weight, min(1, float64(ended)/20))
	}
	switch {
	case r.Min == r.Max:
		return Limit{N: r.Min, Success: l.Success, Cause: transfer.LimitFixed, Why: "fixed by whoever runs the coordinator"}
	case w.Bad > 0 && l.Success < r.Success:
		return l.fewer(r)
	case w.Active < float64(l.N)-0.5:
		l.Seen, l.Sum = 0, 0 // an unused limit is no evidence about a higher limit
		return l
	}
	l.Seen++
	if l.Seen > 1 {
		l.Sum += w.Rate
	}
	l.Rest = max(0, l.Rest-1)
	if l.Seen < hasty || l.Settled && l.Seen < judged {
		return l
	}
	return l.judge(l.Sum/float64(l.Seen-1), r)
}

// fewer reduces the limit after failures: by one, or by a quarter if many fail.
func (l Limit) fewer(r Rules) Limit {
	n := l.N - 1
	if l.Success < 0.8 {
		n = l.N - max(1, l.N/4)
	}
	n = max(r.Min, n)
	why := fmt.Sprintf("%s of the last copies failed", unit.Percent(1-l.Success))
	if n == l.N {
		why += ", and there are no fewer than that"
	}
	return Limit{N: n, Success: l.Success, Rest: rest, Cause: transfer.LimitFailures, Why: why, Settled: true}
}

// judge decides on a limit that was fully used for a while, at the given rate.
func (l Limit) judge(rate float64, r Rules) Limit {
	if l.Before == 0 {
		if l.Rest > 0 {
			return l
		}
		return l.try(rate, r)
	}
	gain := rate/max(l.BeforeRate, 1) - 1
	need := noise
	if l.N > l.Before {
		need = max(noise, worthOne*(float64(l.N)/float64(l.Before)-1))
	}
	if gain >= need {
		l.Down = l.N < l.Before
		next := l.try(rate, r)
		next.Cause = transfer.LimitGain
		next.Why = fmt.Sprintf("%s with %d at once, %s more than with %d", unit.Bits(rate), l.N, unit.Percent(gain), l.Before)
		if next.N != l.N {
			next.Why += fmt.Sprintf("; now %d are tried", next.N)
		}
		return next
	}
	word := "no more"
	if gain < -noise {
		word = unit.Percent(-gain) + " less"
	}
	return Limit{
		N: l.Before, Success: l.Success, Rest: rest, Down: l.N > l.Before, Settled: true, Cause: transfer.LimitNoGain,
		Why: fmt.Sprintf("%s with %d at once: with %d it was %s", unit.Bits(l.BeforeRate), l.Before, l.N, word),
	}
}

// try begins a trial: of twice as many copies at first, later of a quarter more or less.
func (l Limit) try(rate float64, r Rules) Limit {
	step := l.N
	if l.Settled {
		step = max(1, l.N/4)
	}
	n := min(r.Max, l.N+step)
	if l.Down {
		n = max(r.Min, l.N-step)
	}
	if n == l.N {
		return Limit{N: n, Success: l.Success, Rest: rest, Down: !l.Down, Settled: true, Cause: l.Cause, Why: l.Why}
	}
	return Limit{
		N: n, Success: l.Success, Before: l.N, BeforeRate: rate, Down: l.Down, Settled: l.Settled, Cause: transfer.LimitTrial,
		Why: fmt.Sprintf("%s with %d at once; now %d are tried", unit.Bits(rate), l.N, n),
	}
}
