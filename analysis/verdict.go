package analysis

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/analysis/shape"
	"weir/analysis/stats"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/storage"
)

// at names a step by its load: "64 clients", "64 jobs", "200 arrivals/s".
func (f *Findings) at(s *Step) string {
	if f.Open() {
		digits := 4
		for x := s.Rate; x >= 1e4; x /= 10 {
			digits++ // whole numbers are written out
		}
		return strconv.FormatFloat(s.Rate, 'g', digits, 64) + " arrivals/s"
	}
	return f.count(s.Clients)
}

// Load names what steps are told apart by: clients, jobs, or arrivals/s.
func (f *Findings) Load() string {
	switch {
	case f.Open():
		return "arrivals/s"
	case f.OfJobs():
		return "jobs"
	}
	return "clients"
}

// count writes a number of clients, or of jobs, in the closed model.
func (f *Findings) count(n int) string {
	if f.OfJobs() {
		return say.Plural(n, "job")
	}
	return say.Plural(n, "client")
}

// show writes a yield with its unit.
func (f *Findings) show(x float64) string {
	if f.Measure == Rate {
		return unit.Count(x) + " " + f.Things()
	}
	return unit.Bits(x)
}

// Things are what is counted where no payload is moved: operations/s, or jobs/s
// where each is a program of the user's.
func (f *Findings) Things() string {
	if f.OfJobs() && f.Measure == Rate {
		return "jobs/s"
	}
	return "operations/s"
}

// between writes the interval of a yield: " (8.10 to 8.52)", with units where
// they are not those of the yield itself.
func (f *Findings) between(s *Step) string {
	mean, low, high := f.yield(s)
	if low == nil || high == nil {
		return ""
	}
	from, to := f.show(*low), f.show(*high)
	_, unit, _ := strings.Cut(f.show(mean), " ")
	if strings.HasSuffix(from, " "+unit) && strings.HasSuffix(to, " "+unit) {
		from, to = strings.TrimSuffix(from, " "+unit), strings.TrimSuffix(to, " "+unit)
	}
	return fmt.Sprintf(" (%s to %s)", from, to)
}

// verdict says in one plain sentence what the run showed.
func (f *Findings) verdict(best int) string {
	if len(f.Curve) == 0 {
		return "Nothing was measured: no step reached its hold time."
	}
	done, errors, by := counts(f)
	if best < 0 && errors > 0 && done == 0 {
		return fmt.Sprintf("All %d operations failed (%s), so there is nothing to show.", errors, classes(by))
	}
	if best < 0 {
		return "No operation ended and no payload moved while the load was held, so there is nothing to show."
	}
	s := &f.Curve[best]
	said := []string{f.turn(best, f.cpuClause(s)+errorClause(s)) + "."}
	if o := f.Optimum; o != nil && o.fitted {
		most := o.Throughput
		if f.Measure == Rate {
			most = o.Operations
		}
		said = append(said, fmt.Sprintf("The fitted curve has its maximum, %s, at %s (%d to %d).", f.show(most), f.count(o.Clients), o.ClientsLow, o.ClientsHigh))
	}
	_, low, _ := f.yield(s) // without an interval nothing can be told from anything
	if c := f.Cheapest; c != nil && !f.Open() && c.Clients < s.Clients && low != nil {
		who := fmt.Sprintf("%d give", c.Clients)
		if c.Clients == 1 {
			who = f.count(1) + " gives"
		}
		said = append(said, fmt.Sprintf("As far as can be told, %s as much.", who))
	}
	said = append(said, f.jobClauses(s)...)
	if limit := f.limitClause(); limit != "" {
		said = append(said, limit)
	}
	return strings.Join(said, " ")
}

// turn tells where the best step lies on the curve, what was there, and what
// comes after it.
func (f *Findings) turn(best int, there string) string {
	s := &f.Curve[best]
	what := "Throughput"
	if f.Measure == Rate {
		what = "The rate"
	}
	top, _, _ := f.yield(s)
	value := f.show(top) + f.between(s)
	if len(f.Curve) == 1 {
		return fmt.Sprintf("%s is %s with %s%s; one step alone shows no maximum", what, value, f.at(s), there)
	}
	heaviest := f.heaviest()
	last := &f.Curve[heaviest]
	end, _, _ := f.yield(last)
	level := f.levelsOff(best)
	switch {
	case end > top && s.unwell() <= shape.FewErrors && last.unwell() > shape.FewErrors:
		return fmt.Sprintf("%s is %s with %s%s, the best of the steps at which at most %s end badly; with %s, where %s do, it is %s",
			what, value, f.at(s), there, unit.Percent(shape.FewErrors), f.at(last), unit.Percent(last.unwell()), f.show(end))
	case f.load(s) >= f.load(last) && level == "":
		return fmt.Sprintf("%s still grows at the last step, %s with %s%s; no maximum was found in the tested range", what, value, f.at(s), there)
	case f.load(s) >= f.load(last):
		return fmt.Sprintf("%s %s, %s at the last step with %s%s; no maximum was found in the tested range", what, level, value, f.at(s), there)
	case f.declines(best):
		return fmt.Sprintf("%s peaks at %s with %s%s; beyond that it falls, to %s with %s", what, value, f.at(s), there, f.show(end), f.at(last))
	case f.Optimum != nil && f.Optimum.Inside:
		return fmt.Sprintf("%s peaks at %s with %s%s; beyond that it falls, but %s with %s may be the same", what, value, f.at(s), there, f.show(end), f.at(last))
	case level == "":
		level = "is much the same at all steps"
		if least, _, _ := f.yield(&f.Curve[f.lightest()]); least < shape.NearBest*top {
			level = "is much the same from " + f.at(s) + " on"
		}
	}
	return fmt.Sprintf("%s %s: %s with %s%s; up to %s it changes by no more than chance, so no maximum was found in the tested range",
		what, level, value, f.at(s), there, f.at(last))
}

