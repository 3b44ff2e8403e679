package queue

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
)

// JobKeys are the properties by which jobs are found, besides the user who submitted them.
type JobKeys struct {
	State        string // of a job that has ended
	User         string // another name of that user; may be ""
	VO           string
	Credential   string
	Source, Dest string // storage elements; "": several
}

// A JobFilter selects jobs. An empty text selects all.
type JobFilter struct {
	By           string // the user who submitted them
	User         string // likewise, by either name
	VO           string
	Credential   string
	Source, Dest string
	Open         bool                 // jobs that have not ended
	Fits         func(*JobState) bool // selects among the open jobs; nil: all
	Ended        []string             // jobs that have ended with one of these states
	Since        time.Time            // of the ended jobs, those jobs that ended not before this time
	Limit        int                  // at least 1
}

// FindJobs returns the jobs that f selects, the latest submitted first. Each state has a search of
// its own by an index, so that rare jobs among many are found fast.
func (q *Reader) FindJobs(ctx context.Context, f JobFilter) ([]*JobState, error) {
	states := f.Ended
	if f.Open {
		states = append([]string{""}, states...)
	}
	names := [][2]string{{f.By, ""}}
	if f.User != "" {
		names = [][2]string{{f.User, ""}, {"", f.User}}
	}
	return db.Get(ctx, q.db, func(tx *db.Tx) (all []*JobState, err error) {
		for _, state := range states {
			for _, name := range names {
				some, err := f.find(tx, state, name[0], name[1])
				if err != nil {
					return nil, err
				}
				all = append(all, some...)
			}
		}
		slices.SortFunc(all, func(a, b *JobState) int { return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(b.ID, a.ID)) })
		all = slices.CompactFunc(all, func(a, b *JobState) bool { return a.ID == b.ID })
		return all[:min(len(all), f.Limit)], nil
	})
}

// findPage is the number of open jobs read at a time when they are filtered by Fits.
const findPage = 500

// find returns the latest jobs in one state, "" if they are open, of a user with one of two names.
func (f *JobFilter) find(tx *db.Tx, state, by, user string) (all []*JobState, err error) {
	where, args, order := f.where(tx.Dialect(), state, by, user)
	fits, n := f.Fits, f.Limit
	if state != "" || fits == nil {
		fits = func(*JobState) bool { return true }
	} else {
		n = max(n, findPage)
	}
	after := []any(nil)
	for {
		page, err := jobsOf(tx, where+" ORDER BY "+order+" DESC, id DESC LIMIT ?", slices.Concat(args, after, []any{n})...)
		if err != nil {
			return nil, err
		}
		for _, j := range page {
			if fits(j) {
				all = append(all, j)
			}
		}
		if len(page) < n || len(all) >= f.Limit { // always if the jobs have ended
			return all, nil
		}
		if after == nil {
			where += " AND made <= ? AND (made < ? OR id < ?)"
		}
		last := page[len(page)-1]
		after = []any{last.Made, last.Made, last.ID}
	}
}

// where returns the condition of find, and the column by which the jobs are ordered. As in List,
// only the first column can use an index.
func (f *JobFilter) where(dialect db.Dialect, state, by, user string) (condition string, args []any, order string) {
	where, args, found := []string{"state = ?"}, []any{state}, false
	for _, c := range []struct{ column, value string }{
		{"dest", f.Dest}, {"source", f.Source}, {"user_name", user}, {"made_by", by}, {"vo", f.VO}, {"credential", f.Credential},
	} {
		if c.value == "" {
			continue
		}
		column := c.column
		if found {
			column += " || ''"
		}
		where, args = append(where, column+" = ?"), append(args, c.value)
		found = found || c.column != "credential" // credential has no index
		if c.column == "user_name" {
			where = append(where, "user_name <> ''") // the condition of its index
		}
	}
	order = "made"
	switch {
	case state == "":
		where = append(where, "ended = 0")
	case !f.Since.IsZero():
		ended := "ended"
		if !found {
			order = "ended"
		} else if dialect == db.SQLite { // without statistics it would use the index of this column
			ended = "+ended"
		}
		where, args = append(where, ended+" >= ?"), append(args, f.Since)
	}
	return strings.Join(where, " AND "), args, order
}

// keysOf returns the keys of a job, and the time when it ended.
func (q *Reader) keysOf(j *JobState) (k JobKeys, ended time.Time) {
	if q.keys != nil {
		k = q.keys(j)
	}
	if k.User == j.By {
		k.User = ""
	}
	for _, p := range j.Parts {
		if !p.Status.Ended() {
			ended = time.Time{}
			break
		}
		if p.Ended.After(ended) {
			ended = p.Ended
		}
	}
	if ended.IsZero() {
		k.State = ""
	}
	return k, ended
}

// saveJobs writes the states of the jobs that the edit has ended, or reopened.
func (e *edit) saveJobs() error {
	var ids []string
	for id, r := range e.requests {
		if r.Job != "" && r.Status.Ended() != e.ended[id] {
			ids = append(ids, r.Job)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	// Two edits may end the last two requests of a job: the second edit waits here, and reads both
	// as ended.
	if _, err := db.Column[string](e.tx, "SELECT id FROM job WHERE id {{in}} ORDER BY id {{lock}}", ids); err != nil {
		return err
	}
	all, err := jobsOf(e.tx, "id {{in}} ORDER BY id", ids)
	if err != nil {
		return err
	}
	_, err = e.tx.Many("UPDATE job SET state = ?, ended = ? WHERE id = ?", db.Each(all, func(j *JobState) []any {
		k, ended := e.q.Read.keysOf(j)
		return []any{k.State, db.Nanos(ended), j.ID}
	}))
	return err
}
