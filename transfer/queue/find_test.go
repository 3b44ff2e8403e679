package queue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/transfer"
)

// keysOfTest returns keys from the parameters of a job. A job has the state of its first request.
func keysOfTest(j *JobState) (k JobKeys) {
	_ = json.Unmarshal([]byte(j.Params), &k)
	for _, p := range j.Parts {
		k.State = string(p.Status)
	}
	return k
}

// submitted adds a job with a file at each of some destinations.
func (w *world) submitted(id, by string, k JobKeys, dests ...string) {
	w.t.Helper()
	params, err := json.Marshal(k)
	w.must(err)
	var parts []JobPart
	for i, dest := range dests {
		parts = append(parts, JobPart{To: dest, Tries: 1, Pairs: []Pair{pairTo(i, "A", dest, id)}})
	}
	w.must(w.SubmitJob(w.ctx, Job{ID: id, By: by, VO: k.VO, Params: string(params)}, parts))
}

// found returns the ids of the jobs that f selects.
func (w *world) found(f JobFilter) []string {
	w.t.Helper()
	f.Limit = cmp.Or(f.Limit, 1000)
	all, err := w.Read.FindJobs(w.ctx, f)
	w.must(err)
	ids := []string{}
	for _, j := range all {
		ids = append(ids, j.ID)
	}
	return ids
}

// Searches select the same jobs, in the same order, as a comparison with each job.
func TestFindJobs(t *testing.T) {
	each(t, Options{Keys: keysOfTest}, func(w *world) {
		rnd := rand.New(rand.NewPCG(1, 2))
		one := func(all ...string) string { return all[rnd.IntN(len(all))] }
		for i := range 60 {
			k := JobKeys{User: one("", "", "/DC=ada", "bob"), VO: one("atlas", "cms"), Credential: one("x", "y"),
				Source: one("", "https://a", "root://a"), Dest: one("https://b", "https://c")}
			dest := one("B", "C")
			w.submitted(fmt.Sprintf("job%02d", i), one("ada", "bob"), k, dest)
			if i%4 > 0 {
				w.pass(time.Minute)
			}
			if i%3 > 0 {
				leases := w.lease(dest, 1)
				if len(leases) > 0 && i%3 == 2 {
					w.report(failure(leases[0], transfer.Permanent, "no such file"))
				} else if len(leases) > 0 {
					w.report(success(leases[0]))
				}
			}
		}
		var ids []string
		for i := range 60 {
			ids = append(ids, fmt.Sprintf("job%02d", i))
		}
		all, err := w.Read.Jobs(w.ctx, ids)
		w.must(err)
		slices.SortFunc(all, func(a, b *JobState) int { return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(b.ID, a.ID)) })
		some := 0
		for range 400 {
			f := JobFilter{By: one("", "", "ada"), User: one("", "", "", "bob", "/DC=ada"), VO: one("", "cms"), Credential: one("", "", "x"),
				Source: one("", "", "https://a"), Dest: one("", "", "https://b"), Open: rnd.IntN(2) == 0}
			if f.User != "" {
				f.By = ""
			}
			f.Ended = [][]string{nil, {string(transfer.Completed)}, {string(transfer.Failed)},
				{string(transfer.Completed), string(transfer.Failed)}}[rnd.IntN(4)]
			if rnd.IntN(3) == 0 {
				f.Since = start.Add(time.Duration(rnd.IntN(60)) * time.Minute)
			}
			if rnd.IntN(3) == 0 {
				f.Fits = func(j *JobState) bool { return j.Made.Minute()%2 == 0 }
			}
			var want []string
			for _, j := range all {
				p, k := j.Parts[0], keysOfTest(j)
				is := func(asked string, values ...string) bool { return asked == "" || slices.Contains(values, asked) }
				open := !p.Status.Ended()
				if is(f.By, j.By) && is(f.User, j.By, k.User) && is(f.VO, k.VO) && is(f.Credential, k.Credential) && is(f.Source, k.Source) &&
					is(f.Dest, k.Dest) && (open && f.Open && (f.Fits == nil || f.Fits(j)) ||
					!open && slices.Contains(f.Ended, string(p.Status)) && !p.Ended.Before(f.Since)) {
					want = append(want, j.ID)
				}
			}
			if got := w.found(f); !slices.Equal(got, want) {
				t.Fatalf("%+v: %v, want %v", f, got, want)
			}
			if f.Limit = 3; f.Since.IsZero() && len(want) > 3 {
				if got := w.found(f); !slices.Equal(got, want[:3]) {
					t.Fatalf("%+v: %v, want %v", f, got, want[:3])
				}
			}
			some += len(want)
		}
		if some < 400 {
			t.Errorf("%d jobs were found: the test is blunt", some)
		}
	})
}

// A job ends with the last of its requests, in any order, and is open again when one of its
// requests is.
func TestJobIsReopened(t *testing.T) {
	each(t, Options{Keys: keysOfTest}, func(w *world) {
		w.submitted("j", "ada", JobKeys{}, "B", "C")
		open, failed := JobFilter{Open: true}, JobFilter{Ended: []string{string(transfer.Failed)}}
		check := func(isOpen bool) {
			t.Helper()
			if n, m := len(w.found(open)), len(w.found(failed)); (n == 1) != isOpen || (m == 1) == isOpen {
				t.Errorf("%d open, %d failed", n, m)
			}
		}
		for _, dest := range []string{"B", "C"} {
			check(true)
			w.report(failure(w.lease(dest, 1)[0], transfer.Permanent, "no such file"))
		}
		check(false)
		j, _ := w.jobFiles("j")
		_, err := w.Retry(w.ctx, j.Parts[0].ID, "ada", "")
		w.must(err)
		w.work()
		check(true)
		w.report(failure(w.lease("B", 1)[0], transfer.Permanent, "no such file"))
		check(false)
	})
}
