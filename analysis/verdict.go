package analysis

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"weir/internal/unit"
	"weir/storage"
)

// at names a step by its load: "64 clients", "200/s arrivals".
func (f *Findings) at(s *Step) string {
	if f.Open() {
		digits := 4
		for x := s.Rate; x >= 1e4; x /= 10 {
			digits++ // whole numbers are written out
		}
		return strconv.FormatFloat(s.Rate, 'g', digits, 64) + " arrivals/s"
	}
	if s.Clients == 1 {
		return "1 client"
	}
	return strconv.Itoa(s.Clients) + " clients"
}

// show writes a yield with its unit.
func (f *Findings) show(x float64) string {
	if f.Measure == Rate {
		return unit.Count(x) + " operations/s"
	}
	return unit.Bits(x)
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
	return f.shape(best, f.cpuClause(s)+errorClause(s)) + "."
}

// shape tells where the best step lies on the curve, what was there, and what
// comes after it.
func (f *Findings) shape(best int, there string) string {
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
	_, heaviest := f.extremes()
	last := &f.Curve[heaviest]
	if f.load(s) >= f.load(last) {
		if f.Knee != nil {
			return fmt.Sprintf("%s levels off from %s and is highest at the last step, %s with %s%s; no maximum was found in the tested range",
				what, f.at(f.kneeStep()), value, f.at(s), there)
		}
		if i := f.asGood(best); i >= 0 {
			return fmt.Sprintf("%s is much the same from %s on, %s with %s%s; no maximum was found in the tested range", what, f.at(&f.Curve[i]), value, f.at(s), there)
		}
		return fmt.Sprintf("%s still grows at the last step, %s with %s%s; no maximum was found in the tested range", what, value, f.at(s), there)
	}
	end, _, _ := f.yield(last)
	_, endHigh := f.bounds(last)
	low, _ := f.bounds(s)
	after := "beyond that it stays flat"
	switch {
	case end < nearBest*top && endHigh < low:
		after = fmt.Sprintf("beyond that it falls, to %s with %s", f.show(end), f.at(last))
	case end < nearBest*top:
		after = fmt.Sprintf("beyond that it does not rise (%s with %s, which the spread allows to be the same)", f.show(end), f.at(last))
	}
	return fmt.Sprintf("%s peaks at %s with %s%s; %s", what, value, f.at(s), there, after)
}

// asGood returns the step of the least load that is nearly as good as the best
// one, -1 if there is none but that.
func (f *Findings) asGood(best int) int {
	top, _, _ := f.yield(&f.Curve[best])
	least := -1
	for i := range f.Curve {
		s := &f.Curve[i]
		if mean, _, _ := f.yield(s); i != best && mean >= nearBest*top && (least < 0 || f.load(s) < f.load(&f.Curve[least])) {
			least = i
		}
	}
	return least
}

// kneeStep returns the step that the knee is at.
func (f *Findings) kneeStep() *Step {
	for i := range f.Curve {
		s := &f.Curve[i]
		if s.Clients == f.Knee.Clients && s.Throughput == f.Knee.Throughput && s.Operations == f.Knee.Operations {
			return s
		}
	}
	return &f.Curve[0]
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
		all = append(all, fmt.Sprintf("%d of %d steps were held for less than %d s: they have no interval", few, len(f.Curve), leastBatches))
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
		if e.Kind == "warning" && len(all) < 20 {
			all = append(all, strings.TrimSpace(e.Text))
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
