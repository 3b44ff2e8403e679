package steps

import (
	"cmp"
	"slices"

	"weir/internal/stats"
	"weir/link"
	"weir/loadtest/measure"
)

// A SiteFigure has the figures of the jobs at one site, at the far end of one of several links, in
// a step.
type SiteFigure struct {
	Site       string  `json:"site"`              // name of its link
	Clients    int     `json:"clients,omitempty"` // its share of the step's clients in the plan; 0: link not in the plan
	Throughput float64 `json:"throughput_bytes_per_second"`
	JobFigures
}

// addSites adds the counts of the jobs at each site to the second, or to the step.
func addSites[T any](to map[string]*T, iv *measure.Interval, add func(*T, *measure.Interval)) map[string]*T {
	for name, s := range iv.Sites {
		if to == nil {
			to = map[string]*T{}
		}
		if to[name] == nil {
			to[name] = new(T)
		}
		part := s.Interval(iv)
		add(to[name], &part)
	}
	return to
}

// heldSites adds to each site of a step its part of s, a second of the step's measurement time. A
// site without a report in s was idle.
func (t *Total) heldSites(s *Second) {
	for name, site := range t.sites {
		x := Second{}
		if there := s.sites[name]; there != nil {
			x = *there
		}
		x.Start, x.Seconds = s.Start, s.Seconds
		site.Seconds = append(site.Seconds, x)
		site.Span += s.Seconds
	}
}

// mostDealt limits the computing time for a damaged plan: the number of its clients times its
// links.
const mostDealt = 200_000

// sites returns the figures of each site for the step s, summed in t, in the order of the plan's
// links.
func (d *Run) sites(s *Working, t *Total) []SiteFigure {
	if len(t.sites) == 0 {
		return nil
	}
	var dealt []int
	sites := d.Plan.Links.Sites()
	if s.Clients <= mostDealt/max(len(sites), 1) {
		dealt = link.Deal(s.Clients, sites)
	}
	place := map[string]int{}
	for i, l := range sites {
		place[l.Name] = i
	}
	var all []SiteFigure
	for name, sum := range t.sites {
		f := SiteFigure{Site: name, Throughput: stats.Ratio(float64(sum.Moved), sum.Span)}
		i, planned := place[name]
		if !planned {
			place[name] = len(sites) // after the others
		} else if dealt != nil {
			f.Clients = dealt[i]
		}
		f.jobs(sum)
		d.complete(&f.JobFigures)
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b SiteFigure) int {
		return cmp.Or(cmp.Compare(place[a.Site], place[b.Site]), cmp.Compare(a.Site, b.Site))
	})
	return all
}
