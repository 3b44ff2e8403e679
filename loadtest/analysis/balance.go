package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/measure"
)

// Values of Balance.Source: whose figures the shares of backends are of.
const (
	ByClients   = "clients"      // what clients saw of each data server
	ByLog       = "transfer log" // of the backend
	ByInterface = "interface"    // all traffic of it
	ByItself    = "service"      // what the backend's server says of itself
	ByBalancer  = "balancer"     // bytes that it passed on
	BySessions  = "sessions"     // no bytes are known: sessions at once
)

// A Balance is how several servers, the backends, shared the load.
type Balance struct {
	Source   string        `json:"source"` // what shares are of
	Balancer string        `json:"balancer,omitempty"`
	Backends []Backend     `json:"backends"`        // in the order of the scenario, then by name
	First    *BackendLimit `json:"first_saturated"` // nil: none was seen to be
}

// A Backend is one of the servers that share the load, in the measurement time of all steps.
type Backend struct {
	Name       string        `json:"name"`
	Throughput *float64      `json:"throughput_bytes_per_second"` // nil: sessions are all that is known
	Share      float64       `json:"share"`
	Saturated  *BackendLimit `json:"saturated"` // nil: it was not seen to be
	place      int
}

// A BackendLimit is the lightest load from which on a backend was full.
type BackendLimit struct {
	Backend  string `json:"backend"`
	Step     int    `json:"step"`
	From     int    `json:"clients"`
	Resource string `json:"resource"` // one of ResourceUsage.Resource, or LimitSessions, LimitYield
	Detail   string `json:"detail"`
}

// A BackendFigure is one backend in the measurement time of one step. Bytes are payload per second; nil is unknown.
type BackendFigure struct {
	Name        string   `json:"name"`
	Throughput  *float64 `json:"throughput_bytes_per_second"` // by Balance.Source
	Share       float64  `json:"share"`
	Clients     *float64 `json:"clients_bytes_per_second"`
	Log         *float64 `json:"transfer_log_bytes_per_second"`
	Interface   *float64 `json:"interface_bytes_per_second"`
	Service     *float64 `json:"service_bytes_per_second"`
	Balancer    *float64 `json:"balancer_bytes_per_second"`
	Operations  *float64 `json:"operations_per_second"` // that clients saw to end well
	Errors      int64    `json:"errors"`                // that clients saw
	Sessions    *float64 `json:"sessions"`              // at once
	SessionRate *float64 `json:"sessions_per_second"`   // that began
	Queue       *float64 `json:"queue"`                 // sessions that waited for it
	Limit       int      `json:"session_limit,omitempty"`
	Weight      int      `json:"weight,omitempty"` // as the balancer has it
	Status      string   `json:"status,omitempty"` // the balancer's word
	Transfers   *float64 `json:"transfers"`        // that ran, by its log
	CPU         *float64 `json:"cpu_busy"`         // share of its machine's cores
	Cores       *float64 `json:"cpu_cores"`        // that its own processes used
	Network     *float64 `json:"network_share"`    // of its interface's speed, the tighter way
}

// A StepBalance is how evenly the backends shared one step.
type StepBalance struct {
	Sum       float64 `json:"sum_bytes_per_second"` // of all backends; 0 where sessions are all that is known
	Imbalance float64 `json:"imbalance"`            // largest over mean; with weights, of shares over weights
	Variation float64 `json:"variation"`            // standard deviation over mean, the same
	Choices   int64   `json:"choices"`              // how often a backend was chosen
	ByChance  float64 `json:"imbalance_by_chance"`  // what that many random choices give on average
	Mostly    float64 `json:"imbalance_by_chance_p95"`
}

// byClients fills in what clients saw of a step's data servers, by place.
func (d *data) byClients(t *total) map[int]*measure.Sum {
	all := map[int]*measure.Sum{}
	for name, s := range t.servers {
		if name == "" || name == measure.Others {
			continue
		}
		place := d.backends.place(name)
		entryOf(&all, place).AddCounts(s)
	}
	return all
}

