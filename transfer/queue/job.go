package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
	"weir/internal/say"
	"weir/transfer"
	"weir/transfer/catalog"
)

// ErrDuplicate is the error of a job whose id is taken.
var ErrDuplicate = errors.New("duplicate")

// A Job is a list of files that are not in the catalog, each with sources and a destination of its
// own. Each of its parts is a request, whose files have the same states as the files of a dataset.
type Job struct {
	ID     string
	By     string
	VO     string    // virtual organization of the user, only used for counting
	Made   time.Time // set by SubmitJob
	Params string    // JSON of the API that received the job, which the queue only keeps
}

// A JobPart is the files of a job with one destination site and activity, with their common terms.
type JobPart struct {
	To        string
	Share     string // activity; "" is default
	Priority  int
	Tries     int // of one file; 0 is 5
	Expires   time.Time
	Unchecked bool          // accept files without a checksum
	Replace   bool          // replace another file of the same name
	Orderly   bool          // use the first available source in the order of the pair
	Timeout   time.Duration // of one attempt; 0: no timeout
	Streams   int           // connections for a file; 0: the mover decides
	Terms     JobTerms
	Pairs     []Pair
}

// A Pair is a file of a job.
type Pair struct {
	Number  int // of the file in its job
	Sources []PairSource
	Dest    string // URL
	Path    string // at the destination site
	Size    int64  // -1: unknown
	Adler   string // 8 hex digits, or another checksum in the format of digest.Short; "": unknown
	Params  string // JSON of the API that received the job, which the queue only keeps
	After   int    // number of the file that it waits for, plus 1; 0: it does not wait
	Made    int    // number of the file whose copy it removes, if weir made it, plus 1; 0: not the removal of such a copy
	Tape    string // JSON for the tape system of its source, which the queue only keeps; may be ""
	Secret  []byte // encrypted by the caller; not returned by the API
}

// A PairSource is a source of a pair. A pair has at most one source at a site.
type PairSource struct {
	Site string `json:"site"`
	Path string `json:"path"`
	URL  string `json:"url"`
}

// A JobState is a job with its requests.
type JobState struct {
	Job
	Parts []JobRequest
}

// A JobRequest is a request of a job.
type JobRequest struct {
	transfer.Request
	Stop    transfer.Status // the final status, if the request is being stopped
	Staging int64           // files of Count.Queued whose source is being brought online
	Archive int64           // files of Count.Queued that have arrived, and wait to be on tape
	Replace bool
	Timeout time.Duration // of one attempt; 0: no timeout
	Streams int           // connections for a file; 0: the mover decides
	Terms   JobTerms
}

// A JobFile is the state of a file of a job.
type JobFile struct {
	transfer.Item
	Pair
	Share    string
	Priority int           // the current priority
	Timeout  time.Duration // of one attempt; 0: no timeout
	Streams  int           // connections; 0: the mover decides
	Terms    JobTerms
	Waits    TapeKind          // the tape operation that it waits for; 0: it does not wait
	Held     bool              // it waits for another file of the job
	Tape     []TapeFile        // the requests to tape systems
	Began    time.Time         // of the first attempt
	Attempts int               // that have ended
	Failures map[string]string // reason of the last failure of each source, by site
	Found    *transfer.Outcome // size and checksum of another file at the destination; nil: no such file was found
}

// Removed reports whether the file is to be removed, and not copied.
func (f *JobFile) Removed() bool { return f.Terms.Delete }

// copyTerms are the terms of a job for the attempts at its files.
type copyTerms struct {
	replaces, orderly bool
	timeout           time.Duration
	streams           int
	JobTerms
}

// checks reports whether a file with this source is only verified: the destination should have it.
func (r *request) checks(source string) bool { return r.Job == "" && source == r.To }

// SubmitJob stores a job. Its files can begin at once. The error is ErrDuplicate if its id is
// taken, ErrRefused if two of its files have the same destination.
func (q *Queue) SubmitJob(ctx context.Context, j Job, parts []JobPart) error {
	j.By = text(j.By, 1000)
	err := q.edit(ctx, func(e *edit) error {
		k, _ := q.Read.keysOf(&JobState{Job: j})
		n, err := e.tx.Exec("INSERT INTO job (id, made_by, made, params, vo, state, user_name, credential, source, dest) "+
			"VALUES (?, ?, ?, ?, ?, '', ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
			j.ID, j.By, e.now, j.Params, text(j.VO, 1000), text(k.User, 1000), k.Credential, k.Source, k.Dest)
		if err == nil && n == 0 {
			err = fmt.Errorf("%w: there is a job %s", ErrDuplicate, j.ID)
		}
		numbers := map[int]int64{}
		for _, p := range parts {
			if err == nil {
				err = e.addPart(j, p, numbers)
			}
		}
		if err == nil {
			err = e.addHops(parts, numbers)
		}
		return err
	})
	if errors.Is(err, db.ErrExists) {
		return fmt.Errorf("%w: there is a job %s", ErrDuplicate, j.ID)
	}
	return err
}

