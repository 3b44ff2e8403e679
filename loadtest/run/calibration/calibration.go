// Package calibration compares the measurements of weir's own clients with the measurements of a
// real client program on the same service, files and load, so that it is known which clients a
// virtual client represents.
//
// It reads two run directories whose steps were taken in turns: step n of the first beside step n
// of the second. All functions are pure.
package calibration

import (
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/results"
	"weir/loadtest/run/calibration/relay"
	"weir/loadtest/workload"
	"weir/monitor"
)

// Version is the version of a Result's JSON; its keys change only with it.
const Version = 1

// A Result has the differences between the two sides. Weir's figures stand first, and a ratio is
// weir's over the program's.
type Result struct {
	Version int           `json:"version"`
	Target  string        `json:"target"`
	Kind    workload.Kind `json:"kind"`    // read, write
	Program string        `json:"program"` // the real client: xrdcp, curl, gfal-copy
	Release string        `json:"release,omitempty"`
	Plain   bool          `json:"plain"`       // both without page checksums
	Rounds  int           `json:"rounds"`      // pairs of steps that could be compared, of the clients that have the fewest
	Files   [2]int        `json:"files_moved"` // by weir and by the program, in all

	Points  []Point     `json:"points"`
	Relay   *Wire       `json:"relay,omitempty"`      // requests on their way, one client
	Servers *Wire       `json:"statistics,omitempty"` // requests that the servers counted
	Stalls  *Stalls     `json:"stalls,omitempty"`     // of the program
	Verdict []string    `json:"verdict"`              // sentences
	Notes   []string    `json:"notes"`
	Facts   []fact.Fact `json:"facts"` // of Verdict and Notes
	Valid   bool        `json:"valid"` // there is something to compare, and it went well

	sides [3][]Step // weir, the program, weir at the program's rate
	given Given

	differ bool // in requests
}

// A Point has the results for one number of clients.
type Point struct {
	Clients int      `json:"clients"`
	Rounds  int      `json:"rounds"`
	Figures []Figure `json:"figures"`
}

// Names of figures.
const (
	Throughput   = "throughput_bytes_per_second"
	Rate         = "files_per_second"
	Median       = "transfer_seconds_p50"
	Slowest      = "transfer_seconds_p99"
	ClientByFile = "client_cpu_seconds_per_file"
	ClientByGB   = "client_cpu_seconds_per_gb"
	ServerByFile = "server_cpu_seconds_per_file"
	ServerByGB   = "server_cpu_seconds_per_gb"
	WireByByte   = "interface_bytes_per_byte"
)

// A Figure is one quantity on both sides, nil if it is not known: the medians of the rounds in which
// it is known on both sides, or of all rounds of a side if there is no such round.
type Figure struct {
	Name  string   `json:"name"`
	Weir  *float64 `json:"weir"`
	Real  *float64 `json:"program"`
	Ratio *Ratio   `json:"ratio"` // nil unless both values are known and above 0

	// Weir's clients again, with pauses that make them as slow as the program, beside the program
	// in the same rounds.
	Paced      *float64 `json:"weir_paced,omitempty"`
	PacedReal  *float64 `json:"paced_program,omitempty"`
	PacedRatio *Ratio   `json:"paced_ratio,omitempty"`
}

// A Ratio is weir's figure over the program's, between the least and the greatest ratio of a round.
type Ratio struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Given has the facts that are not in the two run directories.
type Given struct {
	Program, Release string
	Look             [2]Look // a few files of each side through a relay: weir, program
	Encrypted        bool    // the relay would see no requests
	LookError        string  // why there is no look; "" if there is one, or the connections are encrypted
	Idle             []*monitor.Service
	IdleSeconds      float64 // without load: the servers worked for other clients
	Interrupted      bool
	Doubts           []fact.Fact // checks of the run directories that failed
}

// A Look has the counts of a relay for a few operations, each with a session of its own.
type Look struct {
	Operations int
	Seen       relay.Seen
	Redirected bool // requests to data servers bypassed the relay
}

// Of compares the run of weir's own clients with the run of a real program, and with the run of
// weir's clients that were slowed down to the program's rate, if paced is not nil.
func Of(weir, program, paced *results.Run, g Given) (*Result, error) {
	r := &Result{Version: Version, Target: weir.Plan.Target, Kind: weir.Plan.Work.Kind, Program: g.Program, Release: g.Release,
		Plain: weir.Plan.Work.Plain, Points: []Point{}, Verdict: []string{}, Notes: []string{}, Facts: []fact.Fact{}, given: g}
	for i, run := range []*results.Run{weir, program, paced} {
		if run == nil {
			continue
		}
		steps, err := Steps(run)
		if err != nil {
			return nil, err
		}
		r.sides[i] = steps
	}
	r.compare()
	r.Relay = seen(g.Look)
	r.Servers = r.counted()
	r.conclude()
	return r, nil
}

// A pair is one step of each side, with the same clients. The third, at the
// program's rate, may be nil.
type pair [3]*Step

