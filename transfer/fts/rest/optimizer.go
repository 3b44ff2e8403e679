package rest

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/api"
	"weir/transfer/fts"
)

// mostEvolution is the number of decisions that are listed, as in FTS.
const mostEvolution = 50

// optimizerTable returns the routes about the limits of links that the scheduler has chosen, and about ended jobs.
func (c *API) optimizerTable() []route {
	one := func(pattern string, text api.Doc, out reflect.Type, f func(*api.Call) (int, any, error)) route {
		return route{api.Operation{Pattern: pattern, Role: access.MayRead, About: text, Out: out}, func(q *api.Call) (int, any, error) {
			if err := q.Need(access.MayRead); err != nil {
				return 0, nil, err
			}
			return f(q)
		}}
	}
	decisions := api.TypeOf[[]fts.OptimizerAnswer]()
	return []route{
		one("GET /optimizer", api.About("Whether the number of copies of a link is chosen: true"), nil, func(*api.Call) (int, any, error) {
			return http.StatusOK, true, nil
		}),
		one("GET /optimizer/current", api.About("Number of copies at once of each link", "source_se", "dest_se"), decisions, c.current),
		one("GET /optimizer/evolution", api.About("The latest decisions about links, the newest first", "source_se", "dest_se"), decisions,
			c.evolution),
		one("GET /archive", api.About("Where ended jobs are"), nil, func(*api.Call) (int, any, error) {
			return http.StatusOK, map[string]any{"_links": map[string]any{
				"curies":          []any{map[string]string{"name": "fts", "href": "https://gitlab.cern.ch/fts/fts3"}},
				"fts:archivedJob": map[string]any{"href": "/archive/{id}", "title": "Archived job information", "templated": true},
			}}, nil
		}),
		one("GET /archive/{ids}", api.About("Show a job that has ended, with its files"), api.TypeOf[fts.JobAnswer](), c.archived),
	}
}

// chosenLink reports whether a link is among the requested links.
func (c *API) chosenLink(q *api.Call, a *fts.OptimizerAnswer, source, dest string) bool {
	a.Source, a.Dest = c.sites.Element(source), c.sites.Element(dest)
	return chosen(q.Param("source_se"), a.Source, source) && chosen(q.Param("dest_se"), a.Dest, dest)
}

// chosen reports whether the storage element in a request, or "" for any, is this storage element.
func chosen(asked, element, site string) bool {
	se, _ := fts.ReadSE(asked)
	return asked == "" || asked == site || se != "" && se == element
}

func (c *API) current(q *api.Call) (int, any, error) {
	now := fts.TimeText(c.now())
	list := []fts.OptimizerAnswer{}
	for _, l := range c.leases.Links() {
		one := fts.OptimizerAnswer{Time: now, Active: l.Limit, Now: l.Active, EMA: l.Rate, Throughput: l.Rate,
			Success: 100 * l.Success, Why: l.Why}
		if c.chosenLink(q, &one, l.Source, l.Dest) {
			list = append(list, one)
		}
	}
	return http.StatusOK, list, nil
}

func (c *API) evolution(q *api.Call) (int, any, error) {
	changes := c.changes.List()
	list := []fts.OptimizerAnswer{}
	active := map[[2]string]int{}
	for _, l := range c.leases.Links() {
		active[[2]string{l.Source, l.Dest}] = l.Active
	}
	for _, l := range slices.Backward(changes) {
		one := evolution(l)
		if c.chosenLink(q, &one, l.Source, l.Dest) && len(list) < mostEvolution {
			one.Now = active[[2]string{l.Source, l.Dest}]
			list = append(list, one)
		}
	}
	return http.StatusOK, list, nil
}

func evolution(l transfer.LimitChange) fts.OptimizerAnswer {
	return fts.OptimizerAnswer{Time: l.Time.UTC().Format(time.RFC3339)[:19], Active: l.Limit, Diff: l.Limit - l.Before, EMA: l.Rate,
		Throughput: l.Rate, Success: 100 * l.Success, Why: l.Why}
}

// archived returns a job that has ended. weir does not move ended jobs to an archive.
func (c *API) archived(q *api.Call) (int, any, error) {
	j, err := c.job(q)
	if err != nil {
		return 0, nil, err
	}
	if fts.Open(fts.State(j)) {
		return 0, nil, fts.Refuse(http.StatusNotFound, "No job with the id %q has been found in the archive: it has not ended", j.ID)
	}
	files, err := c.queue.Read.JobFiles(q.Context(), j)
	if err != nil {
		return 0, nil, err
	}
	out := maps.Clone(fts.Job(j))
	out["files"] = rows(j, files)
	return http.StatusOK, out, nil
}
