package queue

import (
	"context"
	"maps"
	"slices"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

// A TapeKind is the operation at a tape system that a file waits for.
type TapeKind int64

// The kinds.
const (
	Stage   TapeKind = 1 // its source is brought online
	Archive TapeKind = 2 // its destination is written to tape
)

// A TapeStep is the next request about a file to a tape system.
type TapeStep int64

// The steps.
const (
	TapeAsk     TapeStep = iota + 1 // request staging of the file
	TapePoll                        // poll whether it is on disk or, for Archive, on tape
	TapeHold                        // no request: the file is on disk, and is copied
	TapeRelease                     // release the copy on disk
	TapeCancel                      // stop staging
	TapeOver
)

// A TapeFile is a file about which requests are sent to a tape system.
type TapeFile struct {
	Item     int64
	Kind     TapeKind
	Step     TapeStep
	Site     string
	Path     string // below the site's root
	Metadata string // for the tape system, JSON; may be ""
	Request  string // id assigned by the tape system
	Began    time.Time
	Ended    time.Time
	Until    time.Time // it fails if it is not on disk, or on tape, by then; with TapeRelease and TapeCancel: since when
	Due      time.Time
	Pin      time.Duration // time that the copy on disk is needed, if the job sets it
	Job      string
}

// A TapeNews is the response of a tape system about a file.
type TapeNews struct {
	TapeFile        // Step, Request and Due are new
	There    bool   // the file is on disk or, for Archive, on tape
	Failed   string // reason for a permanent failure; "": it may still succeed
}

const tapeColumns = "item, kind, step, site, path, metadata, request, began, ended, until, due"

func scanTape(rows *db.Rows) (t TapeFile, err error) {
	err = rows.Scan(&t.Item, &t.Kind, &t.Step, &t.Site, &t.Path, &t.Metadata, &t.Request, db.When(&t.Began), db.When(&t.Ended),
		db.When(&t.Until), db.When(&t.Due))
	return t, err
}

func (t TapeFile) row() []any {
	return []any{t.Item, int64(t.Kind), int64(t.Step), t.Site, t.Path, t.Metadata, t.Request, t.Began, t.Ended, t.Until, t.Due}
}

// TapeDue returns files about which tape systems are to be queried now, at most n, except files of
// the sites in without.
func (q *Queue) TapeDue(ctx context.Context, n int, without ...string) ([]TapeFile, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) ([]TapeFile, error) {
		all, err := db.All(tx, scanTape, "SELECT "+tapeColumns+" FROM tape WHERE due > 0 AND due <= ? AND NOT site {{in}} ORDER BY due LIMIT ?",
			q.now(), append([]string{""}, without...), n)
		if err != nil || len(all) == 0 {
			return nil, err
		}
		ids := slices.Compact(slices.Sorted(slices.Values(idsOf(all, func(t TapeFile) int64 { return requestOf(t.Item) }))))
		requests, err := db.All(tx, scanRequest, "SELECT "+requestColumns+" FROM request WHERE id {{in}}", ids)
		by := map[int64]*request{}
		for _, r := range requests {
			by[r.ID] = r
		}
		for i := range all {
			if r := by[requestOf(all[i].Item)]; r != nil {
				all[i].Pin, all[i].Job = r.Pin, r.Job
			}
		}
		return all, err
	})
}

// TapeReport applies the responses of tape systems.
func (q *Queue) TapeReport(ctx context.Context, news []TapeNews) error {
	items := slices.Compact(slices.Sorted(slices.Values(idsOf(news, func(n TapeNews) int64 { return n.Item }))))
	return q.editFiles(ctx, items, func(e *edit, _ []*file) error {
		var staged []*file
		for _, n := range news {
			f := e.files[n.Item]
			waits := f != nil && (f.state == staging && n.Kind == Stage || f.state == archiving && n.Kind == Archive)
			switch {
			case !waits && (n.Step == TapeAsk || n.Step == TapePoll):
				// It was cancelled meanwhile.
				if n.Step = TapeOver; n.Kind == Stage && n.Request != "" {
					n.Step, n.Until, n.Due = TapeCancel, e.now, e.now
				}
			case !waits:
			case n.Failed != "":
				f.fail(failed, transfer.Permanent, text(n.Failed, 2000), e.now)
				e.event(e.requests[f.request], f.id, f.name+" failed: "+f.reason)
				if n.Step != TapeCancel {
					n.Step = TapeOver
				}
			case n.There && n.Kind == Stage:
				staged = append(staged, f)
				n.Step, n.Due = TapeHold, time.Time{}
			case n.There:
				f.state, f.ended, f.reason = done, e.now, ""
				n.Step = TapeOver
			}
			if n.There || n.Failed != "" {
				n.Ended = e.now
			}
			if n.Step == TapeOver {
				n.Due = time.Time{}
			}
			e.tape = append(e.tape, n.TapeFile)
		}
		return e.route(staged)
	})
}

