package queue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/dbtest"
	"weir/transfer"
)

// The invariants hold after each step of users, movers, sites and the clock, in any order, and in
// the end every request ends. A failure reports its seed; WEIR_SEED=n runs only the seed n.
func TestRandom(t *testing.T) {
	seeds := []uint64{1, 2, uint64(time.Now().UnixNano())}
	if text := os.Getenv("WEIR_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		seeds = []uint64{n}
	}
	for i, seed := range seeds {
		t.Run("seed", func(t *testing.T) {
			t.Parallel()
			if i < len(seeds)-1 {
				tier.Slow(t, "one seed will do")
			}
			dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
				p := &play{Rand: rand.New(rand.NewPCG(seed, 0)), items: map[int64]transfer.Item{}, requests: map[int64]transfer.Request{},
					retried: map[int64]bool{}}
				p.world = newWorld(t, open(), Options{Rand: p.Float64, Shares: map[string]float64{"x": 3}})
				p.first = 3
				defer func() {
					if t.Failed() {
						t.Logf("WEIR_SEED=%d, step %d: %s", seed, p.step, p.did)
					}
				}()
				p.run(400)
			})
		})
	}
}

// A play is a random sequence of steps.
type play struct {
	*world
	*rand.Rand
	step     int
	did      string
	ids      []int64
	given    []transfer.Lease // all leases so far
	told     []transfer.Outcome
	items    map[int64]transfer.Item // after the previous step
	requests map[int64]transfer.Request
	retried  map[int64]bool // in this step
}

func (p *play) run(steps int) {
	for _, s := range sites {
		p.site(s, true, -1)
	}
	p.dataset("/d", 12, "A", "B")
	p.dataset("/e", 12, "A")
	p.register("/e", 2, 8, "D")
	p.register("/d", 8, 11, "C")
	acts := []func(){p.submits, p.decides, p.works, p.works, p.works, p.takes, p.takes, p.takes, p.takes, p.takes, p.reports, p.reports,
		p.reports, p.reports, p.reports, p.reports, p.renews, p.passes, p.passes, p.passes, p.moves, p.spoils, p.again}
	for p.step = range steps {
		acts[p.IntN(len(acts))]()
		p.check()
	}
	p.drain()
}

var sites = []string{"A", "B", "C", "D", "E", "F", "G", "H"}

func oneOf[T any](p *play, of ...T) T { return of[p.IntN(len(of))] }

// allowed accepts refusals, and fails the test for any other error.
func (p *play) allowed(err error) {
	p.t.Helper()
	if err != nil && !errors.Is(err, ErrRefused) && !errors.Is(err, ErrNotFound) {
		p.t.Fatal(err)
	}
}

func (p *play) submits() {
	s := transfer.Submission{Dataset: oneOf(p, "/d", "/e"), To: oneOf(p, sites...), Tries: 1 + p.IntN(3), Approve: p.IntN(4) > 0,
		Share: oneOf(p, "", "x", "y"), Priority: p.IntN(3)}
	if p.IntN(3) == 0 {
		for range 1 + p.IntN(3) {
			s.Files = append(s.Files, fileName(s.Dataset, p.IntN(12)))
		}
	}
	if p.IntN(4) == 0 {
		s.From = []string{oneOf(p, sites...)}
	}
	if p.IntN(4) == 0 {
		s.Expires = p.clock().Add(time.Duration(1+p.IntN(2000)) * time.Second)
	}
	if p.IntN(4) == 0 {
		s.Key = oneOf(p, "k1", "k2")
	}
	p.did = fmt.Sprintf("submit %+v", s)
	r, err := p.Submit(p.ctx, "alice", s)
	p.allowed(err)
	if err == nil && !slices.Contains(p.ids, r.ID) {
		p.ids = append(p.ids, r.ID)
	}
}