// balance finds how the backends shared the load, and puts what each did into the steps. It returns nil where fewer
// than two are known.
func (d *data) balance(f *Findings) *Balance {
	seen := map[int]map[int]*measure.Sum{}
	for _, t := range d.held() {
		seen[t.number] = d.byClients(t)
	}
	places := d.places(seen)
	if len(places) < 2 {
		return nil
	}
	b := &Balance{Balancer: d.backends.balancer}
	b.Source = d.source(f, seen, places)
	for _, place := range places {
		b.Backends = append(b.Backends, Backend{Name: d.backends.names[place], place: place})
	}
	hold := 0.0
	for s := range each(f.Curve) {
		for _, place := range places {
			s.Backends = append(s.Backends, d.backend(s, place, seen[s.Step][place]))
		}
		s.shareOut(b.Source)
		s.Balance = s.even(b.Source)
		hold += s.Duration
	}
	b.sumUp(f, hold)
	b.limits(f)
	return b
}

// places lists the backends: those that the plan names, and others that clients saw at work, or fail; without these,
// those that a balancer reports on. Where clients and a balancer call the same servers otherwise, only hosts of the
// plan with name and address say so.
func (d *data) places(seen map[int]map[int]*measure.Sum) []int {
	b := d.backends
	named, reported := map[int]bool{}, map[int]bool{}
	for _, all := range seen {
		for place, s := range all {
			if place >= b.declared && did(s) > 0 {
				named[place] = true
			}
		}
	}
	for _, all := range b.steps {
		for place := range all {
			if place >= b.declared {
				reported[place] = true
			}
		}
	}
	if len(named) == 0 {
		named = reported
	}
	places := slices.Collect(maps.Keys(named))
	slices.SortFunc(places, func(x, y int) int { return cmp.Compare(b.names[x], b.names[y]) })
	var first []int
	for place := range b.declared {
		first = append(first, place)
	}
	return append(first, places...)
}

// A source has to report on this share of what the clients moved to be believed to report on all of it; less passes
// another way.
const leastReported = 0.5

// untimely is by how much the bytes that a balancer, or a server itself, counted in one step may differ from what the
// clients moved: more, and it counts those of a session when that ends, as HAProxy does, or every few seconds.
const untimely = 0.2

// source chooses what shares are of: the first that reports on most of what the clients moved, and when they moved it.
func (d *data) source(f *Findings, seen map[int]map[int]*measure.Sum, places []int) string {
	all := 0.0
	sums := map[string]float64{}
	late := map[string]bool{}
	for s := range each(f.Curve) {
		step := map[string]float64{}
		for _, place := range places {
			x := d.backend(s, place, seen[s.Step][place])
			for name, v := range x.bySource() {
				step[name] += value(v)
			}
		}
		for name, n := range step {
			sums[name] += n * s.Duration
			late[name] = late[name] || math.Abs(n-s.Throughput) > untimely*s.Throughput
		}
		all += s.Throughput * s.Duration
	}
	for _, name := range []string{ByClients, ByLog, ByInterface, ByItself, ByBalancer} {
		if timely := name != ByItself && name != ByBalancer || !late[name]; sums[name] > 0 && sums[name] >= leastReported*all && timely {
			return name
		}
	}
	return BySessions
}

func (x *BackendFigure) bySource() map[string]*float64 {
	return map[string]*float64{ByClients: x.Clients, ByLog: x.Log, ByInterface: x.Interface, ByItself: x.Service, ByBalancer: x.Balancer}
}

// backend is what is known of one backend in one step.
func (d *data) backend(s *Step, place int, seen *measure.Sum) BackendFigure {
	x := BackendFigure{Name: d.backends.names[place]}
	if seen != nil {
		x.Clients, x.Operations, x.Errors = new(ratio(float64(seen.Moved), s.Duration)), new(ratio(float64(seen.Done), s.Duration)), seen.Errors()
	}
	if sum := d.backends.steps[s.Step][place]; sum != nil {
		x.take(sum, s.Duration, d.backends.balancer != "")
	}
	if place < d.backends.declared {
		h := &d.backends.hosts[place]
		if h.TransferLog != "" && x.Log == nil {
			x.Log, x.Transfers = new(float64), new(float64) // no line of it is of this step
		}
		if k := slices.IndexFunc(s.Hosts, func(o HostFigure) bool { return o.Host == h.Name && o.CPU != nil }); k >= 0 {
			x.CPU = s.Hosts[k].CPU
			if x.Network == nil {
				x.Network = tighter(s.Hosts[k].ReceivedShare, s.Hosts[k].SentShare)
			}
		}
	}
	return x
}