// openFiles is the number of files of a request r that have not ended.
const openFiles = "COALESCE(SUM(CASE WHEN r.resolved THEN r.files_n - r.done_n - r.skipped_n - r.failed_n - r.dropped_n " +
	"ELSE r.asked_files END), 0)"

// OpenFiles returns the number of files of a user's requests that have not ended.
func (q *Reader) OpenFiles(ctx context.Context, by string) (int64, error) {
	return q.count(ctx, "SELECT "+openFiles+" FROM request r WHERE r.ended = 0 AND r.made_by = ?", text(by, 1000))
}

// OpenFilesOfVO returns the number of files of a virtual organization's jobs that have not ended.
func (q *Reader) OpenFilesOfVO(ctx context.Context, vo string) (int64, error) {
	return q.count(ctx, "SELECT "+openFiles+" FROM request r JOIN job j ON j.id = r.job WHERE r.ended = 0 AND r.job <> '' AND j.vo = ?",
		text(vo, 1000))
}

func (q *Reader) count(ctx context.Context, query string, args ...any) (int64, error) {
	all, err := db.Select(ctx, q.db, db.Value[int64], query, args...)
	if err != nil {
		return 0, err
	}
	return all[0], nil
}

// addPart adds a request with its files, and stores their items by number.
func (e *edit) addPart(j Job, p JobPart, numbers map[int]int64) error {
	s := transfer.Submission{Dataset: "job " + j.ID, To: p.To, Mode: transfer.Third, Share: p.Share, Priority: p.Priority, Approve: true,
		Expires: p.Expires, Tries: p.Tries, Unchecked: p.Unchecked}
	if err := check(&s, e.now); err != nil {
		return err
	}
	r := &request{resolved: true, copyTerms: copyTerms{p.Replace, p.Orderly, p.Timeout, p.Streams, p.Terms}}
	r.Request = transfer.Request{Submission: s, Job: j.ID, Status: transfer.Running, By: j.By, Made: e.now, Began: e.now}
	for _, one := range p.Pairs {
		r.Asked.Files++
		r.Asked.Bytes += max(one.Size, 0)
	}
	if err := r.insert(e.tx); err != nil {
		return err
	}
	e.requests[r.ID] = r
	taken := map[int64]string{}
	for i, one := range p.Pairs {
		f := &file{id: r.ID*perRequest + int64(i) + 1, request: r.ID, in: pathHash(one.Path), name: "/" + one.Path, size: one.Size,
			adler: one.Adler, state: ready}
		if other, is := taken[f.in]; is && other == one.Path {
			return refused("two files of job %s have the destination %s", j.ID, one.Dest)
		}
		taken[f.in] = one.Path
		var sites []string
		for _, s := range one.Sources {
			sites = append(sites, s.Site)
		}
		g, err := e.group(r.ID, slices.Sorted(slices.Values(sites)))
		if err != nil {
			return err
		}
		f.sourceGroup = g.id
		numbers[one.Number] = f.id
		switch {
		case one.After > 0:
			f.state, f.reason = held, "it waits for the hop before it"
		case r.Stage > 0:
			e.stage(r, f, one.Sources[0], one.Tape)
		}
		e.added = append(e.added, f)
	}
	e.event(r, 0, fmt.Sprintf("request %d by %s: %s of job %s to %s", r.ID, j.By, say.Plural(len(p.Pairs), "file"), j.ID, p.To))
	i := int64(0)
	_, err := e.tx.Bulk("pair", []string{"item", "number", "sources", "dest", "params", "secret"}, db.Each(p.Pairs, func(one Pair) []any {
		i++
		sources, _ := json.Marshal(one.Sources) // strings cannot fail
		return []any{r.ID*perRequest + i, int64(one.Number), string(sources), one.Dest, one.Params, one.Secret}
	}))
	return err
}

// pathHash returns a negative number that depends only on the path, so that a destination has no
// two leases of one file.
func pathHash(path string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(path)) // never fails
	return -int64(h.Sum64()>>1) - 1
}

