package workload

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/unit"
	"weir/storage"
)

// aJob returns a job of 10 events of 100 bytes in pages of 30: 30, 30, 30, 10.
func aJob(change func(*Job)) Work {
	j := Job{Access: Direct, Events: 10, Event: 100, Page: 30, Skim: 1, Slim: 1}
	if change != nil {
		change(&j)
	}
	return Work{Kind: "job", Pick: "random", Sum: "crc32c", Job: &j}
}

// A request is an op of a job and its Piece.
type request struct {
	storage.Op
	Piece
}

// requests returns the requests of the next job of s.
func requests(t testing.TB, s Workload, r *rand.Rand, most int) (all []request) {
	t.Helper()
	var task Task
	s.Next(r, &task)
	for len(all) < most {
		op := &task.Ops[0]
		p, more := task.Job.Next(r, op)
		if !more {
			if p != (Piece{}) {
				t.Fatalf("after the last request %+v", p)
			}
			return all
		}
		q := request{*op, p}
		q.Ranges = append([]storage.Range(nil), op.Ranges...)
		all = append(all, q)
	}
	return all
}

// Each page is read once, one after the other; the last page of an event is shorter, and the last
// request closes the file.
func TestAJobReadsEachPageOnce(t *testing.T) {
	w := aJob(func(j *Job) { j.Compute = Span{Fixed: 7} })
	all := requests(t, mustNew(t, w, fileSet(3, 5000), 0), rng(1), 1000)
	if len(all) != 40 {
		t.Fatalf("%d requests, want 40", len(all))
	}
	at := all[0].Ranges[0].Offset
	if at%100 != 0 || at > 4000 {
		t.Errorf("the first event lies at %d of 5000", at)
	}
	for i, q := range all {
		length, events := int64(30), int64(0)
		if i%4 == 3 {
			length, events = 10, 1
		}
		if len(q.Ranges) != 1 || q.Ranges[0] != (storage.Range{Offset: at, Length: length}) || q.Bytes != length {
			t.Errorf("request %d asks for %v (%d bytes), want %d at %d", i, q.Ranges, q.Bytes, length, at)
		}
		if q.Events != events || q.Compute != time.Duration(7*events) || q.Keep != (i < 39) || q.Kind != storage.Read || q.Size != 5000 {
			t.Errorf("request %d: %+v", i, q)
		}
		at += length
	}
}

// A skim reads exactly its share, with equal chances for all events; a slim reads pages at even
// distances, beginning with the first.
func TestSkimAndSlim(t *testing.T) {
	s, r := mustNew(t, aJob(func(j *Job) { j.Skim, j.Slim = .3, .5 }), fileSet(1, 1000), 0), rng(2)
	var seen [10]int
	const jobs = 3000
	for range jobs {
		all := requests(t, s, r, 100)
		last := int64(-1)
		for i, q := range all {
			at := q.Ranges[0].Offset
			if at <= last || at%100 != int64(i%2)*60 {
				t.Fatalf("request %d of %d is at %d, after %d", i, len(all), at, last)
			}
			last = at
			if i%2 == 0 {
				seen[at/100]++
			}
		}
		if len(all) != 6 {
			t.Fatalf("%d requests, want 2 pages of 3 events", len(all))
		}
	}
	for i, n := range seen { // binomial: 900, standard deviation 25
		if math.Abs(float64(n)-.3*jobs) > 5*25 {
			t.Errorf("event %d was read %d times, want about %v", i, n, .3*jobs)
		}
	}
}

// Vectors hold as many pages as they may, and read-ahead requests hold adjoining pages.
func TestRequestsOfSeveralPages(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Job)
		want   []int64 // bytes of each request
		parts  int
	}{
		"vector":             {func(j *Job) { j.Vector, j.Events = 3, 2 }, []int64{90, 70, 40}, 3},
		"vector of skims":    {func(j *Job) { j.Vector, j.Slim = 8, .25 }, []int64{240, 60}, 8},
		"read-ahead":         {func(j *Job) { j.Ahead, j.Events = 75, 2 }, []int64{60, 70, 70}, 1},
		"one page ahead":     {func(j *Job) { j.Ahead, j.Events = 30, 1 }, []int64{30, 30, 30, 10}, 1},
		"everything ahead":   {func(j *Job) { j.Ahead = 5000 }, []int64{1000}, 1},
		"slim, read-ahead":   {func(j *Job) { j.Ahead, j.Events, j.Slim = 5000, 2, .5 }, []int64{30, 30, 30, 30}, 1},
		"whole events":       {func(j *Job) { j.Page, j.Events = 100, 3 }, []int64{100, 100, 100}, 1},
		"vector and ahead":   {func(j *Job) { j.Vector, j.Ahead, j.Events = 4, 30, 2 }, []int64{100, 100}, 4},
		"one byte, one page": {func(j *Job) { j.Page, j.Event, j.Events = 1, 1, 2 }, []int64{1, 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := aJob(c.change)
			all := requests(t, mustNew(t, w, fileSet(1, 1000), 0), rng(1), 100)
			var got []int64
			events := int64(0)
			for _, q := range all {
				checkRanges(t, q.Ranges, 1000)
				got = append(got, q.Bytes)
				events += q.Events
				if len(q.Ranges) > c.parts {
					t.Errorf("%d ranges in a request, want up to %d", len(q.Ranges), c.parts)
				}
			}
			if len(got) != len(c.want) || events != int64(w.Job.Events) {
				t.Fatalf("requests of %v bytes and %d events, want %v and %d", got, events, c.want, w.Job.Events)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Fatalf("requests of %v bytes, want %v", got, c.want)
				}
			}
			if takes := w.Job.Takes(); takes.Requests != int64(len(got)) || takes.Events != events {
				t.Errorf("it is said to take %+v, and is %d requests", takes, len(got))
			}
		})
	}
}

