package queue

import (
	"context"
	"iter"
	"slices"
	"sort"
	"strings"
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

// Get is a request as it stands. Of the files that it names, Files has the first
// thousand.
func (q *Queue) Get(ctx context.Context, id int64) (r transfer.Request, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		row, err := requestRow(tx, id)
		if err != nil {
			return err
		}
		r = row.Request
		if r.Files, err = db.Column[string](tx, "SELECT name FROM wanted WHERE request = ? ORDER BY name LIMIT ?", id, shownFiles); err != nil {
			return err
		}
		return q.stand(tx, []*transfer.Request{&r})
	})
	return r, err
}

// List are requests, the latest first, without the names of files.
func (q *Queue) List(ctx context.Context, f transfer.Filter) (all []transfer.Request, err error) {
	n := f.Limit
	if n <= 0 {
		n = 100
	}
	where, args := []string{"TRUE"}, []any{}
	add := func(condition string, arg any) {
		where, args = append(where, condition), append(args, arg)
	}
	if f.Before > 0 {
		add("id < ?", f.Before)
	}
	if f.Status != "" {
		add("status = ?", string(f.Status))
	}
	if f.Open {
		where = append(where, "ended = 0")
	}
	if f.To != "" {
		add("dest = ?", f.To)
	}
	if f.Dataset != "" {
		add("dataset = ?", f.Dataset)
	}
	if f.By != "" {
		add("made_by = ?", f.By)
	}
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		rows, err := db.All(tx, scanRequest, "SELECT "+requestColumns+" FROM request WHERE "+strings.Join(where, " AND ")+" ORDER BY id DESC LIMIT ?", append(args, min(n, 1000))...)
		if err != nil {
			return err
		}
		all = make([]transfer.Request, len(rows))
		open := []*transfer.Request{}
		for i, r := range rows {
			all[i] = r.Request
			open = append(open, &all[i])
		}
		return q.stand(tx, open)
	})
	return all, err
}

// A Pending is what requests of one destination and status, that have not ended, add up
// to.
type Pending struct {
	Dest     string
	Status   transfer.Status
	Requests int64
	Count    transfer.Counts // without bytes and attempts
}

// Pending adds up all requests that have not ended, however many there are.
func (q *Queue) Pending(ctx context.Context) (all []Pending, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		all, err = db.All(tx, func(rows *db.Rows) (o Pending, err error) {
			c := &o.Count
			err = rows.Scan(&o.Dest, &o.Status, &o.Requests, &c.Files, &c.Queued, &c.Leased, &c.Done, &c.Skipped, &c.Failed, &c.Cancelled)
			return o, err
		}, `SELECT dest, status, COUNT(*), CAST(SUM(files_n) AS BIGINT), CAST(SUM(ready_n + resting_n) AS BIGINT), CAST(SUM(leased_n) AS BIGINT), CAST(SUM(done_n) AS BIGINT),
			CAST(SUM(skipped_n) AS BIGINT), CAST(SUM(failed_n) AS BIGINT), CAST(SUM(dropped_n) AS BIGINT) FROM request WHERE ended = 0 GROUP BY dest, status ORDER BY dest, status`)
		if err != nil {
			return err
		}
		sites, err := readSites(tx)
		if err != nil {
			return err
		}
		type kind struct {
			dest   string
			status transfer.Status
		}
		away := map[kind]int64{}
		_, err = db.All(tx, func(rows *db.Rows) (l sourceGroup, err error) {
			var k kind
			if err = rows.Scan(&k.dest, &k.status, &l.sites, &l.ready); err == nil && !l.up(sites) {
				away[k] += l.ready
			}
			return l, err
		}, `SELECT r.dest, r.status, l.sites, CAST(SUM(l.ready) AS BIGINT) FROM lane l JOIN request r ON r.id = l.request
			WHERE r.ended = 0 AND l.ready > 0 GROUP BY r.dest, r.status, l.sites`)
		for i := range all {
			n := away[kind{all[i].Dest, all[i].Status}]
			all[i].Count.Queued -= n
			all[i].Count.NoSource = n
		}
		return err
	})
	return all, err
}