// levelsOff says from where on more load brings little, "" if that is nowhere
// before the best step.
func (f *Findings) levelsOff(best int) string {
	s := &f.Curve[best]
	if k := f.Knee; k != nil && !f.Open() && float64(k.Clients) < f.load(s) {
		return fmt.Sprintf("levels off from %s on", f.count(k.Clients))
	}
	top, _, _ := f.yield(s)
	least := best
	for i := range f.Curve {
		if mean, _, _ := f.yield(&f.Curve[i]); mean >= shape.NearBest*top && f.load(&f.Curve[i]) < f.load(&f.Curve[least]) {
			least = i
		}
	}
	if c := f.Cheapest; c != nil && least == best { // its interval is wide
		least = slices.IndexFunc(f.Curve, func(x Step) bool { return x.Step == c.Step })
	}
	if least < 0 || f.load(&f.Curve[least]) >= f.load(s) {
		return ""
	}
	return fmt.Sprintf("is much the same from %s on", f.at(&f.Curve[least]))
}

// cpuClause tells what the best step cost both sides.
func (f *Findings) cpuClause(s *Step) string {
	who := "the server process"
	if s.serverByHost {
		who = "the server host"
	}
	text := ""
	switch {
	case s.ServerCPU != nil:
		text = fmt.Sprintf(", where %s used %s of its machine's CPU", who, unit.Percent(*s.ServerCPU))
	case s.ServerCores != nil:
		text = fmt.Sprintf(", where %s kept %.2g cores busy", who, *s.ServerCores)
	}
	switch {
	case s.ClientCPU == nil:
		return text
	case text == "":
		return fmt.Sprintf(", where the clients used %s of their machine's CPU", unit.Percent(*s.ClientCPU))
	}
	return text + fmt.Sprintf(" and the clients %s", unit.Percent(*s.ClientCPU)) + busyClause(s)
}

// busyClause tells how busy a machine was that both sides share: the kernel's
// work for the network is in no process's share.
func busyClause(s *Step) string {
	for _, h := range s.Hosts {
		if h.ServerCores != nil && h.ClientCores != nil && h.CPU != nil {
			return fmt.Sprintf(" (it was %s busy in all)", unit.Percent(*h.CPU))
		}
	}
	return ""
}

func errorClause(s *Step) string {
	if s.ErrorRatio < 0.01 {
		return ""
	}
	return fmt.Sprintf(" (%s of its operations failed)", unit.Percent(s.ErrorRatio))
}

// wide is the half width of an interval, as a share of its mean, that is worth a remark.
const wide = 0.1

// warnings are remarks that do not touch the validity of the result.
func (d *data) warnings(f *Findings, best int) []string {
	var all []string
	all = append(all, d.firstErrors()...)
	few := 0
	for i := range f.Curve {
		if f.Curve[i].ThroughputLow == nil {
			few++
		}
	}
	if few > 0 {
		all = append(all, fmt.Sprintf("%d of %d steps were held for less than %d s: they have no interval", few, len(f.Curve), stats.LeastBatches))
	}
	if best >= 0 {
		s := &f.Curve[best]
		mean, _, _ := f.yield(s)
		low, high := f.bounds(s)
		if half := ratio(high-low, 2*mean); half > wide {
			all = append(all, fmt.Sprintf("the best step is known to +-%.0f%% only: hold longer, or quieten the machines", 100*half))
		}
	}
	if host := shared(f); host != "" {
		all = append(all, "clients and service share the CPU of "+host+": the curve is that of both together")
	}
	if d.moved > 0 {
		if share := discardedShare(f); share > 0 {
			all = append(all, fmt.Sprintf("%s of the payload was counted and dropped in the kernel, not copied to the clients", unit.Percent(share)))
		}
	}
	var retried int64
	for i := range f.Curve {
		retried += f.Curve[i].Retried
	}
	if retried > 0 {
		all = append(all, fmt.Sprintf("%d operations were tried again", retried))
	}
	for _, e := range d.events {
		if text := strings.TrimSpace(e.Text); e.Kind == "warning" && len(all) < 20 && !slices.Contains(all, text) { // workers may say the same
			all = append(all, text)
		}
	}
	return all
}

// firstErrors tells the first error of each class in its own words.
func (d *data) firstErrors() (all []string) {
	seen := map[storage.Class]bool{}
	for _, e := range d.events {
		if e.Kind == "error" && e.Class != storage.Canceled && !seen[e.Class] {
			seen[e.Class] = true
			all = append(all, fmt.Sprintf("the first error %q: %.300s", e.Class, strings.TrimSpace(e.Text)))
		}
	}
	return all
}

func discardedShare(f *Findings) float64 {
	var discarded, moved int64
	for i := range f.Curve {
		discarded += f.Curve[i].Discarded
		moved += f.Curve[i].Moved
	}
	return math.Min(1, ratio(float64(discarded), float64(moved)))
}

// shared names a host on which both sides were seen, "" if there is none.
func shared(f *Findings) string {
	for i := range f.Curve {
		for _, h := range f.Curve[i].Hosts {
			if h.Role == "both" || h.ServerCores != nil && h.ClientCores != nil {
				return h.Host
			}
		}
	}
	return ""
}
