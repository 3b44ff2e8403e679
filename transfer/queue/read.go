package queue

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sort"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/catalog"
)

// requestRow reads one request.
func requestRow(tx *db.Tx, id int64) (*request, error) {
	all, err := db.All(tx, scanRequest, "SELECT "+requestColumns+" FROM request WHERE id = ?", id)
	if err == nil && len(all) == 0 {
		err = unknown("there is no request %d", id)
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// A Reader reads requests, jobs, files, attempts and events of a queue, and changes nothing. It is safe
// for concurrent use.
type Reader struct {
	db    *db.DB
	now   func() time.Time
	keys  func(*JobState) JobKeys // see Options
	rates *rates
}

// Get returns a request. Files has at most the first thousand of the files that it names.
func (q *Reader) Get(ctx context.Context, id int64) (transfer.Request, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) (r transfer.Request, err error) {
		row, err := requestRow(tx, id)
		if err != nil {
			return r, err
		}
		r = row.Request
		if r.Files, err = db.Column[string](tx, "SELECT name FROM wanted WHERE request = ? ORDER BY name LIMIT ?", id, shownFiles); err != nil {
			return r, err
		}
		if err := q.addCurrent(tx, []*transfer.Request{&r}); err != nil || !r.Status.Ended() || r.Count.Skipped == 0 {
			return r, err
		}
		var before int64
		err = tx.Row("SELECT COALESCE(SUM(size), 0) FROM item WHERE "+indexed+" AND state = ? AND id > ? AND id < ?", int64(skipped),
			r.ID*perRequest, (r.ID+1)*perRequest).Scan(&before)
		r.Rate = meanRate(&r, before)
		return r, err
	})
}

// meanRate returns the rate of a request that has ended, without the given bytes that were at the destination before.
func meanRate(r *transfer.Request, before int64) float64 {
	took := r.Ended.Sub(r.Began).Seconds()
	if r.Began.IsZero() || took <= 0 {
		return 0
	}
	return float64(r.Count.DoneBytes-before) / took
}

// List returns requests, the latest first, without the names of files.
func (q *Reader) List(ctx context.Context, f transfer.Filter) ([]transfer.Request, error) {
	n := f.Limit
	if n <= 0 {
		n = 100
	}
	where, args, found := "TRUE", []any{}, f.Open
	if f.Open {
		where = "ended = 0"
	}
	// The first condition should select the fewest requests, by its index. The other columns have
	// no index.
	for _, c := range []struct{ first, other, value string }{
		{"dataset", "dataset || ''", f.Dataset}, {"made_by", "made_by || ''", f.By}, {"dest || ''", "dest", f.To},
		{"status", "status || ''", string(f.Status)},
	} {
		if c.value == "" {
			continue
		}
		column := c.first
		if found {
			column = c.other
		}
		where, args, found = where+" AND "+column+" = ?", append(args, c.value), true
	}
	if f.Before > 0 {
		where, args = where+" AND id < ?", append(args, f.Before)
	}
	return db.Get(ctx, q.db, func(tx *db.Tx) ([]transfer.Request, error) {
		rows, err := db.All(tx, scanRequest, "SELECT "+requestColumns+" FROM request WHERE "+where+" ORDER BY id DESC LIMIT ?",
			append(args, min(n, 1000))...)
		if err != nil {
			return nil, err
		}
		all := make([]transfer.Request, len(rows))
		open := make([]*transfer.Request, len(rows))
		for i, r := range rows {
			all[i] = r.Request
			open[i] = &all[i]
		}
		return all, q.addCurrent(tx, open)
	})
}

// A Pending is the sum of the requests of one destination, activity and status that have not ended.
type Pending struct {
	Dest     string
	Activity string
	Status   transfer.Status
	Requests int64
	Count    transfer.Counts // without bytes and attempts
	Oldest   time.Time       // time when the oldest request with files waiting for a transfer began; zero: no files wait
}