// stand fills in what hangs on the moment: rates, and how many files wait for
// sites that are down.
func (q *Queue) stand(tx *db.Tx, all []*transfer.Request) error {
	open := map[int64]*transfer.Request{}
	var ids []int64
	for _, r := range all {
		if !r.Status.Ended() {
			r.Rate = q.paces.rate(r.ID, q.now())
			open[r.ID] = r
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	sites, err := readSites(tx)
	if err != nil {
		return err
	}
	sourceGroups, err := db.All(tx, scanSourceGroup, "SELECT "+sourceGroupColumns+" FROM lane WHERE request {{in}} AND ready > 0", ids)
	for _, l := range sourceGroups {
		if !l.up(sites) {
			c := &open[l.request].Count
			c.Queued -= l.ready
			c.NoSource += l.ready
		}
	}
	return err
}

func (l *sourceGroup) up(sites map[string]catalog.Site) bool {
	return slices.ContainsFunc(l.list(), func(s string) bool { return sites[s].Up })
}

// Item is one file and the request that it belongs to.
func (q *Queue) Item(ctx context.Context, item int64) (one transfer.Item, request int64, err error) {
	all, err := q.items(ctx, requestOf(item), "id = ?", item)
	if err == nil && len(all) == 0 {
		err = unknown("there is no file %d", item)
	}
	if err != nil {
		return one, 0, err
	}
	return all[0], requestOf(item), nil
}

// indexed is the condition of an index, which SQLite uses only for queries that
// say the same.
const indexed = "state IN (2, 5, 6, 7)"

// window is how many files are looked through for a page at most.
const window = 10_000

// Items is a page of the files of a request: at most n of those after an item's
// id (0: from the first) in a state, or ("") in all. next is what to give as
// after for the next page, 0 at the end; a page may be empty and not the last.
func (q *Queue) Items(ctx context.Context, id int64, s transfer.State, after int64, n int) (items []transfer.Item, next int64, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		r, err := requestRow(tx, id)
		if err != nil {
			return err
		}
		v := &viewed{tx: tx, r: r}
		files, after, err := v.page(s, after, min(max(n, 1), 10_000))
		if err != nil {
			return err
		}
		next = after
		items, err = q.shown(v, files)
		return err
	})
	return items, next, err
}

// First are the first n files of a request in these states, all as they stand at
// one moment: those in the first state, then those in the next.
func (q *Queue) First(ctx context.Context, id int64, states []transfer.State, n int) (items []transfer.Item, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		r, err := requestRow(tx, id)
		if err != nil {
			return err
		}
		var all []*file
		v := &viewed{tx: tx, r: r}
		for _, s := range states {
			for after := int64(0); len(all) < n; {
				var some []*file
				if some, after, err = v.page(s, after, min(n-len(all), 10_000)); err != nil {
					return err
				}
				all = append(all, some...)
				if after == 0 {
					break
				}
			}
		}
		items, err = q.shown(v, all)
		return err
	})
	return items, err
}

// A viewed is a request that is looked at in one transaction, with what is read once
// of its surroundings.
type viewed struct {
	tx           *db.Tx
	r            *request
	sites        map[string]catalog.Site
	sourceGroups []*sourceGroup // that files wait in
}

// around reads sites and source groups.
func (v *viewed) around() (err error) {
	if v.sites != nil {
		return nil
	}
	if v.sourceGroups, err = db.All(v.tx, scanSourceGroup, "SELECT "+sourceGroupColumns+" FROM lane WHERE request = ? AND ready > 0", v.r.ID); err == nil {
		v.sites, err = readSites(v.tx)
	}
	return err
}

