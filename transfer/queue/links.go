package queue

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
	"weir/internal/say"
	"weir/transfer"
)

// Links are the ways between sites on which files move, wait or have moved since
// a time. A file that waits counts on each way that it could take. Rate is what
// arrived in that time, Success the share of attempts that did (1 if there was
// none). Limit and Why are the scheduler's to fill in.
func (q *Queue) Links(ctx context.Context, since time.Time) ([]transfer.Link, error) {
	type way struct{ source, dest string }
	links := map[way]*transfer.Link{}
	at := func(source, dest string) *transfer.Link {
		l := links[way{source, dest}]
		if l == nil {
			l = &transfer.Link{Source: source, Dest: dest, Success: 1}
			links[way{source, dest}] = l
		}
		return l
	}
	seconds := max(q.now().Sub(since).Seconds(), 1)
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		clear(links)
		err := each3(tx, func(source, dest string, n [3]int64) {
			l := at(source, dest)
			l.Success, l.Rate = float64(n[1])/float64(n[0]), float64(n[2])/seconds
		}, `SELECT source, dest, COUNT(*), CAST(SUM(CASE WHEN fault = '' THEN 1 ELSE 0 END) AS BIGINT), CAST(SUM(moved) AS BIGINT)
			FROM attempt WHERE ended > ? AND late = 0 GROUP BY source, dest`, since)
		if err != nil {
			return err
		}
		err = each3(tx, func(source, dest string, n [3]int64) { at(source, dest).Active = int(n[0]) }, "SELECT source, dest, COUNT(*), 0, 0 FROM lease GROUP BY source, dest")
		if err != nil {
			return err
		}
		return each3(tx, func(sites, dest string, n [3]int64) {
			for source := range strings.SplitSeq(sites, ",") {
				at(source, dest).Queued += n[0]
			}
		}, `SELECT l.sites, r.dest, CAST(SUM(l.ready) AS BIGINT), 0, 0 FROM lane l JOIN request r ON r.id = l.request
			WHERE r.ended = 0 AND r.stop = '' AND l.ready > 0 GROUP BY l.sites, r.dest`)
	})
	var all []transfer.Link
	for _, l := range links {
		all = append(all, *l)
	}
	slices.SortFunc(all, func(a, b transfer.Link) int {
		return cmp.Or(cmp.Compare(a.Dest, b.Dest), cmp.Compare(a.Source, b.Source))
	})
	return all, err
}

// each3 calls f for rows of two texts and three numbers.
func each3(tx *db.Tx, f func(a, b string, n [3]int64), query string, args ...any) error {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		var a, b string
		var n [3]int64
		if err := rows.Scan(&a, &b, &n[0], &n[1], &n[2]); err != nil {
			return err
		}
		f(a, b, n)
	}
	return rows.Err()
}

// Explain says why the files of a request do not move now, or what they are
// doing, as far as the database tells. Who knows limits of links adds them.
func (q *Queue) Explain(ctx context.Context, id int64) (x transfer.Explanation, err error) {
	if x.Request, err = q.Get(ctx, id); err != nil {
		return x, err
	}
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		r, err := requestRow(tx, id)
		if err != nil || r.Status.Ended() {
			return err
		}
		x.Reasons, err = q.reasons(tx, r)
		return err
	})
	slices.SortStableFunc(x.Reasons, func(a, b transfer.Reason) int { return cmp.Compare(b.Files, a.Files) })
	return x, err
}

func (q *Queue) reasons(tx *db.Tx, r *request) (all []transfer.Reason, err error) {
	if r.Status == transfer.Awaiting {
		return []transfer.Reason{{Files: r.Asked.Files, Text: "the request awaits approval"}}, nil
	}
	if r.work == resolving && r.stop == "" {
		all = append(all, transfer.Reason{Files: max(r.Asked.Files-r.Count.Files, 0), Text: "they have yet to be written down"})
	}
	w, err := q.waits(tx, r)
	if err != nil {
		return nil, err
	}
	lanes, err := db.All(tx, scanLane, "SELECT "+laneColumns+" FROM lane WHERE request = ? AND ready > 0 ORDER BY id", r.ID)
	if err != nil {
		return nil, err
	}
	for _, l := range lanes {
		why, _ := w.reason(l.id)
		one := transfer.Reason{Files: l.ready, Text: cmp.Or(why, "they wait for their turn, from "+strings.Join(l.list(), " or "))}
		if err := tx.Row("SELECT name FROM item WHERE lane = ? AND state = 1 ORDER BY id LIMIT 1", l.id).Scan(&one.File); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	// Of very many that rest, the first few thousand tell enough.
	err = each3(tx, func(why, file string, n [3]int64) {
		all = append(all, transfer.Reason{Files: n[0], File: file, Text: cmp.Or(why, "it failed") + "; again at " + clock(time.Unix(0, n[1]))})
	}, `SELECT reason, MIN(name), COUNT(*), MIN(due), 0 FROM (SELECT reason, name, due FROM item WHERE state = 2 AND id > ? AND id < ? ORDER BY id LIMIT 5000) AS part
		GROUP BY reason ORDER BY COUNT(*) DESC LIMIT 20`, r.ID*perRequest, (r.ID+1)*perRequest)
	if err != nil {
		return nil, err
	}
	err = each3(tx, func(source, file string, n [3]int64) {
		text := say.Either(int(n[0]), "it is", "they are") + " being moved from " + source
		if n[1] > 0 {
			text += "; of " + number(n[1]) + " nothing was heard in time, so " + r.To + " is asked"
		}
		all = append(all, transfer.Reason{Files: n[0], File: file, Text: text})
	}, `SELECT l.source, MIN(i.name), COUNT(*), CAST(SUM(CASE WHEN l.missing THEN 1 ELSE 0 END) AS BIGINT), 0 FROM lease l JOIN item i ON i.id = l.item
		WHERE l.item > ? AND l.item < ? GROUP BY l.source`, r.ID*perRequest, (r.ID+1)*perRequest)
	return all, err
}