// pairs returns the steps in which at least one operation ended on both sides.
func (r *Result) pairs() []pair {
	var all []pair
	for i := range r.sides[0] {
		p := pair{&r.sides[0][i]}
		for side := 1; side < len(p); side++ {
			k := slices.IndexFunc(r.sides[side], func(b Step) bool { return b.Number == p[0].Number })
			if k >= 0 && r.sides[side][k].useful() {
				p[side] = &r.sides[side][k]
			}
		}
		if p[0].useful() && p[1] != nil {
			all = append(all, p)
		}
	}
	return all
}

// compare makes a point of each number of clients.
func (r *Result) compare() {
	byClients := map[int][]pair{}
	var order []int
	for _, p := range r.pairs() {
		n := p[0].Clients
		if byClients[n] == nil {
			order = append(order, n)
		}
		byClients[n] = append(byClients[n], p)
		r.Files[0] += int(p[0].Done)
		r.Files[1] += int(p[1].Done)
	}
	slices.Sort(order)
	for _, n := range order {
		pairs := byClients[n]
		point := Point{Clients: n, Rounds: len(pairs)}
		for _, q := range quantities() {
			if f := figure(q, pairs); f.Weir != nil || f.Real != nil {
				point.Figures = append(point.Figures, f)
			}
		}
		r.Points = append(r.Points, point)
		if r.Rounds == 0 || len(pairs) < r.Rounds {
			r.Rounds = len(pairs)
		}
	}
}

// A quantity is a figure of one step; nil if it is not known.
type quantity struct {
	name string
	of   func(*Step) *float64
}

func quantities() []quantity {
	return []quantity{
		{name: Throughput, of: func(s *Step) *float64 { return over(float64(s.span().Moved), s.span().Seconds) }},
		{name: Rate, of: func(s *Step) *float64 { return over(float64(s.span().Done), s.span().Seconds) }},
		{name: Median, of: func(s *Step) *float64 { return s.quantile(.5) }},
		{name: Slowest, of: func(s *Step) *float64 { return s.quantile(.99) }},
		{name: ClientByFile, of: func(s *Step) *float64 { return share(s.ClientCPU, float64(s.Done)) }},
		{name: ClientByGB, of: func(s *Step) *float64 { return share(s.ClientCPU, float64(s.Moved)/1e9) }},
		{name: ServerByFile, of: func(s *Step) *float64 { return share(s.ServerCPU, float64(s.Done)) }},
		{name: ServerByGB, of: func(s *Step) *float64 { return share(s.ServerCPU, float64(s.Moved)/1e9) }},
		{name: WireByByte, of: func(s *Step) *float64 { return over(float64(s.Net), float64(s.Moved)) }},
	}
}

func figure(q quantity, pairs []pair) Figure {
	values := inRounds(pairs, q.of)
	f := Figure{Name: q.name}
	f.Weir, f.Real, f.Ratio = beside(values[0], values[1])
	f.Paced, f.PacedReal, f.PacedRatio = beside(values[2], values[1])
	if f.PacedRatio == nil {
		f.Paced, f.PacedReal = nil, nil
	}
	return f
}

// inRounds returns a quantity of each side, one value for each round.
func inRounds(pairs []pair, of func(*Step) *float64) (values [3][]*float64) {
	for _, p := range pairs {
		for i, s := range p {
			var v *float64
			if s != nil {
				v = of(s)
			}
			values[i] = append(values[i], v)
		}
	}
	return values
}

// beside returns the medians of two sides over the rounds in which both are known, and their ratio.
func beside(a, b []*float64) (x, y *float64, r *Ratio) {
	var left, right []float64
	for i := range a {
		if !known(a[i]) || !known(b[i]) {
			continue
		}
		left, right = append(left, *a[i]), append(right, *b[i])
		of := *a[i] / *b[i]
		if r == nil {
			r = &Ratio{Low: of, High: of}
		}
		r.Low, r.High = min(r.Low, of), max(r.High, of)
	}
	if r == nil {
		return median(values(a)), median(values(b)), nil
	}
	x, y = median(left), median(right)
	r.Value = *x / *y
	return x, y, r
}

// values returns the known values of the rounds.
func values(rounds []*float64) (known []float64) {
	for _, x := range rounds {
		if x != nil {
			known = append(known, *x)
		}
	}
	return known
}

// known reports whether a value can be part of a ratio.
func known(x *float64) bool { return x != nil && *x > 0 }

// Figure returns the point's figure of a name; an empty figure if there is no such figure.
func (p *Point) Figure(name string) Figure {
	i := slices.IndexFunc(p.Figures, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		return Figure{Name: name}
	}
	return p.Figures[i]
}

func median(x []float64) *float64 {
	if len(x) == 0 {
		return nil
	}
	return new(stats.Quantile(x, 0.5))
}

// over divides x by by; nil if by is not positive.
func over(x, by float64) *float64 {
	if by <= 0 {
		return nil
	}
	v := x / by
	return &v
}

func share(x *float64, by float64) *float64 {
	if x == nil {
		return nil
	}
	return over(*x, by)
}
