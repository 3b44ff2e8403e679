package calibration

import (
	"fmt"
	"math"
	"strings"

	"weir/loadtest/analysis/fact"
)

// Bounds of the sentences.
const (
	sameWithin   = 0.10 // ratios so near 1 are called the same
	closeEnough  = 0.25 // beyond it, load by weir is no stand-in without a factor
	fewFiles     = 20   // a side with fewer files in all is not conclusive
	slowStart    = 0.1  // seconds a file from which a waiting program is suspicious
	idleShare    = 0.3  // of the transfer time that its CPU takes at most then
	othersShare  = 0.02 // of all requests that others may make unnoticed
	mostFailures = 0.01 // of all operations that may fail
)

// conclude fills in the verdict and the notes.
func (r *Result) conclude() {
	r.Valid = len(r.Points) > 0 && r.failures() <= mostFailures
	if len(r.Points) == 0 {
		r.verdict(r.nothing())
		r.notes()
		return
	}
	r.requestsVerdict()
	r.serverVerdict()
	r.speedVerdict()
	r.Stalls = r.findStalls()
	r.stallsVerdict()
	r.clientVerdict()
	r.use()
	r.notes()
}

func (r *Result) verdict(f fact.Fact) {
	r.Verdict, r.Facts = append(r.Verdict, f.Text), append(r.Facts, f)
}

func (r *Result) note(f fact.Fact) { r.Notes, r.Facts = append(r.Notes, f.Text), append(r.Facts, f) }

// nothing returns why no step could be compared.
func (r *Result) nothing() fact.Fact {
	for i, name := range []string{"weir", r.Program} {
		var done, failed, held int64
		for k := range r.sides[i] {
			s := &r.sides[i][k]
			done, failed, held = done+s.Done, failed+s.Failed, held+s.Held.Done
		}
		switch {
		case len(r.sides[i]) == 0:
			return fact.New("calibration.nothing.no_step", "side", name)
		case done == 0 && failed > 0:
			return fact.New("calibration.nothing.failed", "side", name, "failed", failed)
		case held == 0 && done == 0:
			return fact.New("calibration.nothing.incomplete", "side", name)
		}
	}
	return fact.New("calibration.nothing.no_pair")
}

func (r *Result) failures() float64 {
	var done, failed int64
	for _, side := range r.sides {
		for i := range side {
			done, failed = done+side[i].Done, failed+side[i].Failed
		}
	}
	if done+failed == 0 {
		return 0
	}
	return float64(failed) / float64(done+failed)
}

// requestsVerdict compares the requests of both sides.
func (r *Result) requestsVerdict() {
	w, byServers := r.Relay, false
	switch {
	case r.Servers != nil && (w == nil || w.Opaque || w.Redirected):
		w, byServers = r.Servers, true
	case w == nil || w.Opaque:
		r.verdict(r.unseen())
		return
	}
	var sum Both
	var same, differ []string
	for _, q := range w.kinds() {
		sum.Weir, sum.Real = sum.Weir+q.Weir, sum.Real+q.Real
		if q.Differ() {
			differ = append(differ, q.Name)
		} else {
			same = append(same, q.Name)
		}
	}
	own, program := fact.As(sum.Weir, number(sum.Weir)), fact.As(sum.Real, number(sum.Real))
	if r.differ = len(differ) > 0; r.differ {
		r.verdict(fact.New("calibration.requests.differ", "program", r.Program, "weir_requests", own, "program_requests", program,
			"kinds", differ))
	} else {
		r.verdict(fact.New("calibration.requests.same", "program", r.Program, "weir_requests", own, "program_requests", program, "kinds", same))
	}
	if byServers {
		r.verdict(fact.New("calibration.requests.by_servers"))
	} else if w.Redirected {
		r.verdict(fact.New("calibration.requests.to_target"))
	}
}

// unseen returns why no requests could be compared.
func (r *Result) unseen() fact.Fact {
	switch {
	case r.Relay != nil && r.Relay.Opaque, r.given.Encrypted:
		return fact.New("calibration.requests.encrypted")
	case r.given.LookError != "":
		return fact.New("calibration.requests.unseen", "error", r.given.LookError)
	}
	return fact.New("calibration.requests.unknown")
}

