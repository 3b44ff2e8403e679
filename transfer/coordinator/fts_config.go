package coordinator

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"

	"weir/transfer/fts"
)

// mostSettings is the largest number of settings of a kind.
const mostSettings = 1000

func (c *Coordinator) settings() settings {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	return c.registry.settings
}

// configured returns a handler that requires the administrator.
func configured(f func(*call) (int, any, error)) func(*call) (int, any, error) {
	return func(q *call) (int, any, error) {
		if err := q.need(mayAdmin); err != nil {
			return 0, nil, err
		}
		return f(q)
	}
}

// configTable returns the routes of the configuration.
func (c *Coordinator) configTable() []ftsRoute {
	one := func(pattern string, text doc, f func(*call) (int, any, error)) ftsRoute {
		return ftsRoute{operation{pattern: pattern, role: mayAdmin, about: text}, configured(f)}
	}
	return []ftsRoute{
		one("GET /config/se", about("Limits of storage elements", "se"), c.ftsGetSE),
		one("POST /config/se", about("Limit the copies of storage elements"), c.ftsSetSE),
		one("DELETE /config/se", about("Remove the limits of a storage element", "se"), c.ftsDropSE),
		one("GET /config/links", about("Limits of links"), c.ftsGetLinks),
		one("GET /config/links/{name}", about("Limit of a link"), c.ftsGetLink),
		one("POST /config/links", about("Limit the copies of a link"), c.ftsSetLink),
		one("DELETE /config/links/{name}", about("Remove the limit of a link"), func(q *call) (int, any, error) {
			return http.StatusNoContent, nil, c.removeSetting(q.Context(), linkSetting, q.PathValue("name"))
		}),
		one("GET /config/global", about("Defaults of jobs"), c.ftsGetGlobal),
		one("POST /config/global", about("Set defaults of jobs"), c.ftsSetGlobal),
		one("GET /config/activity_shares", about("Weights of activities"), c.ftsGetShares),
		one("POST /config/activity_shares", about("Set the weights of activities"), c.ftsSetShares),
		one("GET /config/activity_shares/{vo}", about("Weights of activities"), c.ftsGetVOShares),
		one("DELETE /config/activity_shares/{vo}", about("Remove the weights of activities"), c.ftsDropShares),
	}
}

func (c *Coordinator) ftsGetSE(q *call) (int, any, error) {
	out := map[string]any{}
	for name, s := range c.settings().se {
		if chosen(q.param("se"), name, name) {
			out[name] = map[string]any{"se_info": s.Answer()}
		}
	}
	return http.StatusOK, out, nil
}

func (c *Coordinator) ftsSetSE(q *call) (int, any, error) {
	var in map[string]struct {
		Info       map[string]any `json:"se_info"`
		Operations map[string]any `json:"operations"`
	}
	if err := json.NewDecoder(q.Body).Decode(&in); err != nil || len(in) == 0 || len(in) > mostSettings {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "Malformed configuration")
	}
	set := map[string]fts.SELimits{}
	for storage, one := range in {
		name, err := c.storageOf(storage)
		if err != nil {
			return 0, nil, err
		}
		if len(one.Operations) > 0 {
			return 0, nil, fts.Refuse(http.StatusBadRequest, "operations: weir asks a tape endpoint in bulk, and limits nothing else by itself")
		}
		if set[name], err = fts.ReadSELimits(one.Info, c.settings().se[name]); err != nil {
			return 0, nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if err := c.putSetting(q.Context(), seSetting, name, set[name]); err != nil {
			return 0, nil, err
		}
		c.log.Info("storage element limited", "storage", name, "in", set[name].In, "out", set[name].Out, "by", q.name)
	}
	name := slices.Min(slices.Collect(maps.Keys(set)))
	return http.StatusOK, []any{set[name].Answer(), nil}, nil
}