// Pending returns the sums over all requests that have not ended, however many there are.
func (q *Reader) Pending(ctx context.Context) ([]Pending, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) ([]Pending, error) {
		all, err := db.All(tx, func(rows *db.Rows) (o Pending, err error) {
			c := &o.Count
			err = rows.Scan(&o.Dest, &o.Activity, &o.Status, &o.Requests, db.When(&o.Oldest), &c.Files, &c.Queued, &c.Leased, &c.Done,
				&c.Skipped, &c.Failed, &c.Cancelled)
			return o, err
		}, `SELECT dest, share, status, COUNT(*), COALESCE(MIN(CASE WHEN ready_n + resting_n > 0 AND began > 0 THEN began END), 0),
			CAST(SUM(files_n) AS BIGINT), CAST(SUM(ready_n + resting_n + staging_n + archiving_n + held_n) AS BIGINT), CAST(SUM(leased_n) AS BIGINT),
			CAST(SUM(done_n) AS BIGINT), CAST(SUM(skipped_n) AS BIGINT), CAST(SUM(failed_n) AS BIGINT), CAST(SUM(dropped_n) AS BIGINT)
			FROM request WHERE ended = 0 GROUP BY dest, share, status ORDER BY dest, share, status`)
		if err != nil {
			return nil, err
		}
		sites, err := readSites(tx)
		if err != nil {
			return nil, err
		}
		type kind struct {
			dest, activity string
			status         transfer.Status
		}
		away := map[kind]int64{}
		_, err = db.All(tx, func(rows *db.Rows) (g sourceGroup, err error) {
			var k kind
			if err = rows.Scan(&k.dest, &k.activity, &k.status, &g.sites, &g.ready); err == nil && !g.up(sites) {
				away[k] += g.ready
			}
			return g, err
		}, `SELECT r.dest, r.share, r.status, l.sites, CAST(SUM(l.ready) AS BIGINT) FROM request r CROSS JOIN lane l
			WHERE l.request = r.id AND r.ended = 0 AND l.ready > 0 GROUP BY r.dest, r.share, r.status, l.sites`)
		for i := range all {
			unavailable(&all[i].Count, away[kind{all[i].Dest, all[i].Activity, all[i].Status}])
		}
		return all, err
	})
}

// unavailable moves n ready files to the count of files whose sources are all down.
func unavailable(c *transfer.Counts, n int64) {
	c.Queued -= n
	c.NoSource += n
}

// addCurrent adds the values that depend on the current time: rates, and the numbers of files that
// wait for sites that are down.
func (q *Reader) addCurrent(tx *db.Tx, all []*transfer.Request) error {
	open := map[int64]*transfer.Request{}
	for _, r := range all {
		if !r.Status.Ended() {
			r.Rate = q.rates.rate(r.ID, q.now())
			open[r.ID] = r
		} else if r.Count.Skipped == 0 {
			r.Rate = meanRate(r, 0)
		}
	}
	if len(open) == 0 {
		return nil
	}
	sites, err := readSites(tx)
	if err != nil {
		return err
	}
	ids := slices.Sorted(maps.Keys(open))
	groups, err := db.All(tx, scanSourceGroup, "SELECT "+sourceGroupColumns+" FROM lane WHERE request {{in}} AND ready > 0", ids)
	for _, g := range groups {
		if !g.up(sites) {
			unavailable(&open[g.request].Count, g.ready)
		}
	}
	return err
}

// Item returns one file and its request.
func (q *Reader) Item(ctx context.Context, item int64) (one transfer.Item, request int64, err error) {
	one, err = q.item(ctx, requestOf(item), unknown("there is no file %d", item), "id = ?", item)
	if err != nil {
		return one, 0, err
	}
	return one, requestOf(item), nil
}

// item reads one file of a request. Without a matching file, it returns the given error.
func (q *Reader) item(ctx context.Context, request int64, none error, where string, args ...any) (transfer.Item, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) (one transfer.Item, err error) {
		r, err := requestRow(tx, request)
		if err != nil {
			return one, err
		}
		files, err := filesOf(tx, where, args...)
		if err == nil && len(files) == 0 {
			err = none
		}
		if err != nil {
			return one, err
		}
		items, err := q.shown(&view{tx: tx, r: r}, files)
		if err != nil {
			return one, err
		}
		return items[0], nil
	})
}

// indexed is the condition of an index, which SQLite uses only for queries that contain the same
// condition.
const indexed = "state IN (2, 5, 6, 7)"

// window is the maximum number of files searched for a page.
const window = 10_000

