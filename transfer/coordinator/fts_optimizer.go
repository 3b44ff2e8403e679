package coordinator

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"weir/transfer"
	"weir/transfer/fts"
)

// mostEvolution is how many decisions are listed, as in FTS.
const mostEvolution = 50

// optimizerTable returns the routes about the limits of links that the scheduler has chosen, and about ended jobs.
func (c *Coordinator) optimizerTable() []ftsRoute {
	one := func(pattern string, text doc, out reflect.Type, f func(*call) (int, any, error)) ftsRoute {
		return ftsRoute{operation{pattern: pattern, role: mayRead, about: text, out: out}, func(q *call) (int, any, error) {
			if err := q.need(mayRead); err != nil {
				return 0, nil, err
			}
			return f(q)
		}}
	}
	decisions := typeOf[[]fts.OptimizerAnswer]()
	return []ftsRoute{
		one("GET /optimizer", about("Whether the number of copies of a link is chosen: true"), nil, func(*call) (int, any, error) {
			return http.StatusOK, true, nil
		}),
		one("GET /optimizer/current", about("Number of copies at once of each link", "source_se", "dest_se"), decisions, c.ftsOptimizer),
		one("GET /optimizer/evolution", about("The latest decisions about links, the newest first", "source_se", "dest_se"), decisions,
			c.ftsEvolution),
		one("GET /archive", about("Where ended jobs are"), nil, func(*call) (int, any, error) {
			return http.StatusOK, map[string]any{"_links": map[string]any{
				"curies":          []any{map[string]string{"name": "fts", "href": "https://gitlab.cern.ch/fts/fts3"}},
				"fts:archivedJob": map[string]any{"href": "/archive/{id}", "title": "Archived job information", "templated": true},
			}}, nil
		}),
		one("GET /archive/{ids}", about("Show a job that has ended, with its files"), typeOf[fts.JobAnswer](), c.ftsArchived),
	}
}

// chosenLinkLocked reports whether a link is among those that the caller asks for.
func (c *Coordinator) chosenLinkLocked(q *call, a *fts.OptimizerAnswer, source, dest string) bool {
	a.Source, a.Dest = c.registry.elementLocked(source), c.registry.elementLocked(dest)
	return chosen(q.param("source_se"), a.Source, source) && chosen(q.param("dest_se"), a.Dest, dest)
}

// chosen reports whether a caller who asks for a storage element, or for any (""), asks for this one.
func chosen(asked, element, site string) bool {
	se, _ := fts.ReadSE(asked)
	return asked == "" || asked == site || se != "" && se == element
}

func (c *Coordinator) ftsOptimizer(q *call) (int, any, error) {
	now := fts.TimeText(c.now())
	list := []fts.OptimizerAnswer{}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	for _, l := range c.registry.net.Links() {
		one := fts.OptimizerAnswer{Time: now, Active: l.Limit, Now: l.Active, EMA: l.Rate, Throughput: l.Rate,
			Success: 100 * l.Success, Why: l.Why}
		if c.chosenLinkLocked(q, &one, l.Source, l.Dest) {
			list = append(list, one)
		}
	}
	return http.StatusOK, list, nil
}

func (c *Coordinator) ftsEvolution(q *call) (int, any, error) {
	c.changes.mu.Lock()
	changes := slices.Clone(c.changes.all)
	c.changes.mu.Unlock()
	list := []fts.OptimizerAnswer{}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	active := map[[2]string]int{}
	for _, l := range c.registry.net.Links() {
		active[[2]string{l.Source, l.Dest}] = l.Active
	}
	for _, l := range slices.Backward(changes) {
		one := evolution(l)
		if c.chosenLinkLocked(q, &one, l.Source, l.Dest) && len(list) < mostEvolution {
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

// ftsArchived answers with a job that has ended: weir keeps it where it was.
func (c *Coordinator) ftsArchived(q *call) (int, any, error) {
	j, err := c.ftsJob(q)
	if err != nil {
		return 0, nil, err
	}
	if fts.Open(fts.State(j)) {
		return 0, nil, fts.Refuse(http.StatusNotFound, "No job with the id %q has been found in the archive: it has not ended", j.ID)
	}
	files, err := c.queue.JobFiles(q.Context(), j)
	if err != nil {
		return 0, nil, err
	}
	out := maps.Clone(fts.Job(j))
	out["files"] = ftsRows(j, files)
	return http.StatusOK, out, nil
}
