package slow

import (
	"math"
	"slices"

	"weir/internal/cause"
	"weir/internal/stats"
	"weir/internal/unit"
)

// Thresholds of the rules.
const (
	half       = 0.5    // share of the time from which a part of it is the cause
	gains      = 1.6    // several streams carry so many times the rate of one: something limits each
	level      = 1.25   // they carry less than this: something limits all
	cached     = 1.4    // a range that was just read comes so many times as fast: the disk limited it
	lossy      = 0.0005 // share of lost segments that slows a stream
	queueing   = 0.3    // growth of the connect time under load, relative to the round trip
	leastQueue = 0.002  // s, least growth that counts
	farAway    = 0.0005 // s, round trip from which windows matter
	full       = 0.95   // share of the CPU from which this host may be the cause
	leastSpan  = 0.25   // s of one stream from which something limits it
	slowAnswer = 0.02   // s, time of a request beyond the round trip that counts
)

// what is a cause with its detail.
type what struct {
	cause  Cause
	detail Detail
}

// A judge weighs the hypotheses of one transfer.
type judge struct {
	*Seen
	all      []*cause.Hypothesis[what, string]
	excluded []string
	one      float64 // rate of one stream
	again    float64 // of the same ranges once more
	many     float64 // of the best number of streams
	streams  int     // that number
	lost     float64
	round    float64 // round trip
	payload  float64 // time of the payload of the file
	best     map[what]float64
}

// of returns the hypothesis of a cause.
func (j *judge) of(c Cause, d Detail) *cause.Hypothesis[what, string] {
	k := what{c, d}
	for _, h := range j.all {
		if h.Cause == k {
			return h
		}
	}
	h := &cause.Hypothesis[what, string]{Cause: k}
	j.all = append(j.all, h)
	return h
}

// exclude notes that a cause is excluded, and by what, and speaks against it.
func (j *judge) exclude(why string, of ...*cause.Hypothesis[what, string]) {
	j.excluded = append(j.excluded, why)
	for _, h := range of {
		h.Against(cause.Strong, why)
	}
}

// Judge returns the cause of the largest part of a transfer's time.
func Judge(seen *Seen) Verdict {
	j := &judge{Seen: seen, best: map[what]float64{}}
	j.measure()
	setup := seen.Setup.Sum()
	share := 1.0
	if seen.Host.Full {
		j.of(ThisHost, Disk).For(cause.Direct, "", "the local disk has no space left")
		return j.verdict(share)
	}
	if away := j.family(setup + j.payload); away >= half/2 {
		return j.verdict(away)
	}
	switch {
	case seen.Stuck != nil:
		j.stuck()
	case setup+j.payload == 0:
	case setup <= j.payload && j.brief():
		return Verdict{Certainty: cause.Unknown, Text: "Nothing slow was seen: " + unit.Bits(j.one) +
			" in one stream. More payload (--bytes) would show what limits it."}
	case setup > j.payload:
		share = setup / (setup + j.payload)
		j.setup(share)
	default:
		share = j.payload / (setup + j.payload)
		j.host()
		if seen.Write {
			j.writes()
		} else {
			j.disk()
		}
		j.line()
		j.server()
		j.exporter()
	}
	return j.verdict(share)
}

// parts returns what the time of the transfer consists of.
func (j *judge) parts() []Part {
	whole := j.Setup.Sum() + j.payload
	all := append(j.Setup.Parts(), Part{Name: "payload", Seconds: j.payload})
	for i := range all {
		all[i].Share = all[i].Seconds / max(whole, math.SmallestNonzeroFloat64)
	}
	return slices.DeleteFunc(all, func(p Part) bool { return p.Share < 0.001 })
}

// measure condenses the flows.
func (j *judge) measure() {
	j.one, j.again = middle(j.Fresh, rateOf), middle(j.Again, rateOf)
	j.lost = middle(j.Fresh, func(f *Flow) float64 { return f.Wire.Lost })
	for i := range j.Many {
		if f := &j.Many[i]; f.Rate > j.many {
			j.many, j.streams = f.Rate, f.Streams
		}
	}
	j.round = j.Idle.Connect
	for i := range j.Fresh {
		if r := j.Fresh[i].Wire.MinRTT; r > 0 && (j.round == 0 || r < j.round) {
			j.round = r
		}
	}
	if j.one > 0 {
		j.payload = j.Size / j.one
	}
}

func rateOf(f *Flow) float64 { return f.Rate }

// middle returns the median of a value of flows.
func middle(of []Flow, value func(*Flow) float64) float64 {
	if len(of) == 0 {
		return 0
	}
	all := make([]float64, len(of))
	for i := range of {
		all[i] = value(&of[i])
	}
	return stats.Quantile(all, 0.5)
}

// brief reports whether payload moved for too short a time to see what limits it.
func (j *judge) brief() bool {
	sum := 0.0
	for i := range j.Fresh {
		sum += j.Fresh[i].Seconds
	}
	return len(j.Fresh) > 0 && sum < leastSpan
}

// verdict judges the hypotheses. share is that of the part of the time that they explain.
func (j *judge) verdict(share float64) Verdict {
	all := make([]cause.Hypothesis[what, string], len(j.all))
	for i, h := range j.all {
		all[i] = *h
	}
	of := cause.Judge(all)
	v := Verdict{Certainty: of.Certainty, Excluded: j.excluded}
	for _, e := range of.Evidence {
		if e.Strength > 0 && !slices.Contains(v.Evidence, e.Observation) {
			v.Evidence = append(v.Evidence, e.Observation)
		}
	}
	v.Parts = j.parts()
	if of.Certainty == cause.Unknown {
		for _, k := range of.Among {
			v.Among = append(v.Among, k.cause)
		}
		v.Text, v.Advice = j.text(&v), ""
		return v
	}
	v.Cause, v.Detail, v.Share = of.Cause.cause, of.Cause.detail, share
	if best := j.best[of.Cause]; best > j.one {
		v.Share = share * (1 - j.one/best)
	}
	v.Share = math.Round(v.Share*1000) / 1000
	if v.Certainty == cause.Certain && of.Cause != (what{ThisHost, CPU}) && (v.Share < half || j.Host.CPU >= full) {
		v.Certainty = cause.Likely // other causes have the larger part, or this host may
	}
	v.Text, v.Advice = j.text(&v), advice(of.Cause)
	return v
}