// page reads what Items is to show. Where the request's counters say that there is
// nothing, nothing is looked for.
func (v *viewed) page(s transfer.State, after int64, n int) (files []*file, next int64, err error) {
	c, first, last := &v.r.Count, max(after, v.r.ID*perRequest), (v.r.ID+1)*perRequest
	code := map[transfer.State]state{transfer.Skipped: skipped, transfer.FileFailed: failed, transfer.FileCancelled: dropped}[s]
	switch {
	case s == "":
		files, err = filesOf(v.tx, "id > ? AND id < ? ORDER BY id LIMIT ?", first, last, n)
	case s == transfer.Leased && c.Leased > 0: // these are few
		files, err = filesOf(v.tx, "id IN (SELECT item FROM lease WHERE item > ? AND item < ?) ORDER BY id LIMIT ?", first, last, n)
	case code != 0 && *v.r.counter(code) > 0: // there is an index of these
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

func filesOf(tx *db.Tx, where string, args ...any) ([]*file, error) {
	return db.All(tx, scanFile, "SELECT "+fileColumns+" FROM item WHERE "+where, args...)
}

// queued are the files of a request that wait, in their order: those of source groups with
// a site that is up, or those of the others. Where a million have arrived already
// they are found by the source groups' index, not by looking at each file.
func (v *viewed) queued(up bool, first int64, n int) ([]*file, error) {
	ids, err := v.waiting(up, first, n)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return filesOf(v.tx, "id {{in}} ORDER BY id", ids)
}

func (v *viewed) waiting(up bool, first int64, n int) (ids []int64, err error) {
	if v.r.ready > 0 {
		err = v.around()
	}
	for _, l := range v.sourceGroups {
		if err == nil && l.up(v.sites) == up {
			var some []int64
			some, err = db.Column[int64](v.tx, "SELECT id FROM item WHERE lane = ? AND state = 1 AND id > ? ORDER BY id LIMIT ?", l.id, first, n)
			ids = append(ids, some...)
		}
	}
	if err == nil && up && v.r.resting > 0 {
		var resting []int64
		resting, err = db.Column[int64](v.tx, "SELECT id FROM item WHERE "+indexed+" AND state = 2 AND id > ? AND id < ? ORDER BY id LIMIT ?", first, (v.r.ID+1)*perRequest, n)
		ids = append(ids, resting...)
	}
	slices.Sort(ids)
	return ids[:min(n, len(ids))], err
}

// sift looks through a window of files for those that have arrived.
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

// items reads files of a request and says of those that wait what for.
func (q *Queue) items(ctx context.Context, id int64, where string, args ...any) (items []transfer.Item, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		r, err := requestRow(tx, id)
		if err != nil {
			return err
		}
		files, err := filesOf(tx, where, args...)
		if err != nil {
			return err
		}
		items, err = q.shown(&viewed{tx: tx, r: r}, files)
		return err
	})
	return items, err
}

