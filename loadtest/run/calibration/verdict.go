package calibration

import (
	"fmt"
	"math"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
)

// Bounds of the sentences.
const (
	sameWithin   = 0.10 // ratios so near 1 are called the same
	closeEnough  = 0.25 // beyond it, load by weir is no stand-in without a factor
	fewFiles     = 20   // a side with fewer files in all says little
	slowStart    = 0.1  // seconds a file from which a waiting program is suspicious
	idleShare    = 0.3  // of the transfer time that its CPU takes at most then
	othersShare  = 0.02 // of all requests that others may make unnoticed
	mostFailures = 0.01 // of all operations that may fail
)

// conclude says what follows from the figures, and what to keep in mind.
func (r *Result) conclude() {
	r.Valid = len(r.Points) > 0 && r.failures() <= mostFailures
	if len(r.Points) == 0 {
		r.verdict("There is nothing to compare: %s.", r.missing())
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

func (r *Result) verdict(format string, args ...any) {
	r.Verdict = append(r.Verdict, fmt.Sprintf(format, args...))
}

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// missing says why no step could be compared.
func (r *Result) missing() string {
	for i, name := range []string{"weir", r.Program} {
		var done, failed, held int64
		for k := range r.sides[i] {
			s := &r.sides[i][k]
			done, failed, held = done+s.Done, failed+s.Failed, held+s.Held.Done
		}
		switch {
		case len(r.sides[i]) == 0:
			return "no step of " + name + " was taken"
		case done == 0 && failed > 0:
			return fmt.Sprintf("all operations of %s failed (%d); its run directory says how", name, failed)
		case held == 0 && done == 0:
			return name + " brought no file to its end: use a longer --duration, or smaller files (--size)"
		}
	}
	return "no two steps with the same clients ended well"
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

// requestsVerdict says whether the two ask for the same.
func (r *Result) requestsVerdict() {
	w, where := r.Relay, ""
	switch {
	case r.Servers != nil && (w == nil || w.Opaque || w.Redirected):
		w, where = r.Servers, ", as the servers count"
	case w == nil || w.Opaque:
		r.verdict("What each asks for on the wire could not be seen (%s).", r.unseen())
		return
	case w.Redirected:
		where = " of the target itself, before it redirects"
	}
	var sum Both
	var same, differ []string
	for _, q := range w.kinds() {
		sum.Weir, sum.Real = sum.Weir+q.Weir, sum.Real+q.Real
		if q.Differ() {
			differ = append(differ, fmt.Sprintf("%s %s against %s", q.Name, number(q.Weir), number(q.Real)))
		} else {
			same = append(same, q.Name)
		}
	}
	if len(differ) == 0 {
		r.verdict("One virtual client does what one %s does: %s a file against %s%s, the same (%s).",
			r.Program, asks(sum.Weir), number(sum.Real), where, strings.Join(same, ", "))
		return
	}
	r.differ = true
	r.verdict("One virtual client does not do exactly what one %s does: %s a file against %s%s. They differ in: %s.",
		r.Program, asks(sum.Weir), number(sum.Real), where, strings.Join(differ, "; "))
}

func (r *Result) unseen() string {
	switch {
	case r.Relay != nil && r.Relay.Opaque:
		return "the connections are encrypted, and the servers do not tell"
	case r.given.LookError != "":
		return r.given.LookError
	}
	return "there was no look at it"
}

// serverVerdict says what a file, or a byte, costs the server.
func (r *Result) serverVerdict() {
	p := r.last()
	f := p.Figure(ServerByFile)
	switch {
	case f.Ratio == nil && f.Weir != nil && f.Real != nil:
		r.verdict("The server did so little in such short steps that its CPU could not be compared: use a longer --duration, " +
			"or larger files (--size).")
		return
	case f.Ratio == nil:
		r.verdict("What the server's CPU does is not known: its processes are not on this machine (or not ours to see), " +
			"and it does not report them itself.")
		return
	}
	if f.PacedRatio != nil {
		text := ""
		if f.Ratio.Value < 1-sameWithin && f.PacedRatio.Value > f.Ratio.Value {
			text = fmt.Sprintf(" At full speed weir's files cost it %s each (%s times): a server that works all the time needs less for a file.",
				unit.Seconds(*f.Weir), three(f.Ratio.Value))
		}
		r.verdict("At the pace of %s the server spends %s on a file for weir as for %s: %s against %s with %s, %s.%s",
			r.Program, cost(f.PacedRatio), r.Program, unit.Seconds(*f.Paced), unit.Seconds(*f.PacedReal), say.Plural(p.Clients, "client"),
			f.PacedRatio, text)
		return
	}
	r.verdict("The server spends %s on a file for weir as for %s: %s against %s with %s, %s.",
		cost(f.Ratio), r.Program, unit.Seconds(*f.Weir), unit.Seconds(*f.Real), say.Plural(p.Clients, "client"), f.Ratio)
}

// cost tells a ratio of CPU times.
func cost(x *Ratio) string {
	if math.Abs(x.Value-1) <= sameWithin {
		return "the same CPU"
	}
	return times(x.Value) + " the CPU"
}

func (r *Result) speedVerdict() {
	var parts []string
	for i := range r.Points {
		p := &r.Points[i]
		if f := p.Figure(Rate); f.Ratio != nil {
			parts = append(parts, fmt.Sprintf("%s %s %s as many files as %d %s (%s/s against %s/s)",
				say.Plural(p.Clients, "virtual client"), say.Either(p.Clients, "brings", "bring"), times(f.Ratio.Value), p.Clients, r.Program,
				unit.Count(round(*f.Weir)), unit.Count(round(*f.Real))))
		}
	}
	if len(parts) > 0 {
		r.verdict("Without a pause between files, %s.", strings.Join(parts, ", "))
	}
}

func (r *Result) clientVerdict() {
	p := r.last()
	if f := p.Figure(ClientByFile); f.Ratio != nil {
		r.verdict("On the client's side a file costs weir %s of CPU, %s %s (%s).",
			unit.Seconds(*f.Weir), r.Program, unit.Seconds(*f.Real), times(f.Ratio.Value))
	}
}

// use says what a user may do with it.
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
	if math.Abs(server.Value-1) > closeEnough {
		r.verdict("So a file moved by weir is not yet a file moved by %s for the server: multiply the server's CPU by %s before you say how "+
			"many %s it carries.", r.Program, three(1/server.Value), r.Program)
		return
	}
	ratio := rate.Value
	if r.Stalls != nil {
		ratio = r.Stalls.Ratio
	}
	r.verdict("So, as the server sees it, a file moved by weir represents a file moved by %s%s, and here one virtual client without a pause "+
		"for %s %s that follow one another without a pause. You may multiply files, bytes and server CPU, but not transfer times: "+
		"those of %s hold its own start and end.",
		r.Program, r.but(server), three(ratio), r.Program, r.Program)
}

// but tells what has to be kept in mind when a file of weir represents one of
// the program.
func (r *Result) but(server *Ratio) string {
	var parts []string
	if r.differ {
		parts = append(parts, "the requests named above")
	}
	if math.Abs(server.Value-1) > sameWithin {
		parts = append(parts, fmt.Sprintf("the server's CPU (multiply it by %s)", three(1/server.Value)))
	}
	if len(parts) == 0 {
		return ""
	}
	return " but for " + strings.Join(parts, " and ")
}

// last is the point with the most clients.
func (r *Result) last() *Point { return &r.Points[len(r.Points)-1] }

// String tells a ratio with its interval.
func (r *Ratio) String() string {
	if r.Low == r.High {
		return three(r.Value) + " times"
	}
	return fmt.Sprintf("%s times (%s to %s)", three(r.Value), three(r.Low), three(r.High))
}

// times tells a ratio in words.
func times(x float64) string {
	if x > 0 && x < 0.5 {
		return "1/" + three(1/x)
	}
	return three(x) + " times"
}

func asks(x float64) string {
	if number(x) == "1" {
		return "1 request"
	}
	return number(x) + " requests"
}

// number is how often something is asked for each file.
func number(x float64) string {
	if math.Abs(x-math.Round(x)) < 0.02 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// three rounds to what such measurements can tell.
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