// Items returns a page of the files of a request: at most n files after an item's id (0: from the
// first) in a state, or ("") in any state. next is the value of after for the next page, 0 at the
// end; a page may be empty without being the last page.
func (q *Reader) Items(ctx context.Context, id int64, s transfer.State, after int64, n int) (items []transfer.Item, next int64, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		r, err := requestRow(tx, id)
		if err != nil {
			return err
		}
		v := &view{tx: tx, r: r}
		var files []*file
		if files, next, err = v.page(s, after, min(max(n, 1), 10_000)); err != nil {
			return err
		}
		items, err = q.shown(v, files)
		return err
	})
	return items, next, err
}

// First returns the first n files of a request in these states, all from the same snapshot: files
// in the first state, then files in the next state.
func (q *Reader) First(ctx context.Context, id int64, states []transfer.State, n int) ([]transfer.Item, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) ([]transfer.Item, error) {
		r, err := requestRow(tx, id)
		if err != nil {
			return nil, err
		}
		var all []*file
		v := &view{tx: tx, r: r}
		for _, s := range states {
			for after := int64(0); len(all) < n; {
				var some []*file
				if some, after, err = v.page(s, after, min(n-len(all), 10_000)); err != nil {
					return nil, err
				}
				all = append(all, some...)
				if after == 0 {
					break
				}
			}
		}
		return q.shown(v, all)
	})
}

// A view reads a request in one transaction, and its sites and source groups at most once.
type view struct {
	tx     *db.Tx
	r      *request
	sites  map[string]catalog.Site
	groups []*sourceGroup // source groups with ready files
}

// around reads sites and source groups.
func (v *view) around() (err error) {
	if v.sites != nil {
		return nil
	}
	query := "SELECT " + sourceGroupColumns + " FROM lane WHERE request = ? AND ready > 0"
	if v.groups, err = db.All(v.tx, scanSourceGroup, query, v.r.ID); err == nil {
		v.sites, err = readSites(v.tx)
	}
	return err
}

// page reads the files for Items. If the request's counters show that there are no such files, it
// does not search for them.
func (v *view) page(s transfer.State, after int64, n int) (files []*file, next int64, err error) {
	c, first, last := &v.r.Count, max(after, v.r.ID*perRequest), (v.r.ID+1)*perRequest
	code := map[transfer.State]state{transfer.Skipped: skipped, transfer.FileFailed: failed, transfer.FileCancelled: dropped}[s]
	switch {
	case s == "":
		files, err = filesOf(v.tx, "id > ? AND id < ? ORDER BY id LIMIT ?", first, last, n)
	case s == transfer.Leased && c.Leased > 0: // there are few of these
		files, err = filesOf(v.tx, "id IN (SELECT item FROM lease WHERE item > ? AND item < ?) ORDER BY id LIMIT ?", first, last, n)
	case code != 0 && *v.r.counter(code) > 0: // these have an index
		files, err = filesOf(v.tx, indexed+" AND state = "+number(int64(code))+" AND id > ? AND id < ? ORDER BY id LIMIT ?", first, last, n)
	case s == transfer.Queued, s == transfer.NoSource:
		files, err = v.queued(s == transfer.Queued, first, n)
	case s == transfer.Done:
		return sift(v.tx, v.r, first, n)
	case s != transfer.Leased && code == 0:
		return nil, 0, refused("there is no state %q of files", s)
	}
	if len(files) == n {
		next = files[n-1].id
	}
	return files, next, err
}

// queued returns the waiting files of a request, in their order: the files of source groups with a
// site that is up, or else the files of the other source groups. They are found by the index of
// source groups, since a request may have a million files that have arrived.
func (v *view) queued(up bool, first int64, n int) ([]*file, error) {
	var err error
	if v.r.ready > 0 {
		err = v.around()
	}
	var ids []int64
	for _, g := range v.groups {
		if err == nil && g.up(v.sites) == up {
			var some []int64
			some, err = db.Column[int64](v.tx, "SELECT id FROM item WHERE lane = ? AND state = 1 AND id > ? ORDER BY id LIMIT ?", g.id, first, n)
			ids = append(ids, some...)
		}
	}
	if err == nil && up && v.r.resting > 0 {
		var resting []int64
		resting, err = db.Column[int64](v.tx, "SELECT id FROM item WHERE "+indexed+" AND state = 2 AND id > ? AND id < ? ORDER BY id LIMIT ?",
			first, (v.r.ID+1)*perRequest, n)
		ids = append(ids, resting...)
	}
	if err == nil && up && v.r.staging+v.r.archiving+v.r.held > 0 {
		var tape []int64
		tape, err = db.Column[int64](v.tx, "SELECT id FROM item WHERE id > ? AND id < ? AND state IN (8, 9, 10) ORDER BY id LIMIT ?", first,
			(v.r.ID+1)*perRequest, n)
		ids = append(ids, tape...)
	}
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	slices.Sort(ids)
	return filesOf(v.tx, "id {{in}} ORDER BY id", ids[:min(n, len(ids))])
}

