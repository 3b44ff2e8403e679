package queue

import (
	"strings"
	"testing"
	"time"

	"weir/transfer"
)

func pairTo(number int, from, to, path string) Pair {
	return Pair{Number: number, Sources: []PairSource{{Site: from, Path: path, URL: "https://" + from + "/" + path}},
		Dest: "https://" + to + "/" + path, Path: path, Size: 5, Adler: "00000001", Params: "{}"}
}

// jobFiles returns the files of a job.
func (w *world) jobFiles(id string) (*JobState, []*JobFile) {
	w.t.Helper()
	jobs, err := w.Read.Jobs(w.ctx, []string{id})
	w.must(err)
	if len(jobs) != 1 {
		w.t.Fatalf("%d jobs %s", len(jobs), id)
	}
	files, err := w.Read.JobFiles(w.ctx, jobs[0])
	w.must(err)
	return jobs[0], files
}

// A hop begins when the hop before it has arrived, and is not used if it has failed. A copy on the
// way is removed if it was made.
func TestHops(t *testing.T) {
	each(t, Options{}, func(w *world) {
		job := func(id string) []JobPart {
			second, third, gone := pairTo(1, "B", "C", id), pairTo(2, "C", "D", id), pairTo(3, "B", "B", id)
			second.After, third.After, gone.After, gone.Made, gone.Size, gone.Adler = 1, 2, 3, 1, 0, ""
			return []JobPart{{To: "B", Tries: 1, Pairs: []Pair{pairTo(0, "A", "B", id)}}, {To: "C", Tries: 1, Pairs: []Pair{second}},
				{To: "D", Tries: 1, Pairs: []Pair{third}}, {To: "B", Terms: JobTerms{Delete: true}, Pairs: []Pair{gone}}}
		}
		w.must(w.SubmitJob(w.ctx, Job{ID: "good", Params: "{}"}, job("good")))
		if n := len(w.waiting("C", 10)) + len(w.waiting("D", 10)); n != 0 {
			t.Errorf("%d later hops could begin", n)
		}
		for _, dest := range []string{"B", "C", "D"} {
			leases := w.lease(dest, 10)
			if len(leases) != 1 {
				t.Fatalf("%s: %+v", dest, leases)
			}
			w.report(success(leases[0]))
			w.pass(time.Second)
		}
		remove := w.waiting("B", 10)
		if len(remove) != 1 || !remove[0].Delete {
			t.Fatalf("%+v", remove)
		}
		if taken, err := w.Take(w.ctx, []Choice{{Item: remove[0].ID, Source: "B", Mode: transfer.Third}}); err != nil || len(taken) != 0 {
			t.Errorf("it is copied: %+v, %v", taken, err)
		}
		taken, err := w.Take(w.ctx, []Choice{{Item: remove[0].ID, Source: "B", Mode: transfer.Delete}})
		w.must(err)
		if len(taken) != 1 || taken[0].Mode != transfer.Delete {
			t.Fatalf("%+v", taken)
		}
		done := success(taken[0])
		done.Adler = ""
		w.report(done)
		j, files := w.jobFiles("good")
		for i, p := range j.Parts {
			if p.Status != transfer.Completed || files[i].Number != i {
				t.Errorf("%d: %+v", i, p)
			}
		}

		w.must(w.SubmitJob(w.ctx, Job{ID: "bad", Params: "{}"}, job("bad")))
		w.report(failure(w.lease("B", 10)[0], transfer.Permanent, "no"))
		for range 3 {
			w.pass(time.Second)
		}
		_, files = w.jobFiles("bad")
		states := []transfer.State{transfer.FileFailed, transfer.FileCancelled, transfer.FileCancelled, transfer.Skipped}
		for i, f := range files {
			if f.State != states[i] || (i == 1 || i == 2) && f.Fault != transfer.HopFailed {
				t.Errorf("%d: %+v", i, f.Item)
			}
		}
	})
}