func (q *Queue) shown(v *viewed, files []*file) ([]transfer.Item, error) {
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
	if len(moving) > 0 {
		held, err := leases(v.tx, moving)
		if err != nil {
			return nil, err
		}
		for i := range items {
			if l := held[items[i].ID]; l != nil {
				items[i].Stage, items[i].Moved = l.stage, l.moved
				if l.missing {
					items[i].Reason = "who moves it was not heard of since " + clock(l.heard) + "; " + l.dest + " is asked whether it is there"
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
			items[i].Reason = "" // it rested for that, and does no more
		}
		if v.r.stop != "" {
			items[i].Reason = "the request is being stopped"
			continue
		}
		if reason, down := w.reason(f.sourceGroup); reason != "" {
			items[i].Reason = reason
			if down {
				items[i].State = transfer.NoSource
			}
		}
	}
	return items, nil
}

// Waits are why files of a request that are ready do not move.
type waits struct {
	all          string           // why none does
	sourceGroups map[int64]string // why those of a source group do not: its sites are down
}

func (w waits) reason(sourceGroup int64) (reason string, down bool) {
	if r := w.sourceGroups[sourceGroup]; r != "" {
		return r, true
	}
	return w.all, false
}

func (q *Queue) waits(v *viewed) (waits, error) {
	w, r := waits{sourceGroups: map[int64]string{}}, v.r
	if err := v.around(); err != nil {
		return w, err
	}
	h, err := holdOf(v.tx, r.To)
	if err != nil {
		return w, err
	}
	switch {
	case !v.sites[r.To].Up:
		w.all = away([]string{r.To}, v.sites)
	case q.now().Before(h.until):
		w.all = r.To + " is full (" + h.reason + "); it is tried again at " + clock(h.until)
	}
	for _, l := range v.sourceGroups {
		if !l.up(v.sites) {
			w.sourceGroups[l.id] = away(l.list(), v.sites)
		}
	}
	return w, nil
}

// Find is the file of that name in a request.
func (q *Queue) Find(ctx context.Context, request int64, name string) (transfer.Item, error) {
	var id int64
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		r, err := requestRow(tx, request)
		if err != nil {
			return err
		}
		// Files are written down in the order of their names, without a gap.
		first := request*perRequest + 1
		i := sort.Search(int(r.Count.Files), func(i int) bool {
			var at string
			if rowErr := tx.Row("SELECT name FROM item WHERE id = ?", first+int64(i)).Scan(&at); rowErr != nil {
				err = rowErr
			}
			return at >= name
		})
		id = first + int64(i)
		return err
	})
	if err != nil {
		return transfer.Item{}, err
	}
	items, err := q.items(ctx, request, "id = ? AND name = ?", id, name)
	if err == nil && len(items) == 0 {
		err = unknown("request %d has no file %q", request, name)
	}
	if err != nil {
		return transfer.Item{}, err
	}
	return items[0], nil
}

// Attempts are those at one file, the oldest first.
func (q *Queue) Attempts(ctx context.Context, item int64) (all []transfer.Attempt, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		all, err = db.All(tx, scanAttempt, "SELECT "+attemptColumns+" FROM attempt WHERE item = ? ORDER BY epoch, late", item)
		return err
	})
	return all, err
}

// RequestAttempts is a page of the attempts at the files of a request, by file
// and epoch: at most n after the last one of the page before (its zero value:
// from the first).
func (q *Queue) RequestAttempts(ctx context.Context, id int64, after transfer.Attempt, n int) (all []transfer.Attempt, err error) {
	item := max(after.Item, id*perRequest)
	late := 0
	if after.Late {
		late = 1
	}
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		all, err = db.All(tx, scanAttempt, "SELECT "+attemptColumns+` FROM attempt WHERE item >= ? AND item < ? AND (item > ? OR epoch > ? OR epoch = ? AND late > ?)
			ORDER BY item, epoch, late LIMIT ?`, item, (id+1)*perRequest, item, after.Epoch, after.Epoch, late, min(max(n, 1), 10_000))
		return err
	})
	return all, err
}

// Since are the attempts that ended after a time, the oldest first, at most n,
// for what learns from them.
func (q *Queue) Since(ctx context.Context, after time.Time, n int) (all []transfer.Attempt, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		all, err = db.All(tx, scanAttempt, "SELECT "+attemptColumns+" FROM attempt WHERE ended > ? ORDER BY ended, item, epoch LIMIT ?", after, min(max(n, 1), 100_000))
		return err
	})
	return all, err
}

// All are the files of a request in the order of their ids, read page by page:
// each page as it stands when it is read.
func (q *Queue) All(ctx context.Context, id int64) iter.Seq2[transfer.Item, error] {
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

// Events are those after an id, the oldest first, at most n. Old ones are gone.
func (q *Queue) Events(ctx context.Context, after int64, n int) (all []transfer.Event, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		all, err = db.All(tx, scanEvent, "SELECT id, at, request, item, status, text FROM event WHERE id > ? ORDER BY id LIMIT ?", after, min(max(n, 1), 10_000))
		return err
	})
	return all, err
}

func scanEvent(rows *db.Rows) (v transfer.Event, err error) {
	return v, rows.Scan(&v.ID, db.When(&v.Time), &v.Request, &v.Item, &v.Status, &v.Text)
}
