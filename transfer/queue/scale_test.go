package queue

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/tier"
	"weir/lab/dbtest"
	"weir/lab/labtest"
	"weir/transfer"
)

// A request is submitted, resolved, leased in batches and reported done, while other clients read
// it. The bounds for a million files (WEIR_LONG=1) are times.
func TestScale(t *testing.T) {
	tier.Slow(t, "makes thousands of requests")
	long := os.Getenv("WEIR_LONG") == "1"
	files := 20_000
	if long {
		files = 1_000_000
	}
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		s := scaled(t, open(), files)
		if long {
			if s.total > 5*time.Minute {
				t.Errorf("%v is more than five minutes", s.total)
			}
			if p := percentile(s.questions, 99); p > 200*time.Millisecond {
				t.Errorf("one question in a hundred took longer than %v", p)
			}
			if n := labtest.PeakMemory(t); n > 500 {
				t.Errorf("%d MB of memory are more than 500", n)
			}
		}
		s.audit()
	})
}

// The last tenth of the files of a request costs no more than five times as much as the first.
func TestLastFilesCostWhatTheFirstDid(t *testing.T) {
	tier.Quiet(t, "the cost of a file does not depend on how many are done")
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		if s := scaled(t, open(), 20_000); s.tenths[9] > 5*s.tenths[0] {
			t.Errorf("the last tenth took %v, the first %v", s.tenths[9], s.tenths[0])
		}
	})
}

// scaled runs the request of TestScale.
func scaled(t *testing.T, d *db.DB, files int) *scale {
	t.Helper()
	s := &scale{world: newWorld(t, d, Options{}), files: files}
	s.site("A", true, -1)
	s.site("B", true, -1)
	s.site("C", true, -1)
	s.dataset("/big", files, "A", "B")
	s.run(500)
	t.Logf("%d files in %.1f s: submitted in %.2f s, written down after %.1f s, %.0f files/s; first tenth %.2f s, last %.2f s; questions: "+
		"%s; memory at most %d MB",
		files, s.total.Seconds(), s.submitted.Seconds(), s.resolved.Seconds(), float64(files)/s.total.Seconds(), s.tenths[0].Seconds(),
		s.tenths[9].Seconds(), s.asked(), labtest.PeakMemory(t))
	return s
}

type scale struct {
	*world
	files                      int
	id                         int64
	submitted, resolved, total time.Duration
	tenths                     [10]time.Duration
	questions                  []time.Duration
}

func (s *scale) run(n int) {
	s.t.Helper()
	begin := time.Now()
	r, err := s.Submit(s.ctx, "alice", transfer.Submission{Dataset: "/big", To: "C", Approve: true})
	s.must(err)
	s.id, s.submitted = r.ID, time.Since(begin)
	written, moved, looked := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	stop := make(chan struct{})
	go func() { written <- s.write(begin) }()
	go func() { moved <- s.move(n, begin) }()
	go func() { looked <- s.look(stop) }()
	s.must(<-written)
	s.must(<-moved)
	s.total = time.Since(begin)
	close(stop)
	s.must(<-looked)
	if r := s.get(s.id); r.Status != transfer.Completed || r.Count.Done != int64(s.files) {
		s.t.Errorf("%+v", r)
	}
}

func (s *scale) write(begin time.Time) error {
	for {
		more, err := s.Work(s.ctx, 1000)
		if err != nil || !more {
			s.resolved = time.Since(begin)
			return err
		}
	}
}

// move leases and reports until all files are done.
func (s *scale) move(n int, begin time.Time) error {
	last, tenth := begin, 0
	for moved := 0; moved < s.files; {
		found, err := s.Waiting(s.ctx, Want{Dest: "C", N: n})
		if err != nil {
			return err
		}
		var choices []Choice
		for _, c := range found {
			choices = append(choices, Choice{Item: c.ID, Source: c.Replicas[0].Site, Mode: transfer.Pull})
		}
		leases, err := s.Take(s.ctx, choices)
		if err != nil {
			return err
		}
		var outcomes []transfer.Outcome
		for _, l := range leases {
			outcomes = append(outcomes, success(l))
		}
		if _, err := s.Report(s.ctx, "", outcomes); err != nil {
			return err
		}
		moved += len(outcomes)
		for tenth < 10 && moved >= (tenth+1)*s.files/10 {
			s.tenths[tenth] = time.Since(last)
			last = time.Now()
			tenth++
		}
	}
	return nil
}

// look sends the queries of users, again and again.
func (s *scale) look(stop chan struct{}) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	states := []transfer.State{"", transfer.Queued, transfer.Done, transfer.Leased, transfer.FileFailed, transfer.NoSource}
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		case <-tick.C:
		}
		begin := time.Now()
		var err error
		switch i % 3 {
		case 0:
			_, err = s.Read.Get(s.ctx, s.id)
		case 1:
			_, err = s.Read.List(s.ctx, transfer.Filter{})
		default:
			_, _, err = s.Read.Items(s.ctx, s.id, states[i/3%len(states)], s.id*perRequest+int64(i*7919%s.files), 100)
		}
		if err != nil {
			return err
		}
		s.questions = append(s.questions, time.Since(begin))
	}
}

func (s *scale) asked() string {
	var parts []string
	for _, p := range []int{50, 99, 100} {
		parts = append(parts, strconv.Itoa(p)+"% within "+percentile(s.questions, p).Round(time.Millisecond/10).String())
	}
	return strings.Join(parts, ", ")
}

func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[min(len(all)*p/100, len(all)-1)]
}