// Files wait for their tape systems before and after they are copied; the copies on the disks of
// the tape systems are released when a file ends.
func TestTape(t *testing.T) {
	each(t, Options{}, func(w *world) {
		terms := JobTerms{Stage: time.Hour, Archive: time.Hour, Pin: time.Minute}
		w.must(w.SubmitJob(w.ctx, Job{ID: "j", Params: "{}"}, []JobPart{{To: "B", Terms: terms, Tries: 1, Pairs: []Pair{pairTo(0, "A", "B", "x"),
			pairTo(1, "A", "B", "y"), pairTo(2, "A", "B", "z")}}}))
		if n := len(w.waiting("B", 10)); n != 0 {
			t.Errorf("%d files could begin", n)
		}
		due := func(step TapeStep, n int) []TapeFile {
			t.Helper()
			all, err := w.TapeDue(w.ctx, 100)
			w.must(err)
			var some []TapeFile
			for _, f := range all {
				if f.Step == step {
					some = append(some, f)
				}
			}
			if len(some) != n {
				t.Fatalf("%d files are due for step %d instead of %d: %+v", len(some), step, n, all)
			}
			return some
		}
		var news []TapeNews
		for i, f := range due(TapeAsk, 3) {
			if f.Site != "A" || f.Pin != time.Minute || f.Job != "j" || f.Path != []string{"x", "y", "z"}[i] {
				t.Errorf("%+v", f)
			}
			f.Step, f.Request, f.Due = TapePoll, "r", w.clock()
			news = append(news, TapeNews{TapeFile: f})
		}
		w.must(w.TapeReport(w.ctx, news))
		j, files := w.jobFiles("j")
		if j.Parts[0].Staging != 3 || j.Parts[0].Count.Queued != 3 || files[0].Waits != Stage {
			t.Errorf("%+v %+v", j.Parts[0], files[0])
		}
		if all, err := w.Read.Pending(w.ctx); err != nil || len(all) != 1 || all[0].Count.Queued != 3 || !all[0].Oldest.IsZero() {
			t.Errorf("%+v, %v", all, err)
		}
		polls := due(TapePoll, 3)
		w.must(w.TapeReport(w.ctx, []TapeNews{{TapeFile: polls[0], There: true}, {TapeFile: polls[1], Failed: "STAGING [5] no"},
			{TapeFile: polls[2]}}))
		w.must(w.CancelFiles(w.ctx, []int64{polls[2].Item}, "it was cancelled"))
		if cancel := due(TapeCancel, 1); cancel[0].Item != polls[2].Item || !cancel[0].Until.Equal(w.clock()) {
			t.Errorf("%+v", cancel)
		}
		leases := w.lease("B", 10)
		if len(leases) != 1 {
			t.Fatalf("%+v", leases)
		}
		w.report(success(leases[0]))
		j, files = w.jobFiles("j")
		if j.Parts[0].Archive != 1 || files[0].Waits != Archive || files[1].State != transfer.FileFailed ||
			!strings.HasPrefix(files[1].Reason, "STAGING [5]") || files[2].State != transfer.FileCancelled {
			t.Errorf("%+v %+v", j.Parts[0], files[0])
		}
		var archive TapeFile
		for _, f := range due(TapePoll, 1) {
			archive = f
		}
		if archive.Kind != Archive || archive.Site != "B" {
			t.Errorf("%+v", archive)
		}
		w.must(w.TapeReport(w.ctx, []TapeNews{{TapeFile: archive, There: true}}))
		if release := due(TapeRelease, 1); release[0].Item != archive.Item || release[0].Request != "r" || !release[0].Until.Equal(w.clock()) {
			t.Errorf("%+v", release)
		}
		j, files = w.jobFiles("j")
		if j.Parts[0].Status != transfer.Partial || files[0].State != transfer.Done || len(files[0].Tape) != 2 ||
			files[0].Tape[1].Ended.IsZero() {
			t.Errorf("%+v %+v", j.Parts[0], files[0])
		}
	})
}

// A file that is cancelled individually ends when its mover has reported, or when its lease
// expires; the others continue.
func TestCancelFiles(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.must(w.SubmitJob(w.ctx, Job{ID: "j", Params: "{}"}, []JobPart{{To: "B", Tries: 9, Pairs: []Pair{pairTo(0, "A", "B", "x"),
			pairTo(1, "A", "B", "y"), pairTo(2, "A", "B", "z")}}}))
		leases := w.lease("B", 2)
		if len(leases) != 2 {
			t.Fatalf("%+v", leases)
		}
		_, files := w.jobFiles("j")
		w.must(w.CancelFiles(w.ctx, []int64{files[0].ID, files[1].ID, files[2].ID}, "by alice"))
		_, lost, err := w.Renew(w.ctx, []transfer.Progress{{Item: leases[0].Item, Epoch: leases[0].Epoch}})
		w.must(err)
		if len(lost) != 1 {
			t.Errorf("the mover is not told: %+v", lost)
		}
		w.report(failure(leases[0], transfer.RequestCancelled, "aborted"))
		w.pass(2 * time.Minute) // the other lease expires
		j, files := w.jobFiles("j")
		for _, f := range files {
			if f.State != transfer.FileCancelled || !strings.Contains(f.Reason, "by alice") {
				t.Errorf("%+v", f.Item)
			}
		}
		if j.Parts[0].Status != transfer.Cancelled {
			t.Errorf("%+v", j.Parts[0])
		}
	})
}

// The pause after an attempt that counts is set by the job; after other attempts by the queue.
func TestRetryDelay(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.must(w.SubmitJob(w.ctx, Job{ID: "j", Params: "{}"}, []JobPart{{To: "B", Tries: 3, Terms: JobTerms{RetryDelay: time.Hour},
			Pairs: []Pair{pairTo(0, "A", "B", "x")}}}))
		w.report(failure(w.lease("B", 1)[0], transfer.Transient, "no"))
		_, files := w.jobFiles("j")
		if d := files[0].NotBefore.Sub(w.clock()); d != time.Hour {
			t.Errorf("%v", d)
		}
	})
}

// Attempts end together: a page ends after all attempts of the same moment, so that the next page
// has the rest.
func TestPagesOfAttempts(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.must(w.SubmitJob(w.ctx, Job{ID: "j", Params: "{}"}, []JobPart{{To: "B", Tries: 9, Pairs: []Pair{pairTo(0, "A", "B", "x"),
			pairTo(1, "A", "B", "y"), pairTo(2, "A", "B", "z")}}}))
		for _, l := range w.lease("B", 3) {
			w.report(failure(l, transfer.Transient, "no"))
		}
		seen := map[int64]int{}
		var after time.Time
		for range 5 {
			page, err := w.Read.Since(w.ctx, after, 2)
			w.must(err)
			for _, a := range page {
				seen[a.Item]++
				after = a.End
			}
		}
		if len(seen) != 3 {
			t.Errorf("attempts at files: %v", seen)
		}
		for item, n := range seen {
			if n != 1 {
				t.Errorf("file %d has %d attempts", item, n)
			}
		}
	})
}
