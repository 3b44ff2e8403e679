package rest

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"

	"weir/transfer/access"
	"weir/transfer/api"
	"weir/transfer/dispatch"
	"weir/transfer/fts"
)

// mostSettings is the largest number of settings of a kind.
const mostSettings = 1000

// configured returns a handler that requires the administrator.
func configured(f func(*api.Call) (int, any, error)) func(*api.Call) (int, any, error) {
	return func(q *api.Call) (int, any, error) {
		if err := q.Need(access.MayAdmin); err != nil {
			return 0, nil, err
		}
		return f(q)
	}
}

// table returns the routes of the configuration.
func (c *Configuration) table() []route {
	one := func(pattern string, text api.Doc, f func(*api.Call) (int, any, error)) route {
		return route{api.Operation{Pattern: pattern, Role: access.MayAdmin, About: text}, configured(f)}
	}
	return []route{
		one("GET /config/se", api.About("Limits of storage elements", "se"), c.getSE),
		one("POST /config/se", api.About("Limit the copies of storage elements"), c.setSE),
		one("DELETE /config/se", api.About("Remove the limits of a storage element", "se"), c.dropSE),
		one("GET /config/links", api.About("Limits of links"), c.getLinks),
		one("GET /config/links/{name}", api.About("Limit of a link"), c.getLink),
		one("POST /config/links", api.About("Limit the copies of a link"), c.setLink),
		one("DELETE /config/links/{name}", api.About("Remove the limit of a link"), func(q *api.Call) (int, any, error) {
			return http.StatusNoContent, nil, c.removeSetting(q.Context(), dispatch.LinkSetting, q.PathValue("name"))
		}),
		one("GET /config/global", api.About("Defaults of jobs"), c.getGlobal),
		one("POST /config/global", api.About("Set defaults of jobs"), c.setGlobal),
		one("GET /config/activity_shares", api.About("Weights of activities"), c.getShares),
		one("POST /config/activity_shares", api.About("Set the weights of activities"), c.setShares),
		one("GET /config/activity_shares/{vo}", api.About("Weights of activities"), c.getVOShares),
		one("DELETE /config/activity_shares/{vo}", api.About("Remove the weights of activities"), c.dropShares),
	}
}

func (c *Configuration) getSE(q *api.Call) (int, any, error) {
	out := map[string]any{}
	for name, s := range c.sites.Settings().SE {
		if chosen(q.Param("se"), name, name) {
			out[name] = map[string]any{"se_info": s.Answer()}
		}
	}
	return http.StatusOK, out, nil
}

func (c *Configuration) setSE(q *api.Call) (int, any, error) {
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
		if set[name], err = fts.ReadSELimits(one.Info, c.sites.Settings().SE[name]); err != nil {
			return 0, nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if err := c.putSetting(q.Context(), dispatch.SESetting, name, set[name]); err != nil {
			return 0, nil, err
		}
		c.log.Info("storage element limited", "storage", name, "in", set[name].In, "out", set[name].Out, "by", q.Name)
	}
	name := slices.Min(slices.Collect(maps.Keys(set)))
	return http.StatusOK, []any{set[name].Answer(), nil}, nil
}