// take fills in what the sums of a step say.
func (x *BackendFigure) take(sum *backendSum, hold float64, balancer bool) {
	per := func(is bool, n float64) *float64 {
		if !is || hold <= 0 {
			return nil
		}
		return new(n / hold)
	}
	x.Log, x.Interface, x.Service = per(sum.hasLog, sum.logged), per(sum.hasWire, sum.wire), per(sum.hasReport && !sum.untimely, sum.reported)
	x.Transfers = per(sum.hasLog, sum.running.sum)
	x.Sessions, x.Cores, x.Network = sum.sessions.value(), sum.own.value(), sum.busy.value()
	if x.Sessions == nil {
		return
	}
	x.SessionRate = per(true, sum.connected)
	if balancer {
		x.Balancer, x.Queue = per(true, sum.passed), sum.queue.value()
		x.Limit, x.Weight, x.Status = sum.limit, sum.weight, sum.status
	}
}

// tighter is the larger of two shares.
func tighter(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// shareOut fills in the backends' throughputs and shares.
func (s *Step) shareOut(source string) {
	sum := 0.0
	for x := range each(s.Backends) {
		if x.Throughput = x.bySource()[source]; source != BySessions && x.Throughput == nil {
			x.Throughput = new(float64)
		}
		sum += x.amount()
	}
	for i := range s.Backends {
		s.Backends[i].Share = ratio(s.Backends[i].amount(), sum)
	}
}

// amount is what shares are of.
func (x *BackendFigure) amount() float64 {
	if x.Throughput != nil {
		return *x.Throughput
	}
	return value(x.Sessions)
}

// even says how evenly the backends shared a step; nil if they did nothing.
func (s *Step) even(source string) *StepBalance {
	n, weights, shares := float64(len(s.Backends)), 0.0, 0.0
	weighted := true
	for i := range s.Backends {
		weights += float64(s.Backends[i].Weight)
		weighted = weighted && s.Backends[i].Weight > 0
		shares += s.Backends[i].Share
	}
	if shares <= 0 {
		return nil
	}
	b := &StepBalance{}
	squares := 0.0
	for x := range each(s.Backends) {
		due := 1 / n
		if weighted {
			due = float64(x.Weight) / weights
		}
		b.Imbalance = max(b.Imbalance, x.Share/due)
		squares += (x.Share/due - 1) * (x.Share/due - 1)
		if source != BySessions {
			b.Sum += value(x.Throughput)
		}
	}
	b.Variation = math.Sqrt(squares / n)
	b.Choices = s.choices()
	b.ByChance, b.Mostly = stats.Uneven(len(s.Backends), float64(b.Choices))
	return b
}

// choices is how often a backend was chosen for something: for each session, and where a redirector chooses, for each
// operation that it redirected.
func (s *Step) choices() int64 {
	made := s.SessionRate * s.Duration
	reported := 0.0
	for i := range s.Backends {
		reported += value(s.Backends[i].SessionRate) * s.Duration
	}
	most := max(s.ActiveClients, made, reported)
	if s.Redirect != nil {
		most = max(most, float64(s.Redirect.Count))
	}
	return int64(math.Round(most))
}

// sumUp fills in what backends did in all steps together.
func (b *Balance) sumUp(f *Findings, hold float64) {
	sum := 0.0
	amounts := make([]float64, len(b.Backends))
	for i := range f.Curve {
		for k := range f.Curve[i].Backends {
			amounts[k] += f.Curve[i].Backends[k].amount() * f.Curve[i].Duration
			sum += f.Curve[i].Backends[k].amount() * f.Curve[i].Duration
		}
	}
	for k := range b.Backends {
		b.Backends[k].Share = ratio(amounts[k], sum)
		if b.Source != BySessions {
			b.Backends[k].Throughput = new(ratio(amounts[k], hold))
		}
	}
}
