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

// At names a step by its load: "64 clients", "64 jobs", "200 arrivals/s".
func (c *Curve) At(s *Working) string {
	if c.Open() {
		digits := 4
		for x := s.Rate; x >= 1e4; x /= 10 {
			digits++ // whole numbers are written out
		}
		return strconv.FormatFloat(s.Rate, 'g', digits, 64) + " arrivals/s"
	}
	return c.Count(s.Clients)
}

// Load names the load by which steps differ: clients, jobs, or arrivals/s.
func (c *Curve) Load() string {
	switch {
	case c.Open():
		return "arrivals/s"
	case c.OfJobs():
		return "jobs"
	}
	return "clients"
}

// Loads names the load by which steps differ, without a unit: clients, jobs or arrivals.
func (c *Curve) Loads() string { return strings.TrimSuffix(c.Load(), "/s") }

// Count writes a number of clients, or of jobs, in the closed model.
func (c *Curve) Count(n int) string {
	if c.OfJobs() {
		return say.Plural(n, "job")
	}
	return say.Plural(n, "client")
}

// Show writes a yield with its unit.
func (c *Curve) Show(x float64) string {
	if c.Measure == Rate {
		return unit.Count(x) + " " + c.Things()
	}
	return unit.Bits(x)
}

// Unit returns the unit of a yield, as facts have it.
func (c *Curve) Unit() string {
	if c.Measure == Rate {
		return c.Things()
	}
	return fact.BytesPerSecond
}

// Things are what is counted where no payload is moved: operations/s, or jobs/s where each is a program of the
// user's.
func (c *Curve) Things() string {
	if c.OfJobs() && c.Measure == Rate {
		return "jobs/s"
	}
	return "operations/s"
}

// Noun names the quantity by which steps are compared.
func (c *Curve) Noun() string {
	if c.Measure == Rate {
		return "the rate"
	}
	return "throughput"
}

// Between writes the interval of a yield: " (8.10 to 8.52)", with units where they are not those of the yield itself.
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

// Classes lists counts by class in the order of the classes: "3 timeout, 1 reset".
func Classes(by map[storage.Class]int64) string {
	var parts []string
	for class := range storage.Classes {
		if by[class] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[class], class))
		}
	}
	return strings.Join(parts, ", ")
}