func (c *Configuration) dropSE(q *api.Call) (int, any, error) {
	if q.Param("se") == "" {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "Missing storage (se)")
	}
	name, err := c.storageOf(q.Param("se"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, c.removeSetting(q.Context(), dispatch.SESetting, name)
}

func (c *Configuration) getLinks(*api.Call) (int, any, error) {
	out, links := []any{}, c.sites.Settings().Links
	for _, name := range slices.Sorted(maps.Keys(links)) {
		out = append(out, links[name].Answer(name))
	}
	return http.StatusOK, out, nil
}

func (c *Configuration) getLink(q *api.Call) (int, any, error) {
	name := q.PathValue("name")
	l, known := c.sites.Settings().Links[name]
	if !known {
		return 0, nil, fts.Refuse(http.StatusNotFound, "Link %.255s does not exist", name)
	}
	return http.StatusOK, l.Answer(name), nil
}

func (c *Configuration) setLink(q *api.Call) (int, any, error) {
	in, err := input(q)
	if err != nil {
		return 0, nil, err
	}
	name, l, err := fts.ReadLinkLimits(in)
	if err != nil {
		return 0, nil, err
	}
	for _, end := range []*string{&l.Source, &l.Dest} {
		if *end == dispatch.ForAll {
			continue
		}
		if *end, err = c.storageOf(*end); err != nil {
			return 0, nil, err
		}
	}
	for other, one := range c.sites.Settings().Links {
		if other != name && one.Source == l.Source && one.Dest == l.Dest {
			return 0, nil, fts.Refuse(http.StatusConflict, "the link %.255s has this source and destination", other)
		}
	}
	if len(c.sites.Settings().Links) >= mostSettings {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "there are %d links: remove some", mostSettings)
	}
	c.log.Info("link limited", "link", name, "source", l.Source, "dest", l.Dest, "min", l.Min, "max", l.Max, "by", q.Name)
	return http.StatusCreated, l.Answer(name), c.putSetting(q.Context(), dispatch.LinkSetting, name, l)
}

func (c *Configuration) getGlobal(*api.Call) (int, any, error) {
	return http.StatusOK, map[string]any{dispatch.ForAll: c.sites.Settings().Global[dispatch.ForAll].Answer()}, nil
}

func (c *Configuration) setGlobal(q *api.Call) (int, any, error) {
	in, err := input(q)
	if err != nil {
		return 0, nil, err
	}
	g, err := fts.ReadGlobal(in, c.sites.Settings().Global[dispatch.ForAll])
	if err != nil {
		return 0, nil, err
	}
	if err := c.putSetting(q.Context(), dispatch.GlobalSetting, dispatch.ForAll, g); err != nil {
		return 0, nil, err
	}
	c.log.Info("defaults of jobs set", "retry", g.Retry, "hours_in_queue", g.InQueue, "timeout", g.Timeout, "by", q.Name)
	return c.getGlobal(q)
}

// sharesVO is the virtual organization under which the weights of activities are listed.
func (c *Configuration) sharesVO() string { return c.access.VOsOf(access.Caller{})[0] }

func (c *Configuration) getShares(*api.Call) (int, any, error) {
	vo := c.sharesVO()
	s, set := c.sites.Settings().Shares[vo]
	switch {
	case set:
	case len(c.shares) > 0:
		s = fts.Shares{Share: c.shares, Active: true}
	default:
		return http.StatusOK, map[string]any{}, nil
	}
	return http.StatusOK, map[string]any{vo: s}, nil
}

func (c *Configuration) getVOShares(q *api.Call) (int, any, error) {
	status, all, err := c.getShares(q)
	list, _ := all.(map[string]any)
	one, known := list[q.PathValue("vo")]
	if err == nil && !known {
		err = fts.Refuse(http.StatusNotFound, "No activity shares for %.100s", q.PathValue("vo"))
	}
	return status, one, err
}

func (c *Configuration) setShares(q *api.Call) (int, any, error) {
	vo, s, err := fts.ReadShares(q.Body)
	if err != nil {
		return 0, nil, err
	}
	if vo != c.sharesVO() {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "vo: activities are shared among all virtual organizations: use %s", c.sharesVO())
	}
	c.log.Info("weights of activities set", "by", q.Name)
	out := map[string]any{"vo": vo, "activity_share": s.Share, "active": s.Active}
	return http.StatusOK, out, c.putSetting(q.Context(), dispatch.ShareSetting, vo, s)
}

func (c *Configuration) dropShares(q *api.Call) (int, any, error) {
	vo := q.PathValue("vo")
	if _, set := c.sites.Settings().Shares[vo]; !set {
		why := errors.New("")
		if vo == c.sharesVO() && len(c.shares) > 0 {
			why = errors.New(": those of the configuration stay")
		}
		return 0, nil, fts.Refuse(http.StatusNotFound, "No activity shares for %.100s were set%s", vo, why)
	}
	return http.StatusNoContent, nil, c.removeSetting(q.Context(), dispatch.ShareSetting, vo)
}
