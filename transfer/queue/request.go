package queue

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"weir/internal/db"
	"weir/transfer"
)

// A request is a row of the table of requests.
type request struct {
	transfer.Request
	stop           transfer.Status
	work           work
	place          int64
	at             string
	resolved       bool
	upto           int64 // the first number of files in the catalog that are newer than the request
	ready, resting int64
	staging        int64
	archiving      int64
	held           int64
	copyTerms
}

// A work is the remaining part of a change of a request that takes many transactions.
type work string

const (
	resolving work = "resolve"
	dropping  work = "drop"
	retrying  work = "retry"
)

const requestColumns = `id, made_by, key, dataset, block, dest, sources, mode, share, priority, approve, expires, max_tries, unchecked,
	comment, asked_files, asked_bytes, status, decided, reason, made, began, ended, stop, work, place, at_name, resolved,
	upto, job, replaces, orderly, timeout, streams, terms, files_n, bytes_n, ready_n, resting_n,
	 staging_n, archiving_n, held_n, leased_n, done_n, skipped_n, failed_n, dropped_n, there_bytes, attempts_n`

func scanRequest(rows *db.Rows) (*request, error) {
	r := &request{}
	var sources, more string
	c := &r.Count
	err := rows.Scan(&r.ID, &r.By, &r.Key, &r.Dataset, &r.Block, &r.To, &sources, &r.Mode, &r.Share, &r.Priority, &r.Approve,
		db.When(&r.Expires), &r.Tries, &r.Unchecked, &r.Comment,
		&r.Asked.Files, &r.Asked.Bytes, &r.Status, &r.Decided, &r.Reason, db.When(&r.Made), db.When(&r.Began), db.When(&r.Ended), &r.stop,
		&r.work, &r.place, &r.at, &r.resolved, &r.upto, &r.Job, &r.replaces, &r.orderly, &r.timeout, &r.streams, &more,
		&c.Files, &c.Bytes, &r.ready, &r.resting, &r.staging, &r.archiving, &r.held,
		&c.Leased, &c.Done, &c.Skipped, &c.Failed, &c.Cancelled, &c.DoneBytes, &c.Attempts)
	if err != nil {
		return nil, err
	}
	r.From = unlist(sources)
	c.Queued = r.ready + r.resting + r.staging + r.archiving + r.held
	return r, r.parse(more)
}

// list and unlist convert lists of names to and from a column.
func list(names []string) string {
	if len(names) == 0 {
		return ""
	}
	text, _ := json.Marshal(names) // strings cannot fail
	return string(text)
}

func unlist(text string) (names []string) {
	if text != "" {
		_ = json.Unmarshal([]byte(text), &names) // it was written by list
	}
	return names
}

func (r *request) insert(tx *db.Tx) error {
	return tx.Row(`INSERT INTO request (made_by, key, dataset, block, dest, sources, mode, share, priority, approve, expires, max_tries,
		unchecked, comment, asked_files, asked_bytes, status, decided, reason, made, began, ended, stop, work, place, at_name,
		resolved, upto, job, replaces, orderly, timeout, streams, terms, deletes, files_n, bytes_n, ready_n,
		 resting_n, leased_n, done_n, skipped_n, failed_n, dropped_n, there_bytes, attempts_n)
		VALUES (`+strings.Repeat("?, ", 21)+`0, '', ?, 0, '', ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) RETURNING id`,
		r.By, r.Key, r.Dataset, r.Block, r.To, list(r.From), string(r.Mode), r.Share, r.Priority, r.Approve, r.Expires, r.Tries,
		r.Unchecked, r.Comment,
		r.Asked.Files, r.Asked.Bytes, string(r.Status), r.Decided, r.Reason, r.Made, r.Began, string(r.work), r.resolved,
		r.upto, r.Job, r.replaces, r.orderly, int64(r.timeout), r.streams, r.text(), r.Delete).Scan(&r.ID)
}

