package steps

import (
	"fmt"
	"strconv"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis/fact"
	"weir/storage"
)

// At returns the load of a step as text: "64 clients", "64 jobs", "200 arrivals/s".
func (c *Curve) At(s *Working) string {
	if c.Open() {
		digits := 4
		for x := s.Rate; x >= 1e4; x /= 10 {
			digits++ // whole numbers are written in full
		}
		return strconv.FormatFloat(s.Rate, 'g', digits, 64) + " arrivals/s"
	}
	return c.Count(s.Clients)
}

// Load returns the unit of the load by which steps differ: clients, jobs, or arrivals/s.
func (c *Curve) Load() string {
	switch {
	case c.Open():
		return "arrivals/s"
	case c.OfJobs():
		return "jobs"
	}
	return "clients"
}

// Loads returns the unit of the load without "/s": clients, jobs or arrivals.
func (c *Curve) Loads() string { return strings.TrimSuffix(c.Load(), "/s") }

// Count returns a number of clients, or of jobs, in the closed model as text.
func (c *Curve) Count(n int) string {
	if c.OfJobs() {
		return say.Plural(n, "job")
	}
	return say.Plural(n, "client")
}

// Show returns a yield with its unit.
func (c *Curve) Show(x float64) string {
	if c.Measure == Rate {
		return unit.Count(x) + " " + c.Things()
	}
	return unit.Bits(x)
}

// Unit returns the unit of a yield, as used in facts.
func (c *Curve) Unit() string {
	if c.Measure == Rate {
		return c.Things()
	}
	return fact.BytesPerSecond
}

// Things names the counted events if no payload is moved: operations/s, or jobs/s if each job is a
// program of the user.
func (c *Curve) Things() string {
	if c.OfJobs() && c.Measure == Rate {
		return "jobs/s"
	}
	return "operations/s"
}

// Noun returns the name of the quantity by which steps are compared.
func (c *Curve) Noun() string {
	if c.Measure == Rate {
		return "the rate"
	}
	return "throughput"
}

// Between returns the interval of a yield as text: " (8.10 to 8.52)", with units if they differ
// from the unit of the yield itself.
func (c *Curve) Between(s *Working) string {
	mean, low, high := c.Yield(s)
	if low == nil || high == nil {
		return ""
	}
	from, to := c.Show(*low), c.Show(*high)
	_, unit, _ := strings.Cut(c.Show(mean), " ")
	if strings.HasSuffix(from, " "+unit) && strings.HasSuffix(to, " "+unit) {
		from, to = strings.TrimSuffix(from, " "+unit), strings.TrimSuffix(to, " "+unit)
	}
	return fmt.Sprintf(" (%s to %s)", from, to)
}

// Classes returns counts by class in the order of the classes: "3 timeout, 1 reset".
func Classes(by map[storage.Class]int64) string {
	var parts []string
	for class := range storage.Classes {
		if by[class] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[class], class))
		}
	}
	return strings.Join(parts, ", ")
}