func TestTheCopyOfAStagedJobIsOfTheWholeFile(t *testing.T) {
	w := aJob(func(j *Job) { j.Access, j.Copy = Staged, unit.Duration(time.Hour) })
	w.Verify, w.Chunk, w.InFlight, w.Timeout = 1, 1<<20, 8, unit.Duration(time.Second)
	var task Task
	mustNew(t, w, fileSet(1, 1000), 0).Next(rng(1), &task)
	task.Job.Whole(&task.Ops[0])
	op := task.Ops[0]
	if op.Ranges != nil || op.Size != 1000 || op.Chunk != 1<<20 || op.Ahead != 8 || op.Timeout != time.Hour || op.Sum != "crc32c" {
		t.Errorf("the copy is %+v", op)
	}
	if task.Job.Next(rng(1), &op); op.Chunk != 30 || op.Timeout != time.Second || op.Sum != "crc32c" {
		t.Errorf("a request is %+v", op)
	}
}

func TestFilesThatAreTooShort(t *testing.T) {
	w := aJob(nil)
	files := []File{{Path: "a", Size: 150}, {Path: "b", Size: 999}}
	if err := Enough(w, files); err == nil || !strings.Contains(err.Error(), "10 events of 100B") ||
		!strings.Contains(err.Error(), "largest of the 2 files holds 9 events") {
		t.Errorf("no file is large enough: %v", err)
	}
	if err := Enough(w, append(files, File{Size: 1000})); err != nil {
		t.Errorf("a file of 1000 bytes is not enough: %v", err)
	}
	if err := Enough(Work{Kind: "read"}, files); err != nil {
		t.Errorf("reads need no events: %v", err)
	}
	w.Pick = "sequential"
	s := mustNew(t, w, append(files, File{Path: "c", Size: 1000}, File{Path: "d", Size: -1}), 0)
	var task Task
	for _, short := range []string{"1 event of", "9 events of", "", ""} {
		s.Next(rng(1), &task)
		err := task.Job.Fits()
		if (err != nil) != (short != "") || err != nil && (!errors.Is(err, storage.ErrShort) || !strings.Contains(err.Error(), short)) {
			t.Errorf("a job on %s: %v, want %q", task.File.Path, err, short)
		}
	}
}

