package analysis

import (
	"fmt"
	"strings"

	"weir/scenario"
)

// judgeWhole judges a threshold on where the curve turns: optimum.clients,
// knee.throughput and the like.
//
// A run whose range ended before that tells only that it is not below the
// heaviest step. That meets a threshold that asks for more than something, if
// the heaviest step does, and no other.
func (f *Findings) judgeWhole(t scenario.Threshold) Judgment {
	what, name, _ := strings.Cut(t.Measure.Name, ".")
	switch {
	case f.best() < 0:
		return Judgment{Detail: "no operation ended well, so there is no " + called(what)}
	case (what == "optimum" || what == "knee" && f.Knee == nil) && !f.Optimum.Inside && f.load(&f.Curve[f.best()]) == f.load(&f.Curve[f.heaviest()]):
		return f.beyond(t, what, name)
	}
	v := f.place(what, name)
	if !v.known {
		return Judgment{Detail: "no " + called(what) + " was found"}
	}
	met, certain, doubt := v.judge(t)
	return Judgment{Met: met, Certain: certain, Detail: "the " + called(what) + " is at " + t.Measure.Format(v.value) + doubt}
}

func called(what string) string {
	return map[string]string{"optimum": "optimum", "knee": "knee", "cheapest": "optimum", "maximum_power": "load of maximum power"}[what]
}

// beyond judges where the run shows that the place lies beyond its range.
func (f *Findings) beyond(t scenario.Threshold, what, name string) Judgment {
	heaviest := f.heaviest()
	s := &f.Curve[heaviest]
	v := known(float64(s.Clients))
	switch name {
	case "throughput":
		v = s.figure("throughput")
	case "rate":
		v = s.figure("rate")
	}
	met, certain, doubt := v.judge(t)
	told := t.Measure.Format(v.value)
	if met = met && !t.Upper(); t.Upper() {
		certain, doubt = nil, ""
	}
	detail := fmt.Sprintf("the curve still rises at the heaviest step, so the %s is at %s or more", called(what), told)
	if what == "optimum" {
		detail = fmt.Sprintf("no maximum was found in the tested range, so it is at %s or more", told)
	}
	if !met {
		doubt = ": test heavier steps to know"
	}
	return Judgment{Met: met, Certain: certain, Detail: detail + doubt}
}

// place returns where on the curve something is, or what it gives there.
func (f *Findings) place(what, name string) figure {
	pick := func(clients figure, throughput, rate float64) figure {
		switch name {
		case "throughput":
			return known(throughput)
		case "rate":
			return known(rate)
		}
		return clients
	}
	switch what {
	case "optimum", "cheapest":
		o := f.Optimum
		low, high := float64(o.ClientsLow), float64(o.ClientsHigh)
		if name == "throughput" {
			return figure{o.Throughput, o.Low, o.High, true}
		}
		return pick(figure{float64(o.Clients), &low, &high, true}, o.Throughput, o.Operations)
	case "knee":
		if k := f.Knee; k != nil {
			return pick(figure{float64(k.Clients), k.ClientsLow, k.ClientsHigh, true}, k.Throughput, k.Operations)
		}
		return figure{}
	}
	at := f.Power
	if at == nil {
		return figure{}
	}
	return pick(known(float64(at.Clients)), at.Throughput, at.Operations)
}
