package simulated

import (
	"errors"
	"fmt"
	"time"

	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
)

// Options describe the model: sites, links and a transfer service. Rates are in bytes per second of
// payload, and 0 is no limit. Copies that run at the same time share each limit evenly, except for
// those that are slower for another reason (max-min fairness).
type Options struct {
	Sites   []Site
	Links   []Link
	Trunks  []Trunk
	Changes []Change // of capacities, in any order

	Latency   time.Duration // from a request until the service begins the copy
	Spread    float64       // share by which latencies vary evenly, 0 to 1
	Starts    float64       // copies/s that the service begins, in the order of their requests
	TokenLife time.Duration // a copy fails if it begins later than that after its request; 0: no limit
	Silent    bool          // the service does not report the bytes of running copies
	Seed      uint64        // of failures and latencies

	Report func(inject.Report) // receives the reports, called by Step; nil: no reports
	Begin  time.Time           // clock at the beginning of the model's time, for reports
	Scale  float64             // seconds of the model per second of Run; 0: 1
}

// A Site is a storage of the model.
type Site struct {
	Name     string
	In, Out  float64  // capacity
	Slots    int      // copies from and to the site at once, others wait; 0: no limit
	Most     int      // copies from and to the site at once, others fail; 0: no limit
	PerCopy  float64  // rate of one copy
	Failure  float64  // probability that the site breaks a copy, at a random point
	Outages  []Outage // in which copies with this site fail
	Checksum float64  // rate of the checksum that the site computes after it received a copy; 0: no checksum
}

// An Outage is a time in which a site is away.
type Outage struct{ From, To time.Duration }

// A Link is a directed link of the model.
type Link struct {
	From, To int // indices of sites
	Capacity float64
	PerCopy  float64 // rate of one copy
}

// A Trunk is a line that several links share.
type Trunk struct {
	Links    []int // indices
	Capacity float64
}

// A Part is a part of the model whose capacity can change.
type Part int

// Parts of the model.
const (
	SiteIn  Part = iota // Site.In
	SiteOut             // Site.Out
	OfLink              // Link.Capacity
	OfTrunk             // Trunk.Capacity
	PerCopy             // Link.PerCopy
)

// A Change sets a capacity at a time.
type Change struct {
	At       time.Duration
	Part     Part
	Index    int     // of the site, link or trunk
	Capacity float64 // bytes/s; 0: no limit
}

// Of returns a model with the sites and links of a challenge, and their capacities as far as the
// challenge states them.
func Of(c *challenge.Challenge) Options {
	o := Options{Seed: c.Seed}
	index := make(map[string]int, len(c.Sites))
	for i := range c.Sites {
		s := &c.Sites[i]
		index[s.Name] = i
		o.Sites = append(o.Sites, Site{Name: s.Name, In: float64(s.In) / 8, Out: float64(s.Out) / 8, Slots: s.InFlight})
	}
	for i := range c.Links {
		o.Links = append(o.Links, Link{From: index[c.Links[i].From], To: index[c.Links[i].To]})
	}
	return o
}

// check returns the first impossible value.
func (o *Options) check() error {
	for i, l := range o.Links {
		if min(l.From, l.To) < 0 || max(l.From, l.To) >= len(o.Sites) {
			return fmt.Errorf("link %d: unknown site", i)
		}
	}
	for i, t := range o.Trunks {
		for _, l := range t.Links {
			if l < 0 || l >= len(o.Links) {
				return fmt.Errorf("trunk %d: unknown link %d", i, l)
			}
		}
	}
	sizes := [...]int{SiteIn: len(o.Sites), SiteOut: len(o.Sites), OfLink: len(o.Links), OfTrunk: len(o.Trunks), PerCopy: len(o.Links)}
	for i, c := range o.Changes {
		if c.Part < 0 || int(c.Part) >= len(sizes) || c.Index < 0 || c.Index >= sizes[c.Part] {
			return fmt.Errorf("change %d: unknown part of the model", i)
		}
	}
	if o.Spread < 0 || o.Spread > 1 {
		return errors.New("spread must be between 0 and 1")
	}
	return nil
}