// stage makes a file of a job wait until its source is online.
func (e *edit) stage(r *request, f *file, from PairSource, metadata string) {
	f.state, f.reason = staging, "it is being brought online at "+from.Site
	e.tape = append(e.tape, TapeFile{Item: f.id, Kind: Stage, Step: TapeAsk, Site: from.Site, Path: from.Path, Metadata: metadata,
		Began: e.now, Until: e.now.Add(r.Stage), Due: e.now})
}

// stageAgain makes files wait again until their source is online. It returns the files that need no
// staging.
func (e *edit) stageAgain(r *request, files []*file) (others []*file, err error) {
	sources := map[int64][]replica{}
	if err := readSources(e.tx, idsOf(files, func(f *file) int64 { return f.id }), sources); err != nil {
		return nil, err
	}
	for _, f := range files {
		if all := sources[-f.id]; len(all) > 0 {
			e.stage(r, f, PairSource{Site: all[0].site, Path: all[0].path}, "")
		} else {
			others = append(others, f)
		}
	}
	return others, nil
}

// archive makes a file that has arrived wait until it is on tape.
func (e *edit) archive(r *request, f *file) {
	f.state, f.ended, f.reason = archiving, time.Time{}, "it is at "+r.To+", and waits to be on tape"
	e.tape = append(e.tape, TapeFile{Item: f.id, Kind: Archive, Step: TapePoll, Site: r.To, Path: f.name[1:], Began: e.now,
		Until: e.now.Add(r.Archive), Due: e.now})
}

// saveTape writes the next requests to tape systems. The copies on disk of files that have ended
// are released.
func (e *edit) saveTape() error {
	_, err := e.tx.Many("INSERT INTO tape ("+tapeColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (item, kind) DO UPDATE SET step = excluded.step, request = excluded.request, began = excluded.began, ended = excluded.ended,
		until = excluded.until, due = excluded.due`, db.Each(e.tape, TapeFile.row))
	if err != nil {
		return err
	}
	var over []int64
	for _, id := range slices.Sorted(maps.Keys(e.files)) {
		f := e.files[id]
		if f.state != e.was[id].state && f.state.shown().Final() && e.requests[f.request].Stage > 0 {
			over = append(over, id)
		}
	}
	if len(over) == 0 {
		return nil
	}
	for _, to := range []struct{ step, was TapeStep }{{TapeRelease, TapeHold}, {TapeCancel, TapePoll}, {TapeOver, TapeAsk}} {
		due := e.now
		if to.step == TapeOver {
			due = time.Time{}
		}
		_, err := e.tx.Exec("UPDATE tape SET step = ?, until = ?, due = ? WHERE kind = ? AND step = ? AND item {{in}}", int64(to.step), e.now,
			due, int64(Stage), int64(to.was), over)
		if err != nil {
			return err
		}
	}
	return nil
}

// readTape adds the requests to tape systems to the files of these parts that match a condition on
// item.
func readTape(tx *db.Tx, parts map[int64]*JobRequest, by map[int64]*JobFile, where string, args ...any) error {
	asked := func(p *JobRequest) bool { return p.Terms.Stage > 0 || p.Terms.Archive > 0 }
	if !slices.ContainsFunc(slices.Collect(maps.Values(parts)), asked) {
		return nil
	}
	all, err := db.All(tx, scanTape, "SELECT "+tapeColumns+" FROM tape WHERE "+where+" ORDER BY item, kind", args...)
	for _, t := range all {
		if f := by[t.Item]; f != nil {
			f.Tape = append(f.Tape, t)
		}
	}
	return err
}