// sift searches a window of files for files that have arrived.
func sift(tx *db.Tx, r *request, first int64, n int) (files []*file, next int64, err error) {
	if r.Count.Done == 0 {
		return nil, 0, nil
	}
	last := r.ID*perRequest + r.Count.Files
	end := min(first+window, last)
	files, err = filesOf(tx, "id > ? AND id <= ? AND state = 4 ORDER BY id LIMIT ?", first, end, n)
	switch {
	case len(files) == n:
		next = files[n-1].id
	case end < last:
		next = end
	}
	return files, next, err
}

// shown returns files in the form of the API, with the reasons why they do not move.
func (q *Reader) shown(v *view, files []*file) ([]transfer.Item, error) {
	items := make([]transfer.Item, len(files))
	var moving []int64
	waiting := false
	for i, f := range files {
		items[i] = f.item()
		if f.state == leased {
			moving = append(moving, f.id)
		}
		waiting = waiting || f.state == ready
	}
	if err := countFailures(v.tx, files, items); err != nil {
		return nil, err
	}
	if len(moving) > 0 {
		active, err := leases(v.tx, moving)
		if err != nil {
			return nil, err
		}
		for i := range items {
			if l := active[items[i].ID]; l != nil {
				items[i].Stage, items[i].Moved = l.stage, l.moved
				if l.missing {
					items[i].Reason = "no report of its mover since " + clock(l.heard) + "; " + l.dest + " is asked whether it is there"
				}
			}
		}
	}
	if !waiting {
		return items, nil
	}
	w, err := q.waits(v)
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		if f.state != ready {
			continue
		}
		if f.fault == "" {
			items[i].Reason = "" // the reason of a pause that is over
		}
		reason, down := w.reason(f.sourceGroup)
		switch {
		case v.r.stop != "":
			items[i].Reason = "the request is being stopped"
		case down:
			items[i].Reason, items[i].State = reason, transfer.NoSource
		case reason != "":
			items[i].Reason = reason
		}
	}
	return items, nil
}

// countFailures sets the numbers of failed attempts. file.tries has only those that count against the limit of the request.
func countFailures(tx *db.Tx, files []*file, items []transfer.Item) error {
	var ids []int64
	at := map[int64]int{}
	for i, f := range files {
		at[f.id] = i
		if f.epoch > 1 || f.epoch == 1 && f.state != done && f.state != skipped {
			ids = append(ids, f.id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	type failures struct {
		item  int64
		count int
	}
	all, err := db.All(tx, func(r *db.Rows) (f failures, err error) { return f, r.Scan(&f.item, &f.count) },
		"SELECT item, COUNT(*) FROM attempt WHERE item {{in}} AND late = 0 AND fault NOT IN ('', ?, ?, ?) GROUP BY item",
		ids, string(transfer.MoverStopped), string(transfer.SiteRefuses), string(transfer.RequestCancelled))
	for _, id := range ids {
		items[at[id]].Tries = 0
	}
	for _, f := range all {
		items[at[f.item]].Tries = f.count
	}
	return err
}

// A waits holds the reasons why ready files of a request do not move.
type waits struct {
	all    string           // the reason for all files
	groups map[int64]string // the reason for the files of a source group: its sites are down
}

func (w waits) reason(group int64) (reason string, down bool) {
	if r := w.groups[group]; r != "" {
		return r, true
	}
	return w.all, false
}

func (q *Reader) waits(v *view) (waits, error) {
	w, r := waits{groups: map[int64]string{}}, v.r
	if err := v.around(); err != nil {
		return w, err
	}
	h, err := holdOf(v.tx, r.To)
	switch {
	case err != nil:
		return w, err
	case !v.sites[r.To].Up:
		w.all = away([]string{r.To}, v.sites)
	case q.now().Before(h.until):
		w.all = r.To + " is full (" + h.reason + "); it is tried again at " + clock(h.until)
	}
	for _, g := range v.groups {
		if !g.up(v.sites) {
			w.groups[g.id] = away(g.list(), v.sites)
		}
	}
	return w, nil
}

// Find returns the file with a name in a request.
func (q *Reader) Find(ctx context.Context, request int64, name string) (transfer.Item, error) {
	first := request*perRequest + 1
	where, args := "id = ? AND name = ?", []any(nil)
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		r, err := requestRow(tx, request)
		if err != nil {
			return err
		}
		if r.Job != "" { // its files are in the order of the submission
			where, args = "id >= ? AND id < ? AND name = ?", []any{first, first + perRequest, name}
			return nil
		}
		// Files are added in the order of their names, without a gap.
		i := sort.Search(int(r.Count.Files), func(i int) bool {
			var at string
			if rowErr := tx.Row("SELECT name FROM item WHERE id = ?", first+int64(i)).Scan(&at); rowErr != nil {
				err = rowErr
			}
			return at >= name
		})
		args = []any{first + int64(i), name}
		return err
	})
	if err != nil {
		return transfer.Item{}, err
	}
	return q.item(ctx, request, unknown("request %d has no file %q", request, name), where, args...)
}

// attempts reads the attempts that match a condition.
func (q *Reader) attempts(ctx context.Context, where string, args ...any) ([]transfer.Attempt, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) ([]transfer.Attempt, error) { return attemptsOf(tx, where, args...) })
}