func (r *request) update(tx *db.Tx) error {
	c := &r.Count
	_, err := tx.Exec(`UPDATE request SET expires = ?, status = ?, decided = ?, reason = ?, began = ?, ended = ?, stop = ?, work = ?, place = ?,
		at_name = ?, resolved = ?, files_n = ?, bytes_n = ?, ready_n = ?, resting_n = ?, staging_n = ?, archiving_n = ?, held_n = ?,
		leased_n = ?, done_n = ?, skipped_n = ?, failed_n = ?, dropped_n = ?, there_bytes = ?, attempts_n = ? WHERE id = ?`,
		r.Expires, string(r.Status), r.Decided, r.Reason, r.Began, r.Ended, string(r.stop), string(r.work), r.place, r.at, r.resolved,
		c.Files, c.Bytes, r.ready, r.resting, r.staging, r.archiving, r.held, c.Leased, c.Done, c.Skipped, c.Failed, c.Cancelled, c.DoneBytes,
		c.Attempts, r.ID)
	return err
}

// termsOf returns the terms of the request for a file with a lease.
func (r *request) termsOf(l *lease) terms {
	return terms{stopped: cmp.Or(r.stopped(), l.stop), tries: r.Tries, unchecked: r.Unchecked, delay: r.RetryDelay}
}

// stopped returns the reason why the request was stopped, "" if it was not.
func (r *request) stopped() string {
	switch r.stop {
	case "":
		return ""
	case transfer.Expired, transfer.Failed:
		return r.Reason
	}
	return "the request was cancelled"
}

// open reports whether files of the request may be begun.
func (r *request) open() bool {
	return r.stop == "" && (r.Status == transfer.Resolving || r.Status == transfer.Running)
}

// counter returns the counter of files in a state.
func (r *request) counter(s state) *int64 {
	switch s {
	case ready:
		return &r.ready
	case resting:
		return &r.resting
	case staging:
		return &r.staging
	case archiving:
		return &r.archiving
	case held:
		return &r.held
	case leased:
		return &r.Count.Leased
	case done:
		return &r.Count.Done
	case skipped:
		return &r.Count.Skipped
	case failed:
		return &r.Count.Failed
	default:
		return &r.Count.Cancelled
	}
}

// count adds a file to the counters, or with sign -1 subtracts it.
func (r *request) count(f *file, sign int64) {
	*r.counter(f.state) += sign
	r.Count.Files += sign
	r.Count.Bytes += sign * max(f.size, 0)
	if f.state == done || f.state == skipped {
		r.Count.DoneBytes += sign * f.size
	}
}

// settled reports whether no file of the request can change any more.
func (r *request) settled() bool {
	return (r.Status == transfer.Resolving || r.Status == transfer.Running) && r.work == "" && (r.resolved || r.stop != "") &&
		r.ready == 0 && r.resting == 0 && r.staging == 0 && r.archiving == 0 && r.held == 0 && r.Count.Leased == 0
}

// sources returns the sites that may be the source of a file, sorted. If the destination should
// have the file already, it is the only source: the file is checked there.
func (r *request) sources(f *file, all []replica) []string {
	var sites []string
	for _, one := range all {
		switch {
		case f.sourceFailures.avoids(one.site):
		case one.site == r.To && r.Job == "" && one.bad == "" && !one.verified.IsZero():
			return []string{r.To}
		case r.admits(one.site) && (one.bad == "" || f.again):
			sites = append(sites, one.site)
		}
	}
	slices.Sort(sites)
	return sites
}

func (r *request) admits(site string) bool {
	return (site != r.To || r.Job != "") && (len(r.From) == 0 || slices.Contains(r.From, site))
}

// noSource returns the reason why there is no source for a file.
func (r *request) noSource(all []replica) string {
	var known []string
	others := 0
	for _, one := range all {
		switch {
		case one.site == r.To && one.bad == "":
		case one.site != r.To && !r.admits(one.site):
			others++
		case one.bad != "":
			known = append(known, one.site+": "+one.bad)
		}
	}
	switch {
	case len(known) > 0:
		return strings.Join(known, "; ")
	case others > 0:
		return "none of the sites that were asked for has it (" + strings.Join(r.From, ", ") + "), though others do"
	default:
		return "no site is known to have it"
	}
}