func (p *play) decides() {
	if len(p.ids) == 0 {
		return
	}
	id := oneOf(p, p.ids...)
	var err error
	switch p.IntN(10) {
	case 0:
		p.did = fmt.Sprint("reject ", id)
		_, err = p.Reject(p.ctx, id, "bob", "no")
	case 1:
		p.did = fmt.Sprint("cancel ", id)
		_, err = p.Cancel(p.ctx, id, "bob", "enough")
	case 2, 3, 4:
		p.did = fmt.Sprint("retry ", id)
		if _, err = p.Retry(p.ctx, id, "bob", "once more"); err == nil {
			p.retried[id] = true
		}
	default:
		p.did = fmt.Sprint("approve ", id)
		_, err = p.Approve(p.ctx, id, "bob", "yes")
	}
	p.allowed(err)
}

func (p *play) works() {
	n := 1 + p.IntN(12)
	p.did = fmt.Sprint("work ", n)
	_, err := p.Work(p.ctx, n)
	p.must(err)
}

func (p *play) takes() {
	w := Want{Dest: oneOf(p, sites...), N: 1 + p.IntN(6)}
	if waiting, err := p.Destinations(p.ctx); err == nil && len(waiting) > 0 {
		w.Dest = oneOf(p, waiting...)
	}
	if p.IntN(4) == 0 {
		w.Busy = []string{oneOf(p, sites...)}
	}
	found, err := p.Waiting(p.ctx, w)
	p.must(err)
	var choices []Choice
	for _, c := range found {
		if len(c.Replicas) == 0 || c.State != transfer.Queued {
			p.t.Errorf("candidate %+v", c)
		}
		for _, r := range c.Replicas {
			if r.Site == w.Dest && len(c.Replicas) > 1 || slices.Contains(w.Busy, r.Site) {
				p.t.Errorf("candidate %+v", c)
			}
		}
		if p.IntN(5) > 0 {
			choices = append(choices, Choice{Item: c.ID, Source: oneOf(p, c.Replicas...).Site, Mode: modeOf(c)})
		}
	}
	if len(p.given) > 0 && p.IntN(4) == 0 { // invalid choices, and choices that may be outdated
		choices = append(choices, Choice{Item: oneOf(p, p.given...).Item, Source: oneOf(p, sites...)}, Choice{Item: 17, Source: "A"})
	}
	p.did = fmt.Sprintf("take %+v of %+v", choices, w)
	leases, err := p.Take(p.ctx, choices)
	p.must(err)
	for _, l := range leases {
		if slices.ContainsFunc(p.given, func(g transfer.Lease) bool { return g.Item == l.Item && g.Epoch >= l.Epoch }) {
			p.t.Errorf("epoch %d of %d was given twice", l.Epoch, l.Item)
		}
	}
	p.given = append(p.given, leases...)
}

var faults = []transfer.ErrorClass{transfer.Transient, transfer.Unreachable, transfer.Throttled, transfer.SourceBad, transfer.DestFull,
	transfer.Denied, transfer.Checksum, transfer.Permanent, transfer.LeaseLost,
	transfer.Occupied, transfer.RequestCancelled, transfer.MoverStopped, transfer.Unverified, "nonsense"}

func (p *play) reports() {
	var told []transfer.Outcome
	for range 1 + p.IntN(4) {
		if len(p.given) == 0 {
			return
		}
		l := oneOf(p, p.given...)
		if held, err := p.Leases(p.ctx); err == nil && len(held) > 0 && p.IntN(4) > 0 {
			l = oneOf(p, held...)
		}
		o := success(l)
		o.Begin, o.End = p.clock().Add(-time.Second), p.clock()
		switch p.IntN(8) {
		case 0, 1, 2, 3:
			o = failure(l, oneOf(p, faults...), "it went wrong")
			o.After = time.Duration(p.IntN(100)) * time.Second
		case 4:
			oneOf(p, func() { o.Size++ }, func() { o.Adler = "0badbad0" }, func() { o.Verified = false }, func() { o.Epoch++ },
				func() { o.Item += 7 }, func() { o.Existed = true })()
		}
		told = append(told, o)
	}
	p.did = fmt.Sprintf("report %+v", told)
	p.report(told...)
	p.told = append(p.told, told...)
}