func (c *Coordinator) ftsDropSE(q *call) (int, any, error) {
	if q.param("se") == "" {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "Missing storage (se)")
	}
	name, err := c.storageOf(q.param("se"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, c.removeSetting(q.Context(), seSetting, name)
}

func (c *Coordinator) ftsGetLinks(*call) (int, any, error) {
	out, links := []any{}, c.settings().links
	for _, name := range slices.Sorted(maps.Keys(links)) {
		out = append(out, links[name].Answer(name))
	}
	return http.StatusOK, out, nil
}

func (c *Coordinator) ftsGetLink(q *call) (int, any, error) {
	name := q.PathValue("name")
	l, known := c.settings().links[name]
	if !known {
		return 0, nil, fts.Refuse(http.StatusNotFound, "Link %.255s does not exist", name)
	}
	return http.StatusOK, l.Answer(name), nil
}

func (c *Coordinator) ftsSetLink(q *call) (int, any, error) {
	in, err := ftsInput(q)
	if err != nil {
		return 0, nil, err
	}
	name, l, err := fts.ReadLinkLimits(in)
	if err != nil {
		return 0, nil, err
	}
	for _, end := range []*string{&l.Source, &l.Dest} {
		if *end == forAll {
			continue
		}
		if *end, err = c.storageOf(*end); err != nil {
			return 0, nil, err
		}
	}
	for other, one := range c.settings().links {
		if other != name && one.Source == l.Source && one.Dest == l.Dest {
			return 0, nil, fts.Refuse(http.StatusConflict, "the link %.255s has this source and destination", other)
		}
	}
	if len(c.settings().links) >= mostSettings {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "there are %d links: remove some", mostSettings)
	}
	c.log.Info("link limited", "link", name, "source", l.Source, "dest", l.Dest, "min", l.Min, "max", l.Max, "by", q.name)
	return http.StatusCreated, l.Answer(name), c.putSetting(q.Context(), linkSetting, name, l)
}

func (c *Coordinator) ftsGetGlobal(*call) (int, any, error) {
	return http.StatusOK, map[string]any{forAll: c.settings().global[forAll].Answer()}, nil
}

func (c *Coordinator) ftsSetGlobal(q *call) (int, any, error) {
	in, err := ftsInput(q)
	if err != nil {
		return 0, nil, err
	}
	g, err := fts.ReadGlobal(in, c.settings().global[forAll])
	if err != nil {
		return 0, nil, err
	}
	if err := c.putSetting(q.Context(), globalSetting, forAll, g); err != nil {
		return 0, nil, err
	}
	c.log.Info("defaults of jobs set", "retry", g.Retry, "hours_in_queue", g.InQueue, "timeout", g.Timeout, "by", q.name)
	return c.ftsGetGlobal(q)
}

// sharesVO is the virtual organization that the weights of activities are listed for.
func (c *Coordinator) sharesVO() string { return c.vosOf(caller{})[0] }

func (c *Coordinator) ftsGetShares(*call) (int, any, error) {
	vo := c.sharesVO()
	s, set := c.settings().shares[vo]
	switch {
	case set:
	case len(c.conf.Shares) > 0:
		s = fts.Shares{Share: c.conf.Shares, Active: true}
	default:
		return http.StatusOK, map[string]any{}, nil
	}
	return http.StatusOK, map[string]any{vo: s}, nil
}

func (c *Coordinator) ftsGetVOShares(q *call) (int, any, error) {
	status, all, err := c.ftsGetShares(q)
	list, _ := all.(map[string]any)
	one, known := list[q.PathValue("vo")]
	if err == nil && !known {
		err = fts.Refuse(http.StatusNotFound, "No activity shares for %.100s", q.PathValue("vo"))
	}
	return status, one, err
}

func (c *Coordinator) ftsSetShares(q *call) (int, any, error) {
	vo, s, err := fts.ReadShares(q.Body)
	if err != nil {
		return 0, nil, err
	}
	if vo != c.sharesVO() {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "vo: activities are shared among all virtual organizations: use %s", c.sharesVO())
	}
	c.log.Info("weights of activities set", "by", q.name)
	out := map[string]any{"vo": vo, "activity_share": s.Share, "active": s.Active}
	return http.StatusOK, out, c.putSetting(q.Context(), shareSetting, vo, s)
}

func (c *Coordinator) ftsDropShares(q *call) (int, any, error) {
	vo := q.PathValue("vo")
	if _, set := c.settings().shares[vo]; !set {
		why := errors.New("")
		if vo == c.sharesVO() && len(c.conf.Shares) > 0 {
			why = errors.New(": those of the configuration stay")
		}
		return 0, nil, fts.Refuse(http.StatusNotFound, "No activity shares for %.100s were set%s", vo, why)
	}
	return http.StatusNoContent, nil, c.removeSetting(q.Context(), shareSetting, vo)
}