// readSources adds the sources of files of jobs to the replicas, by replicaKey.
func readSources(tx *db.Tx, items []int64, m map[int64][]replica) error {
	if len(items) == 0 {
		return nil
	}
	_, err := db.All(tx, func(rows *db.Rows) (none struct{}, err error) {
		var item int64
		var text string
		var sources []PairSource
		if err = rows.Scan(&item, &text); err == nil {
			sources, err = readSourceList(text)
		}
		for _, s := range sources {
			m[-item] = append(m[-item], replica{site: s.Site, path: s.Path})
		}
		return none, err
	}, "SELECT item, sources FROM pair WHERE item {{in}}", items)
	return err
}

// readSourceList reads the sources of a pair as written by addPart: without encoding/json, which
// would take a fifth of the time of a poll, unless a text in it is escaped.
func readSourceList(text string) (all []PairSource, err error) {
	if strings.Contains(text, `\`) {
		return all, json.Unmarshal([]byte(text), &all)
	}
	for one := range strings.SplitSeq(strings.Trim(text, "[]"), `},{`) {
		part := strings.Split(one, `"`)                                                    // {"site":"A","path":"f","url":"https://a/f"}
		if len(part) != 13 || part[1] != "site" || part[5] != "path" || part[9] != "url" { // a text contains braces
			all = nil
			return all, json.Unmarshal([]byte(text), &all)
		}
		all = append(all, PairSource{Site: part[3], Path: part[7], URL: part[11]})
	}
	return all, nil
}

// inOrder sorts replicas in the order of all.
func inOrder(replicas []catalog.Replica, all []replica) []catalog.Replica {
	at := func(site string) int {
		return slices.IndexFunc(all, func(one replica) bool { return one.site == site })
	}
	slices.SortStableFunc(replicas, func(a, b catalog.Replica) int { return cmp.Compare(at(a.Site), at(b.Site)) })
	return replicas
}

// copyTermsOf returns the requests of files, with the terms that apply to their leases.
func copyTermsOf(tx *db.Tx, files []*file) (map[int64]*request, error) {
	ids := slices.Compact(slices.Sorted(slices.Values(idsOf(files, func(f *file) int64 { return f.request }))))
	all, err := db.All(tx, scanRequest, "SELECT "+requestColumns+" FROM request WHERE id {{in}}", ids)
	m := map[int64]*request{}
	for _, r := range all {
		m[r.ID] = r
	}
	return m, err
}

// within bounds the progress that a mover reports.
func (l *lease) within(moved int64) int64 {
	if l.size < 0 {
		return max(moved, 0)
	}
	return min(max(moved, 0), l.size)
}

// Jobs returns the jobs with these ids, as far as they exist, in no order.
func (q *Reader) Jobs(ctx context.Context, ids []string) (all []*JobState, err error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) ([]*JobState, error) { return jobsOf(tx, "id {{in}}", ids) })
}

func jobsOf(tx *db.Tx, where string, args ...any) ([]*JobState, error) {
	all, err := db.All(tx, func(rows *db.Rows) (*JobState, error) {
		j := &JobState{}
		return j, rows.Scan(&j.ID, &j.By, db.When(&j.Made), &j.Params)
	}, "SELECT id, made_by, made, params FROM job WHERE "+where, args...)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	by := map[string]*JobState{}
	for _, j := range all {
		by[j.ID] = j
	}
	requests, err := db.All(tx, scanRequest, "SELECT "+requestColumns+" FROM request WHERE job <> '' AND job {{in}} ORDER BY id",
		slices.Sorted(maps.Keys(by)))
	for _, r := range requests {
		j := by[r.Job]
		j.Parts = append(j.Parts, JobRequest{Request: r.Request, Stop: r.stop, Replace: r.replaces, Timeout: r.timeout,
			Streams: r.streams, Terms: r.JobTerms, Staging: r.staging, Archive: r.archiving})
	}
	return all, err
}

// JobFiles returns the files of a job in the order of the submission.
func (q *Reader) JobFiles(ctx context.Context, j *JobState) (all []*JobFile, err error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) (all []*JobFile, err error) {
		for _, part := range j.Parts {
			some, err := partFiles(tx, &part)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
		slices.SortFunc(all, func(a, b *JobFile) int { return cmp.Compare(a.Number, b.Number) })
		return all, nil
	})
}

// waitsFor returns the tape operation that a file in a state waits for.
func waitsFor(s state) TapeKind {
	switch s {
	case staging:
		return Stage
	case archiving:
		return Archive
	}
	return 0
}

