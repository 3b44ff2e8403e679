package queue

import (
	"context"
	"slices"

	"weir/internal/db"
)

// CancelFiles cancels the files that have not ended, each individually, with the reason why.
// Waiting files end at once; files that are being copied end as soon as their mover reports: Renew
// returns them as attempts to abort.
func (q *Queue) CancelFiles(ctx context.Context, items []int64, why string) error {
	why = text(why, 1000)
	if why == "" {
		why = "it was cancelled"
	}
	return q.editFiles(ctx, items, func(e *edit, files []*file) error {
		var active []int64
		for _, f := range files {
			switch {
			case !e.requests[f.request].open():
			case f.state == leased:
				active = append(active, f.id)
			case f.state == ready, f.state == resting, f.state == staging, f.state == archiving, f.state == held:
				f.fail(dropped, f.fault, why, e.now)
			}
		}
		if len(active) == 0 {
			return nil
		}
		_, err := e.tx.Exec("UPDATE lease SET stop = ? WHERE stop = '' AND item {{in}}", why, active)
		return err
	})
}

// OpenJobIDs returns the ids of the jobs that have not ended and are not being cancelled.
func (q *Reader) OpenJobIDs(ctx context.Context) ([]string, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) ([]string, error) {
		all, err := db.Column[string](tx, "SELECT job FROM request WHERE ended = 0 AND job <> '' AND stop = ''")
		slices.Sort(all)
		return slices.Compact(all), err
	})
}

// Needing returns the files that have not ended and go to one of the sites, or have no other
// source, and their jobs.
func (q *Reader) Needing(ctx context.Context, sites []string) (items []int64, jobs []string, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		items, jobs = nil, nil
		open, err := db.All(tx, scanRequest, "SELECT "+requestColumns+" FROM request WHERE ended = 0 AND stop = '' ORDER BY id")
		if err != nil {
			return err
		}
		groups, err := db.All(tx, scanSourceGroup, "SELECT l.id, l.request, l.sites, l.ready FROM request r CROSS JOIN lane l "+
			"WHERE l.request = r.id AND r.ended = 0 AND r.stop = ''")
		if err != nil {
			return err
		}
		only := map[int64][]int64{} // source groups with no other site, by request
		for _, g := range groups {
			if !slices.ContainsFunc(g.list(), func(s string) bool { return !slices.Contains(sites, s) }) {
				only[g.request] = append(only[g.request], g.id)
			}
		}
		for _, r := range open {
			all := slices.Contains(sites, r.To)
			if !all && only[r.ID] == nil {
				continue
			}
			files, err := filesOf(tx, "id > ? AND id < ? AND state IN (1, 2, 3, 8, 10) ORDER BY id", r.ID*perRequest, (r.ID+1)*perRequest)
			if err != nil {
				return err
			}
			needs := false
			for _, f := range files {
				if all || slices.Contains(only[r.ID], f.sourceGroup) {
					items, needs = append(items, f.id), true
				}
			}
			if needs && r.Job != "" && !slices.Contains(jobs, r.Job) {
				jobs = append(jobs, r.Job)
			}
		}
		return nil
	})
	return items, jobs, err
}