// again repeats an earlier report.
func (p *play) again() {
	if len(p.told) == 0 {
		return
	}
	o := oneOf(p, p.told...)
	p.did = fmt.Sprintf("report once more %+v", o)
	p.report(o)
}

func (p *play) renews() {
	var all []transfer.Progress
	for _, l := range p.given {
		if p.IntN(3) == 0 {
			all = append(all, transfer.Progress{Item: l.Item, Epoch: l.Epoch, Stage: transfer.Moving, Moved: p.Int64N(l.Size + 1)})
		}
	}
	p.did = "renew"
	_, _, err := p.Renew(p.ctx, all)
	p.must(err)
}

func (p *play) passes() {
	d := time.Duration(1+oneOf(p, p.IntN(10), p.IntN(10), p.IntN(200))) * time.Second
	p.did = fmt.Sprint("pass ", d)
	p.pass(d)
}

func (p *play) moves() {
	s := oneOf(p, sites...)
	up := p.IntN(5) > 0
	free := oneOf(p, int64(-1), -1, 1500, 5000)
	p.did = fmt.Sprint("site ", s, up, free)
	if up {
		p.site(s, true, free)
	} else {
		p.down(s, "switched off")
	}
}

func (p *play) spoils() {
	if p.IntN(5) > 0 {
		return
	}
	file, site := fileName("/d", p.IntN(12)), oneOf(p, sites...)
	p.did = "spoil " + file + " at " + site
	p.spoil(file, site, "eaten by mice")
}

// check compares the state with the invariants and with the state before the step.
func (p *play) check() {
	p.t.Helper()
	p.audit()
	for _, id := range p.ids {
		r := p.get(id)
		was := p.requests[id]
		if was.Status.Ended() && was.Status != "" && was.Status != r.Status && !p.retried[id] {
			p.t.Errorf("request %d was %s and is %s", id, was.Status, r.Status)
		}
		p.requests[id] = r
		for _, one := range p.all(id) {
			before, known := p.items[one.ID]
			if known && before.State.Final() && before.State != one.State && !p.retried[id] &&
				(r.Status.Ended() || before.State == transfer.Done || before.State == transfer.Skipped) {
				p.t.Errorf("file %d was %s and is %s", one.ID, before.State, one.State)
			}
			if (before.State == transfer.Done || before.State == transfer.Skipped) && one.State != before.State {
				p.t.Errorf("file %d was %s and is %s", one.ID, before.State, one.State)
			}
			if one.State == transfer.Done && !slices.ContainsFunc(p.told, func(o transfer.Outcome) bool {
				return o.Item == one.ID && o.Fault == "" && o.Verified && o.Size == one.Size && o.Adler == one.Adler
			}) {
				p.t.Errorf("file %d is done, and nobody said so", one.ID)
			}
			if (one.State == transfer.FileFailed || one.State == transfer.FileCancelled) &&
				(one.Reason == "" || strings.Contains(one.Reason, "not known why")) {
				p.t.Errorf("file %d is %s, and why is %q", one.ID, one.State, one.Reason)
			}
			p.items[one.ID] = one
		}
	}
	clear(p.retried)
	if p.t.Failed() {
		p.t.FailNow()
	}
}

// drain lets all requests end: sites are up, and movers succeed.
func (p *play) drain() {
	p.did = "drain"
	for range 300 {
		open := false
		for _, id := range p.ids {
			r := p.get(id)
			if r.Status == transfer.Awaiting {
				_, err := p.Approve(p.ctx, id, "bob", "")
				p.must(err)
			}
			open = open || !r.Status.Ended()
		}
		if !open {
			p.audit()
			return
		}
		p.work()
		for _, s := range sites {
			p.site(s, true, -1)
			for _, l := range p.lease(s, 100) {
				p.report(success(l))
			}
		}
		p.pass(5 * time.Minute)
	}
	for _, id := range p.ids {
		p.t.Errorf("%+v %+v", p.get(id), p.all(id))
	}
}