// Attempts returns the attempts at one file, the oldest first.
func (q *Reader) Attempts(ctx context.Context, item int64) ([]transfer.Attempt, error) {
	return q.attempts(ctx, "item = ? ORDER BY epoch, late", item)
}

// RequestAttempts returns a page of the attempts at the files of a request, by file and epoch: at
// most n attempts after the last attempt of the previous page (its zero value: from the first).
func (q *Reader) RequestAttempts(ctx context.Context, id int64, after transfer.Attempt, n int) ([]transfer.Attempt, error) {
	item := max(after.Item, id*perRequest)
	return q.attempts(ctx, `item >= ? AND item < ? AND (item > ? OR epoch > ? OR epoch = ? AND late > ?) ORDER BY item, epoch, late LIMIT ?`,
		item, (id+1)*perRequest, item, after.Epoch, after.Epoch, lateColumn(after), min(max(n, 1), 10_000))
}

// Since returns the attempts that ended after a time, the oldest first: at most n, and in addition
// all attempts that ended in the same moment as the last attempt, since leases expire together.
func (q *Reader) Since(ctx context.Context, after time.Time, n int) ([]transfer.Attempt, error) {
	n = min(max(n, 1), 100_000)
	list, err := q.attempts(ctx, "ended > ? ORDER BY ended, item, epoch LIMIT ?", after, n)
	if err != nil || len(list) < n {
		return list, err
	}
	last := list[n-1]
	more, err := q.attempts(ctx, "ended = ? AND (item, epoch) > (?, ?) ORDER BY ended, item, epoch LIMIT 1000000", last.End, last.Item,
		last.Epoch)
	return append(list, more...), err
}

// All yields the files of a request in the order of their ids, read page by page: each page is
// current at the time when it is read.
func (q *Reader) All(ctx context.Context, id int64) iter.Seq2[transfer.Item, error] {
	return func(yield func(transfer.Item, error) bool) {
		for after := int64(0); ; {
			items, next, err := q.Items(ctx, id, "", after, 1000)
			if err != nil {
				yield(transfer.Item{}, err)
				return
			}
			for _, one := range items {
				if !yield(one, nil) {
					return
				}
			}
			if after = next; next == 0 {
				return
			}
		}
	}
}

// Events returns the events after an id, the oldest first, at most n. Old events are removed.
func (q *Reader) Events(ctx context.Context, after int64, n int) ([]transfer.Event, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) ([]transfer.Event, error) {
		return db.All(tx, func(rows *db.Rows) (v transfer.Event, err error) {
			err = rows.Scan(&v.ID, db.When(&v.Time), &v.Request, &v.Item, &v.Status, &v.Text)
			return v, err
		}, "SELECT id, at, request, item, status, text FROM event WHERE id > ? ORDER BY id LIMIT ?", after, min(max(n, 1), 10_000))
	})
}
