package queue

import (
	"fmt"
	"os"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/tier"
	"weir/lab/dbtest"
	"weir/transfer"
)

// Many small jobs are dispatched nearly as fast as a few large jobs with the same files: the cost
// of a file does not depend on the number of open jobs. WEIR_LONG=1 has 20,000 jobs.
func TestManyJobs(t *testing.T) {
	tier.Quiet(t, "the cost of a file does not depend on how many jobs are open")
	dests, jobs := 5, 1000
	if os.Getenv("WEIR_LONG") == "1" {
		dests, jobs = 50, 20_000
	}
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		w := newWorld(t, open(), Options{})
		for i := range dests {
			w.site(fmt.Sprintf("S%02d", i), true, -1)
		}
		few := w.dispatchJobs(dests, dests, 5*jobs/dests)
		many := w.dispatchJobs(dests, jobs, 5)
		t.Logf("%d files at %d destinations: %v in %d jobs, %v in %d", 5*jobs, dests, few, dests, many, jobs)
		if many > 6*few {
			t.Errorf("%d jobs took %v, %d jobs with the same files %v", jobs, many, dests, few)
		}
	})
}

// dispatchJobs returns the time to lease all files of jobs, and to report them as done.
func (w *world) dispatchJobs(dests, jobs, files int) time.Duration {
	name := func(i int) string { return fmt.Sprintf("S%02d", i%dests) }
	prefix := fmt.Sprintf("%d-", files)
	for i := range jobs {
		p := JobPart{To: name(i)}
		for k := range files {
			path := fmt.Sprintf("%s%d/%d", prefix, i, k)
			p.Pairs = append(p.Pairs, Pair{Number: k, Size: 1000, Adler: "04000401", Dest: "https://" + path, Path: path,
				Sources: []PairSource{{Site: name(i + 1 + i/dests%(dests-1)), Path: path, URL: "https://" + path}}, Params: "{}"})
		}
		w.must(w.SubmitJob(w.ctx, Job{ID: fmt.Sprint(prefix, i), By: "rucio", Params: "{}"}, []JobPart{p}))
	}
	begin := time.Now()
	for moved := 0; moved < jobs*files; {
		all, err := w.Destinations(w.ctx)
		w.must(err)
		for _, dest := range all {
			found, err := w.Waiting(w.ctx, Want{Dest: dest, N: 64})
			w.must(err)
			var choices []Choice
			for _, c := range found {
				choices = append(choices, Choice{Item: c.ID, Source: c.Replicas[0].Site, Mode: transfer.Third})
			}
			leases, err := w.Take(w.ctx, choices)
			w.must(err)
			var outcomes []transfer.Outcome
			for _, l := range leases {
				outcomes = append(outcomes, success(l))
			}
			_, err = w.Report(w.ctx, "", outcomes)
			w.must(err)
			moved += len(outcomes)
		}
	}
	return time.Since(begin)
}
