package analysis

import (
	"fmt"
	"strings"

	"weir/analysis/stats"
	"weir/internal/say"
	"weir/internal/unit"
)

// A Minimum is the data that the best step of a run must have for the result to
// be valid.
type Minimum struct {
	Operations int64   // that ended while it was held
	EachClient float64 // of these, for each active client of the closed model
	Batches    int     // means of the throughput, or of the rate, that its interval is made of
	HalfWidth  float64 // of that 95% interval, as a share of the mean: at most
}

// LeastData returns the minimum that checks are made with. Twenty operations
// are the fewest with which a 95% interval of their median is not the whole
// range of them but for a few; with fewer than three for each client the
// operations that the hold cuts at its ends weigh as much as the others.
func LeastData() Minimum {
	return Minimum{Operations: 20, EachClient: 3, Batches: stats.LeastBatches, HalfWidth: 0.25}
}

// checkEnough asks whether there is enough data to rely on: at the best step,
// which the result is, too little warns.
func (d *data) checkEnough(f *Findings, best int) Check {
	c := Check{Name: "enough data", Status: OK}
	switch {
	case d.transfers != nil:
		c.Status, c.Detail = Skipped, "a record of transfers says what became of each file"
		return c
	case best < 0:
		c.Status, c.Detail = Skipped, "no step gave a result"
		return c
	}
	s := &f.Curve[best]
	if lacks := d.lacks(f, s); len(lacks) > 0 {
		c.Detail = fmt.Sprintf("the best step (%s, held %s) has %s", f.at(s), unit.Seconds(s.Hold), strings.Join(lacks, ", "))
		c.worsen(Warn, "another run may give another result: hold longer (load.hold)")
		return c
	}
	c.Detail = fmt.Sprintf("the best step has %s and %s", say.Plural(int(s.Done), "operation"), say.Plural(s.Batches, "batch mean"))
	var others []string
	for i := range f.Curve {
		if len(d.few(&f.Curve[i])) > 0 {
			others = append(others, f.at(&f.Curve[i]))
		}
	}
	if len(others) > 0 {
		c.note("how far the best step differs from others that have too little data: "+strings.Join(head(others, 4), ", "), "hold longer (load.hold)")
	}
	return c
}

// lacks says what the best step has less of than LeastData asks for.
func (d *data) lacks(f *Findings, s *Step) []string {
	all := d.few(s)
	mean, _, _ := f.yield(s)
	low, high := f.bounds(s)
	if half, most := ratio(high-low, 2*mean), LeastData().HalfWidth; half > most {
		all = append(all, fmt.Sprintf("an interval of +-%.0f%% (%.0f%% at most)", 100*half, 100*most))
	}
	return all
}

// few says what a step has too few of.
func (d *data) few(s *Step) (all []string) {
	least := LeastData()
	each := ratio(float64(s.Done), s.ActiveClients)
	switch {
	case s.Done < least.Operations:
		all = append(all, fmt.Sprintf("%s (%d are needed)", say.Plural(int(s.Done), "operation"), least.Operations))
	case d.plan.Model != "open" && !s.bounded && each < least.EachClient:
		all = append(all, fmt.Sprintf("%.2g operations a client (%g are needed)", each, least.EachClient))
	}
	if s.Batches < least.Batches {
		all = append(all, fmt.Sprintf("%s (%d are needed)", say.Plural(s.Batches, "batch mean"), least.Batches))
	}
	return all
}