// partFiles returns the files of a part of a job.
func partFiles(tx *db.Tx, part *JobRequest) ([]*JobFile, error) {
	first, last := part.ID*perRequest, (part.ID+1)*perRequest
	files, err := filesOf(tx, "id > ? AND id < ? ORDER BY id", first, last)
	if err != nil {
		return nil, err
	}
	return jobFiles(tx, files, map[int64]*JobRequest{part.ID: part}, "item > ? AND item < ?", first, last)
}

// jobFiles returns files of jobs as JobFiles, in the same order. parts has the parts of their
// requests. The condition of the query, on the column item, must match the files.
func jobFiles(tx *db.Tx, files []*file, parts map[int64]*JobRequest, where string, args ...any) (all []*JobFile, err error) {
	by := map[int64]*JobFile{}
	for _, f := range files {
		one := &JobFile{Item: f.item(), Waits: waitsFor(f.state), Held: f.state == held}
		if part := parts[f.request]; part != nil {
			one.Share, one.Priority, one.Timeout, one.Streams, one.Terms = part.Share, part.Priority, part.Timeout, part.Streams, part.Terms
		}
		by[f.id], all = one, append(all, one)
	}
	if err := readTape(tx, parts, by, where, args...); err != nil {
		return nil, err
	}
	_, err = db.All(tx, func(rows *db.Rows) (none struct{}, err error) {
		var item int64
		var p Pair
		var sources string
		if err = rows.Scan(&item, &p.Number, &sources, &p.Dest, &p.Params); err == nil {
			p.Sources, err = readSourceList(sources)
		}
		if f := by[item]; f != nil {
			f.Pair = p
			f.Path, f.Pair.Size, f.Pair.Adler = strings.TrimPrefix(f.Name, "/"), f.Item.Size, f.Item.Adler
		}
		return none, err
	}, "SELECT item, number, sources, dest, params FROM pair WHERE "+where, args...)
	if err != nil {
		return nil, err
	}
	past, err := attemptsOf(tx, where+" AND late = 0 ORDER BY item, epoch", args...)
	if err != nil {
		return nil, err
	}
	for _, a := range past {
		if f := by[a.Item]; f != nil {
			f.tried(a)
		}
	}
	_, err = db.All(tx, func(rows *db.Rows) (none struct{}, err error) {
		var item int64
		var began time.Time
		if err = rows.Scan(&item, db.When(&began)); err == nil && by[item] != nil && by[item].Began.IsZero() {
			by[item].Began = began
		}
		return none, err
	}, "SELECT item, began FROM lease WHERE "+where, args...)
	return all, err
}

// tried adds an attempt that has ended. Attempts are added in their order.
func (f *JobFile) tried(a transfer.Attempt) {
	if f.Attempts++; f.Attempts == 1 {
		f.Began = a.Begin
	}
	if a.Fault != "" {
		if f.Failures == nil {
			f.Failures = map[string]string{}
		}
		f.Failures[a.Source] = a.Reason
	}
	if f.Found = nil; a.Fault == transfer.Occupied && a.Size > 0 {
		f.Found = &a.Outcome
	}
}

// PairReplicas returns the sources of files of jobs by the name of the file.
func (q *Reader) PairReplicas(ctx context.Context, items []transfer.Item) (map[string][]catalog.Replica, error) {
	m := map[int64][]replica{}
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		clear(m)
		return readSources(tx, idsOf(items, func(it transfer.Item) int64 { return it.ID }), m)
	})
	all := map[string][]catalog.Replica{}
	for _, it := range items {
		for _, one := range m[-it.ID] {
			all[it.Name] = append(all[it.Name], catalog.Replica{File: it.Name, Site: one.site, Path: one.path})
		}
	}
	return all, err
}

// PairSecret returns the secret, number and parameters of a file, and its job; job is "" if the
// file belongs to no job.
func (q *Reader) PairSecret(ctx context.Context, item int64) (p Pair, job string, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		p, job = Pair{}, ""
		err := tx.Row("SELECT p.secret, p.number, p.params, r.job FROM pair p JOIN request r ON r.id = ? WHERE p.item = ?",
			requestOf(item), item).
			Scan(&p.Secret, &p.Number, &p.Params, &job)
		if errors.Is(err, db.ErrNone) {
			return nil
		}
		return err
	})
	return p, job, err
}

// SetPriority changes the priority of the files of a job that have not begun.
func (q *Queue) SetPriority(ctx context.Context, job string, priority int) error {
	return q.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec("UPDATE request SET priority = ? WHERE job = ? AND job <> '' AND ended = 0", priority, job)
		return err
	})
}