// serverVerdict compares the server's CPU time for a file.
func (r *Result) serverVerdict() {
	p := r.last()
	f := p.Figure(ServerByFile)
	switch {
	case f.Ratio == nil && f.Weir != nil && f.Real != nil:
		r.verdict(fact.New("calibration.server.short"))
	case f.Ratio == nil:
		r.verdict(fact.New("calibration.server.unknown"))
	case f.PacedRatio == nil:
		r.verdict(r.serverCost(*f.Weir, *f.Real, p.Clients, f.Ratio))
	default:
		r.verdict(r.serverCost(*f.Paced, *f.PacedReal, p.Clients, f.PacedRatio))
		r.verdict(fact.New("calibration.server.paced", "program", r.Program))
		if f.Ratio.Value < 1-sameWithin && f.PacedRatio.Value > f.Ratio.Value {
			r.verdict(fact.New("calibration.server.full_speed", "seconds", *f.Weir, "ratio", ratio(f.Ratio.Value), "program", r.Program))
		}
	}
}

// serverCost compares CPU times of the server for a file.
func (r *Result) serverCost(own, program float64, clients int, x *Ratio) fact.Fact {
	if math.Abs(x.Value-1) <= sameWithin {
		return fact.New("calibration.server.same", "program", r.Program, "weir_seconds", own, "program_seconds", program, "clients", clients,
			"ratio", ratio(x.Value), "low", ratio(x.Low), "high", ratio(x.High))
	}
	return fact.New("calibration.server.differs", "program", r.Program, "weir_seconds", own, "program_seconds", program, "clients", clients,
		"ratio", times(x.Value), "low", ratio(x.Low), "high", ratio(x.High))
}

func (r *Result) speedVerdict() {
	for i := range r.Points {
		p := &r.Points[i]
		if f := p.Figure(Rate); f.Ratio != nil {
			r.verdict(fact.New("calibration.speed", "clients", p.Clients, "ratio", times(f.Ratio.Value), "program", r.Program,
				"weir_rate", *f.Weir, "program_rate", *f.Real))
		}
	}
}

func (r *Result) clientVerdict() {
	p := r.last()
	if f := p.Figure(ClientByFile); f.Ratio != nil {
		r.verdict(fact.New("calibration.client", "weir_seconds", *f.Weir, "program", r.Program, "program_seconds", *f.Real,
			"ratio", times(f.Ratio.Value)))
	}
}

// use adds a sentence on the figures of weir that are valid for the program.
func (r *Result) use() {
	p := r.last()
	f, rate := p.Figure(ServerByFile), p.Figure(Rate).Ratio
	server := f.Ratio
	if f.PacedRatio != nil {
		server = f.PacedRatio
	}
	if server == nil || rate == nil {
		return
	}
	factor := ratio(1 / server.Value)
	if math.Abs(server.Value-1) > closeEnough {
		r.verdict(fact.New("calibration.use.multiply", "program", r.Program, "factor", factor))
		return
	}
	files := rate.Value
	if r.Stalls != nil {
		files = r.Stalls.Ratio
	}
	r.verdict(fact.New("calibration.use.represents", "program", r.Program, "ratio", ratio(files)))
	if r.differ {
		r.verdict(fact.New("calibration.use.requests"))
	}
	if math.Abs(server.Value-1) > sameWithin {
		r.verdict(fact.New("calibration.use.cpu", "factor", factor))
	}
}

// last returns the point with the most clients.
func (r *Result) last() *Point { return &r.Points[len(r.Points)-1] }

// ratio returns a ratio for facts.
func ratio(x float64) fact.Shown { return fact.As(x, three(x)) }

// times returns a ratio for facts that is written "9.2 times" or "1/45".
func times(x float64) fact.Shown {
	if x > 0 && x < 0.5 {
		return fact.As(x, "1/"+three(1/x))
	}
	return fact.As(x, three(x)+" times")
}

// number formats the number of requests for each file.
func number(x float64) string {
	if math.Abs(x-math.Round(x)) < 0.02 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// three rounds to the accuracy of such measurements.
func three(x float64) string {
	switch {
	case math.Abs(x) >= 9.95:
		return fmt.Sprintf("%.0f", x)
	case math.Abs(x) >= 0.0995:
		return strings.TrimSuffix(fmt.Sprintf("%.2f", x), "0")
	}
	return fmt.Sprintf("%.2g", x)
}

func round(x float64) float64 {
	if x < 10 {
		return math.Round(x*10) / 10
	}
	return math.Round(x)
}
