package limits

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
)

// Values of Balance.Source: the source of the figures from which the shares of backends are
// computed.
const (
	ByClients   = "clients"      // the clients' counts for each data server
	ByLog       = "transfer log" // of the backend
	ByInterface = "interface"    // all traffic of the backend's interface
	ByItself    = "service"      // the statistics of the backend's server
	ByBalancer  = "balancer"     // bytes that the balancer passed on
	BySessions  = "sessions"     // concurrent sessions, if no bytes are known
)

// A Balance describes the distribution of the load over several servers, the backends.
type Balance struct {
	Source   string        `json:"source"` // source of the shares
	Balancer string        `json:"balancer,omitempty"`
	Backends []Backend     `json:"backends"`        // in the order of the scenario, then by name
	First    *BackendLimit `json:"first_saturated"` // nil: no backend was saturated
}

// A Backend is one of the servers that share the load, in the measurement time of all steps.
type Backend struct {
	Name       string        `json:"name"`
	Throughput *float64      `json:"throughput_bytes_per_second"` // nil: only sessions are known
	Share      float64       `json:"share"`
	Saturated  *BackendLimit `json:"saturated"` // nil: it was not saturated
	place      int
}

// A BackendLimit is the lightest load from which a backend was saturated.
type BackendLimit struct {
	Backend  string `json:"backend"`
	Step     int    `json:"step"`
	From     int    `json:"clients"`
	Resource string `json:"resource"` // one of ResourceUsage.Resource, or LimitSessions, LimitYield
	Detail   string `json:"detail"`   // the texts of Facts

	Facts []fact.Fact `json:"facts,omitempty"`
}

// byClients returns the clients' counts for a step's data servers, by index.
func (bs *Backends) byClients(t *steps.Total) map[int]*measure.Sum {
	all := map[int]*measure.Sum{}
	for name, s := range t.Servers {
		if name == "" || name == measure.Others {
			continue
		}
		place := bs.place(name)
		basics.EntryOf(&all, place).AddCounts(s)
	}
	return all
}

// Balance computes the distribution of the load over the backends, and adds their shares to the
// steps. It returns nil if fewer than two backends are known.
func (bs *Backends) Balance(curve *steps.Curve) *Balance {
	seen := map[int]map[int]*measure.Sum{}
	for _, t := range bs.run.Held() {
		seen[t.Number] = bs.byClients(t)
	}
	places := bs.places(seen)
	if len(places) < 2 {
		return nil
	}
	b := &Balance{Balancer: bs.balancer}
	b.Source = bs.source(curve, seen, places)
	for _, place := range places {
		b.Backends = append(b.Backends, Backend{Name: bs.names[place], place: place})
	}
	hold := 0.0
	for _, s := range curve.Steps {
		for _, place := range places {
			s.Backends = append(s.Backends, bs.backend(s, place, seen[s.Step][place]))
		}
		shareOut(s, b.Source)
		s.Balance = even(s, b.Source)
		hold += s.Duration
	}
	b.sumUp(curve, hold)
	b.limits(curve)
	return b
}

// places lists the backends: the backends of the plan, and other servers with operations or
// failures of clients; if there are no such other servers, the servers that a balancer reports. If
// clients and a balancer use different names for the same servers, only hosts of the plan with name
// and address relate the names to each other.
func (bs *Backends) places(seen map[int]map[int]*measure.Sum) []int {
	named, reported := map[int]bool{}, map[int]bool{}
	for _, all := range seen {
		for place, s := range all {
			if place >= bs.declared && steps.Did(s) > 0 {
				named[place] = true
			}
		}
	}
	for _, all := range bs.steps {
		for place := range all {
			if place >= bs.declared {
				reported[place] = true
			}
		}
	}
	if len(named) == 0 {
		named = reported
	}
	places := slices.Collect(maps.Keys(named))
	slices.SortFunc(places, func(x, y int) int { return cmp.Compare(bs.names[x], bs.names[y]) })
	var first []int
	for place := range bs.declared {
		first = append(first, place)
	}
	return append(first, places...)
}

// leastReported is the share of the clients' bytes that a source must report if its figures are to
// stand for all of them; if it reports less, the other bytes take another path.
const leastReported = 0.5

// untimely is the largest relative difference in one step between the bytes that a balancer, or a
// server itself, counted and the bytes that the clients moved. A larger difference shows that it
// counts the bytes of a session when the session ends, as HAProxy does, or every few seconds.
const untimely = 0.2