func TestJobsAreChecked(t *testing.T) {
	for key, changes := range map[string][]func(*Job){
		"job.access": {func(j *Job) { j.Access = "" }, func(j *Job) { j.Access = "stagd" }},
		"job.events": {func(j *Job) { j.Events = 0 }, func(j *Job) { j.Events = -1 }, func(j *Job) { j.Events = math.MaxInt },
			func(j *Job) { j.Events, j.Event = maxEvents, maxEvent }},
		"job.event_size": {func(j *Job) { j.Event = 0 }, func(j *Job) { j.Event = math.MaxInt64 }},
		"job.page": {func(j *Job) { j.Page = 0 }, func(j *Job) { j.Page = -5 }, func(j *Job) { j.Page = 101 },
			func(j *Job) { j.Event, j.Page = maxEvent, 1 }},
		"job.skim":         {func(j *Job) { j.Skim = 0 }, func(j *Job) { j.Skim = 1.1 }, func(j *Job) { j.Skim = unit.Fraction(math.NaN()) }},
		"job.slim":         {func(j *Job) { j.Slim = -1 }},
		"job.vector":       {func(j *Job) { j.Vector = -1 }, func(j *Job) { j.Vector = MaxParts + 1 }},
		"job.read_ahead":   {func(j *Job) { j.Ahead = 29 }, func(j *Job) { j.Ahead = -1 }, func(j *Job) { j.Ahead = 1 << 40 }},
		"job.compute":      {func(j *Job) { j.Compute.Fixed = -1 }, func(j *Job) { j.Compute.Fixed = math.MaxInt64 }},
		"job.burn":         {func(j *Job) { j.Burn = true }},
		"job.scratch":      {func(j *Job) { j.Scratch = "/tmp" }},
		"job.copy_timeout": {func(j *Job) { j.Copy = 1 }, func(j *Job) { j.Access, j.Copy = Staged, -1 }},
	} {
		for i, change := range changes {
			err := Check(aJob(change))
			var k *KeyError
			if !errors.As(err, &k) || k.Key != key {
				t.Errorf("change %d of %s: %v", i, key, err)
			}
		}
	}
	for key, change := range map[string]func(*Work){
		"keep_open": func(w *Work) { w.KeepOpen = true }, "part": func(w *Work) { w.Part = &Part{Size: 1} },
		"chunk":     func(w *Work) { w.Chunk = 1 },
		"in_flight": func(w *Work) { w.InFlight = 1 }, "sync": func(w *Work) { w.Sync = true },
		"mix": func(w *Work) { w.Mix = map[string]float64{"read": 1} },
	} {
		w := aJob(nil)
		change(&w)
		var k *KeyError
		if err := Check(w); !errors.As(err, &k) || k.Key != key {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, w := range []Work{aJob(nil), aJob(func(j *Job) { j.Access, j.Scratch, j.Copy = Staged, "/tmp", 1 }),
		aJob(func(j *Job) { j.Burn, j.Compute.Exponential = true, 1 }), {Kind: "command-job"}} {
		if err := Check(w); err != nil {
			t.Error(err)
		}
	}
}

func TestRequestsOfJobsAllocateNothing(t *testing.T) {
	for name, change := range map[string]func(*Job){
		"pages": nil, "vector": func(j *Job) { j.Vector, j.Skim, j.Slim = 4, .5, .5 }, "ahead": func(j *Job) { j.Ahead = 60 },
		"computing": func(j *Job) { j.Compute.Exponential = 1000 },
	} {
		w := aJob(change)
		w.Verify = .1
		s, r := mustNew(t, w, fileSet(5, 5000), 0), rng(1)
		var task Task
		whole := func() {
			s.Next(r, &task)
			for more := true; more; _, more = task.Job.Next(r, &task.Ops[0]) {
			}
		}
		whole()
		if n := testing.AllocsPerRun(100, whole); n != 0 {
			t.Errorf("%s: %v allocations a job, want 0", name, n)
		}
	}
}

// FuzzJob checks that jobs that Check accepts request bytes of the file, in order, and go through
// the expected number of events.
func FuzzJob(f *testing.F) {
	f.Add(10, int64(100), int64(30), .5, .5, 3, int64(60), int64(5000), uint64(1))
	f.Add(1, int64(1), int64(1), 1., 1., 0, int64(0), int64(1), uint64(2))
	f.Add(math.MaxInt, int64(math.MaxInt64), int64(math.MaxInt64), math.NaN(), math.Inf(1), -1, int64(math.MaxInt64), int64(-1), uint64(3))
	f.Add(maxEvents, int64(maxEvent), int64(8192), 1e-9, 1e-9, MaxParts, int64(1<<20), int64(-1), uint64(4))
	f.Fuzz(func(t *testing.T, events int, event, page int64, skim, slim float64, vector int, ahead, size int64, seed uint64) {
		w := aJob(func(j *Job) {
			*j = Job{Access: Direct, Events: events, Event: unit.Size(event), Page: unit.Size(page), Skim: unit.Fraction(skim),
				Slim: unit.Fraction(slim), Vector: vector, Ahead: unit.Size(ahead)}
		})
		w.Job.Takes()
		if Check(w) != nil || skim < 1e-3 && events > 1e6 { // skip visits each omitted event
			return
		}
		s, r := mustNew(t, w, []File{{Path: "a", Size: size}}, 0), rng(seed)
		all := requests(t, s, r, 2000)
		last, through := int64(-1), int64(0)
		for i, q := range all {
			sum := int64(0)
			for _, g := range q.Ranges {
				if g.Offset <= last || g.Length < 1 || g.Length > math.MaxInt64-g.Offset || size >= w.Job.Bytes() && g.Offset+g.Length > size {
					t.Fatalf("request %d: %+v after %d", i, g, last)
				}
				last = g.Offset
				sum += g.Length
			}
			through += q.Events
			if sum != q.Bytes || sum < 1 || !q.Keep != (i == len(all)-1 && len(all) < 2000) && len(all) < 2000 {
				t.Fatalf("request %d of %d: %+v", i, len(all), q)
			}
		}
		if want := share(w.Job.Skim, int64(events)); len(all) < 2000 && through != want || through > want {
			t.Fatalf("through with %d events, want %d", through, want)
		}
	})
}
