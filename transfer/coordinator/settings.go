package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"weir/internal/db"
	"weir/transfer/fts"
	"weir/transfer/schedule"
)

// settings are what administrators have set through the API of FTS3: by name.
type settings struct {
	se     map[string]fts.SELimits
	links  map[string]fts.LinkLimits
	shares map[string]fts.Shares
	global map[string]fts.Global
}

// The kinds of settings, and the name of those that are for all.
const (
	seSetting     = "se"
	linkSetting   = "link"
	shareSetting  = "share"
	globalSetting = "global"
	forAll        = "*"
)

// openSettings reads the settings from the database, and applies them.
func (c *Coordinator) openSettings(ctx context.Context) error {
	s := settings{map[string]fts.SELimits{}, map[string]fts.LinkLimits{}, map[string]fts.Shares{}, map[string]fts.Global{}}
	_, err := db.Select(ctx, c.db, func(rows *db.Rows) (none struct{}, err error) {
		var kind, name, value string
		if err := rows.Scan(&kind, &name, &value); err != nil {
			return none, err
		}
		switch kind {
		case seSetting:
			err = add(s.se, name, value)
		case linkSetting:
			err = add(s.links, name, value)
		case shareSetting:
			err = add(s.shares, name, value)
		case globalSetting:
			err = add(s.global, name, value)
		}
		return none, err
	}, "SELECT kind, name, value FROM setting ORDER BY kind, name")
	if err != nil {
		return err
	}
	c.registry.mu.Lock()
	c.registry.settings = s
	c.applyLimitsLocked()
	c.registry.mu.Unlock()
	weights := c.conf.Shares
	for _, name := range slices.Sorted(maps.Keys(s.shares)) { // there is one
		weights = nil
		if s.shares[name].Active {
			weights = s.shares[name].Share
		}
	}
	c.queue.SetShares(weights)
	return nil
}

func add[T any](all map[string]T, name, value string) error {
	var one T
	err := json.Unmarshal([]byte(value), &one)
	all[name] = one
	return err
}

// putSetting adds or changes a setting.
func (c *Coordinator) putSetting(ctx context.Context, kind, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	err = c.db.Exec(ctx, `INSERT INTO setting (kind, name, value) VALUES (?, ?, ?)
		ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value`, kind, name, string(text))
	if err != nil {
		return err
	}
	c.wake.broadcast()
	return c.openSettings(ctx)
}

// removeSetting removes a setting, if there is one.
func (c *Coordinator) removeSetting(ctx context.Context, kind, name string) error {
	if err := c.db.Exec(ctx, "DELETE FROM setting WHERE kind = ? AND name = ?", kind, name); err != nil {
		return err
	}
	c.wake.broadcast()
	return c.openSettings(ctx)
}

// applyLimitsLocked gives the limits of storage elements and links to the scheduler.
func (c *Coordinator) applyLimitsLocked() {
	r := &c.registry
	limits := schedule.Limits{In: map[string]int{}, Out: map[string]int{}}
	elements := map[string]string{}
	for _, s := range r.sites {
		elements[s.Name] = r.elementLocked(s.Name)
		for _, name := range []string{s.Name, elements[s.Name]} {
			if one, set := r.settings.se[name]; set {
				limits.In[s.Name], limits.Out[s.Name] = one.In, one.Out
			}
		}
	}
	if links := slices.Collect(maps.Values(r.settings.links)); len(links) > 0 {
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

// fits returns how well the name of a link's end fits a site: 0 not at all, 1 as any other.
func fits(name, site, element string, weight int) int {
	switch name {
	case site, element:
		return 1 + 2*weight
	case forAll:
		return 1
	}
	return 0
}

// setDefaults fills in what a submission leaves to the service and an administrator has set.
func (c *Coordinator) setDefaults(s *fts.Submission) {
	c.registry.mu.Lock()
	g := c.registry.settings.global[forAll]
	c.registry.mu.Unlock()
	s.Retry = cmp.Or(s.Retry, g.Retry)
	s.InQueue = cmp.Or(s.InQueue, time.Duration(g.InQueue)*time.Hour)
	s.Timeout = cmp.Or(s.Timeout, time.Duration(g.Timeout)*time.Second)
}