// source returns the source of the shares: the first source that reports most of the bytes of the
// clients, at the times at which they moved.
func (bs *Backends) source(curve *steps.Curve, seen map[int]map[int]*measure.Sum, places []int) string {
	all := 0.0
	sums := map[string]float64{}
	late := map[string]bool{}
	for _, s := range curve.Steps {
		step := map[string]float64{}
		for _, place := range places {
			x := bs.backend(s, place, seen[s.Step][place])
			for name, v := range bySource(&x) {
				step[name] += basics.Value(v)
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

func bySource(x *steps.BackendFigure) map[string]*float64 {
	return map[string]*float64{ByClients: x.Clients, ByLog: x.Log, ByInterface: x.Interface, ByItself: x.Service, ByBalancer: x.Balancer}
}

// backend returns the figures of one backend in one step.
func (bs *Backends) backend(s *steps.Working, place int, seen *measure.Sum) steps.BackendFigure {
	x := steps.BackendFigure{Name: bs.names[place]}
	if seen != nil {
		x.Clients, x.Operations, x.Errors = new(stats.Ratio(float64(seen.Moved), s.Duration)), new(stats.Ratio(float64(seen.Done),
			s.Duration)), seen.Errors()
	}
	if sum := bs.steps[s.Step][place]; sum != nil {
		take(&x, sum, s.Duration, bs.balancer != "")
	}
	if place < bs.declared {
		h := &bs.hosts[place]
		if h.TransferLog != "" && x.Log == nil {
			x.Log, x.Transfers = new(float64), new(float64) // no line of it is in this step
		}
		if k := slices.IndexFunc(s.Hosts, func(o hosts.HostFigure) bool { return o.Host == h.Name && o.CPU != nil }); k >= 0 {
			x.CPU = s.Hosts[k].CPU
			if x.Network == nil {
				x.Network = tighter(s.Hosts[k].ReceivedShare, s.Hosts[k].SentShare)
			}
		}
	}
	return x
}

// take fills in the figures of the sums of a step.
func take(x *steps.BackendFigure, sum *backendSum, hold float64, balancer bool) {
	per := func(is bool, n float64) *float64 {
		if !is || hold <= 0 {
			return nil
		}
		return new(n / hold)
	}
	x.Log, x.Interface, x.Service = per(sum.hasLog, sum.logged), per(sum.hasWire, sum.wire), per(sum.hasReport && !sum.untimely, sum.reported)
	x.Transfers = per(sum.hasLog, sum.running.Sum)
	x.Sessions, x.Cores, x.Network = sum.sessions.Value(), sum.own.Value(), sum.busy.Value()
	if x.Sessions == nil {
		return
	}
	x.SessionRate = per(true, sum.connected)
	if balancer {
		x.Balancer, x.Queue = per(true, sum.passed), sum.queue.Value()
		x.Limit, x.Weight, x.Status = sum.limit, sum.weight, sum.status
	}
}

// tighter returns the larger of two shares, nil if both values are nil.
func tighter(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// shareOut fills in the throughputs and the shares of the backends.
func shareOut(s *steps.Working, source string) {
	sum := 0.0
	for x := range basics.Each(s.Backends) {
		if x.Throughput = bySource(x)[source]; source != BySessions && x.Throughput == nil {
			x.Throughput = new(float64)
		}
		sum += amountOf(x)
	}
	for i := range s.Backends {
		s.Backends[i].Share = stats.Ratio(amountOf(&s.Backends[i]), sum)
	}
}

// amountOf returns the quantity from which shares are computed.
func amountOf(x *steps.BackendFigure) float64 {
	if x.Throughput != nil {
		return *x.Throughput
	}
	return basics.Value(x.Sessions)
}

// even returns the evenness of the backends' shares in a step, nil if no backend had any load.
func even(s *steps.Working, source string) *steps.StepBalance {
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
	b := &steps.StepBalance{}
	squares := 0.0
	for x := range basics.Each(s.Backends) {
		due := 1 / n
		if weighted {
			due = float64(x.Weight) / weights
		}
		b.Imbalance = max(b.Imbalance, x.Share/due)
		squares += (x.Share/due - 1) * (x.Share/due - 1)
		if source != BySessions {
			b.Sum += basics.Value(x.Throughput)
		}
	}
	b.Variation = math.Sqrt(squares / n)
	b.Choices = choices(s)
	b.ByChance, b.Mostly = stats.Uneven(len(s.Backends), float64(b.Choices))
	return b
}

// choices returns the number of times that a backend was chosen: for each session and, if a
// redirector chooses, for each operation that it redirected.
func choices(s *steps.Working) int64 {
	made := s.SessionRate * s.Duration
	reported := 0.0
	for i := range s.Backends {
		reported += basics.Value(s.Backends[i].SessionRate) * s.Duration
	}
	most := max(s.ActiveClients, made, reported)
	if s.Redirect != nil {
		most = max(most, float64(s.Redirect.Count))
	}
	return int64(math.Round(most))
}

// sumUp fills in the shares and the throughputs of the backends over all steps.
func (b *Balance) sumUp(curve *steps.Curve, hold float64) {
	sum := 0.0
	amounts := make([]float64, len(b.Backends))
	for i := range curve.Steps {
		for k := range curve.Steps[i].Backends {
			amounts[k] += amountOf(&curve.Steps[i].Backends[k]) * curve.Steps[i].Duration
			sum += amountOf(&curve.Steps[i].Backends[k]) * curve.Steps[i].Duration
		}
	}
	for k := range b.Backends {
		b.Backends[k].Share = stats.Ratio(amounts[k], sum)
		if b.Source != BySessions {
			b.Backends[k].Throughput = new(stats.Ratio(amounts[k], hold))
		}
	}
}
