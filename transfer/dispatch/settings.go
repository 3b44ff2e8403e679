package dispatch

import (
	"maps"
	"slices"

	"weir/transfer/fts"
	"weir/transfer/schedule"
)

// Settings are the settings that were made through the API of FTS3, by name.
type Settings struct {
	SE     map[string]fts.SELimits
	Links  map[string]fts.LinkLimits
	Shares map[string]fts.Shares
	Global map[string]fts.Global
}

// The kinds of settings, and the name of the settings for all elements.
const (
	SESetting     = "se"
	LinkSetting   = "link"
	ShareSetting  = "share"
	GlobalSetting = "global"
	ForAll        = "*"
)

// SetSettings replaces all settings.
func (f *Sites) SetSettings(s Settings) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settings = s
	r.applyLimitsLocked()
}

// Settings returns the settings. Callers do not change them.
func (f *Sites) Settings() Settings {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settings
}

// applyLimitsLocked gives the limits of storage elements and links to the scheduler.
func (r *registry) applyLimitsLocked() {
	limits := schedule.Limits{In: map[string]int{}, Out: map[string]int{}}
	elements := map[string]string{}
	for _, s := range r.sites {
		elements[s.Name] = r.elementLocked(s.Name)
		for _, name := range []string{s.Name, elements[s.Name]} {
			if one, set := r.settings.SE[name]; set {
				limits.In[s.Name], limits.Out[s.Name] = one.In, one.Out
			}
		}
	}
	if links := slices.Collect(maps.Values(r.settings.Links)); len(links) > 0 {
		limits.Link = func(from, to string) (least, most int) {
			best := 0
			for _, l := range links {
				if rank := fits(l.Source, from, elements[from], 2) * fits(l.Dest, to, elements[to], 1); rank > best {
					best, least, most = rank, l.Min, l.Max
				}
			}
			return least, most
		}
	}
	r.net.Limit(limits)
}

// fits returns how well the name of a link's end matches a site: 0 is no match, 1 matches any site.
func fits(name, site, element string, weight int) int {
	switch name {
	case site, element:
		return 1 + 2*weight
	case ForAll:
		return 1
	}
	return 0
}
