package analysis

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/internal/say"
	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/measure"
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

// Load names the load by which steps differ: clients, jobs, or arrivals/s.
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

// Things are what is counted where no payload is moved: operations/s, or jobs/s where each is a program of the
// user's.
func (f *Findings) Things() string {
	if f.OfJobs() && f.Measure == Rate {
		return "jobs/s"
	}
	return "operations/s"
}

// between writes the interval of a yield: " (8.10 to 8.52)", with units where they are not those of the yield itself.
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

// busyClause tells how busy a machine was that both sides share: the kernel's work for the network is in no process's
// share.
func busyClause(s *Step) string {
	for _, h := range s.Hosts {
		if h.ServerCores != nil && h.ClientCores != nil && h.CPU != nil {
			return fmt.Sprintf(" (it was %s busy overall)", unit.Percent(*h.CPU))
		}
	}
	return ""
}

// warnings are remarks that do not touch the validity of the result.
func (d *data) warnings(f *Findings) []string {
	var all []string
	all = append(all, d.firstErrors()...)
	few := 0
	for i := range f.Curve {
		if f.Curve[i].ThroughputLow == nil {
			few++
		}
	}
	if few > 0 {
		all = append(all, fmt.Sprintf("%d of %d steps were measured for less than %d s: they have no confidence interval", few, len(f.Curve),
			stats.LeastBatches))
	}
	if host := shared(f); host != "" {
		all = append(all, "clients and service share the CPU of "+host+": the curve is that of both together")
	}
	if d.moved > 0 {
		if share := discardedShare(f); share > 0 {
			all = append(all, fmt.Sprintf("%s of the payload was counted and discarded in the kernel, not %scopied to the clients",
				unit.Percent(share), decrypted(d.plan.Target)))
		}
	}
	if text := f.unfair(); text != "" {
		all = append(all, text)
	}
	var retried int64
	for i := range f.Curve {
		retried += f.Curve[i].Retried
	}
	if retried > 0 {
		all = append(all, fmt.Sprintf("%d operations were retried", retried))
	}
	for _, e := range d.events {
		// workers may say the same
		if text := strings.TrimSpace(e.Text); e.Kind == measure.EventWarning && len(all) < 20 && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// firstErrors tells the first error of each class in its own words.
func (d *data) firstErrors() (all []string) {
	seen := map[storage.Class]bool{}
	for _, e := range d.events {
		if e.Kind == measure.EventError && e.Class != storage.Canceled && !seen[e.Class] {
			seen[e.Class] = true
			all = append(all, fmt.Sprintf("first error of class %q: %.300s", e.Class, strings.TrimSpace(e.Text)))
		}
	}
	return all
}

// decrypted returns "decrypted and " for targets whose scheme is that of TLS.
func decrypted(target string) string {
	scheme, _, _ := strings.Cut(strings.ToLower(target), ":")
	if slices.Contains([]string{"https", "davs", "roots", "xroots"}, scheme) {
		return "decrypted and "
	}
	return ""
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
