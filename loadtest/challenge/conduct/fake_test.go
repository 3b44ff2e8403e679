package conduct

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/control"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/sites"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// fakeSites have files in memory.
type fakeSites struct {
	c        *challenge.Challenge
	manifest sites.Recorder

	mu      *sync.Mutex
	files   map[string]int64 // by site/path: size
	making  func()           // called before a source is made
	removed int

	removing func(path string) // called before a file is removed, with the lock
}

func newFakeSites(c *challenge.Challenge) *fakeSites {
	return &fakeSites{c: c, mu: new(sync.Mutex), files: map[string]int64{}}
}

func (f *fakeSites) open(_ context.Context, o sites.Options) (Sites, error) {
	f.manifest = o.Manifest
	return f, nil
}

func (f *fakeSites) Prepare(ctx context.Context, advance func(done, total int)) error {
	for i := range f.c.Sites {
		name := f.c.Sites[i].Name
		if err := f.manifest.Created(sites.Made{Site: name, Path: "weir-x/source.dat", Size: fakeSize, Seed: 1 << 40}); err != nil {
			return err
		}
		f.put(name+"/weir-x/source.dat", fakeSize)
		if f.making != nil {
			f.making()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		advance(i+1, len(f.c.Sites))
	}
	return nil
}

func (f *fakeSites) put(path string, size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files[path] = size
}

func (f *fakeSites) Source(int, int) inject.File {
	return inject.File{Path: "weir-x/source.dat", Size: fakeSize, Sum: "adler32:00000001"}
}

func (f *fakeSites) Dest(link int, id int64) string {
	return fmt.Sprintf("weir-x/%s-%08d.dat", f.c.Links[link].From, id)
}

func (f *fakeSites) Verify(_ context.Context, site, path string, file inject.File) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := f.files[site+"/"+path]; got != file.Size {
		return false, fmt.Errorf("%w: %d bytes", storage.ErrSize, got)
	}
	return true, nil
}

func (f *fakeSites) Remove(_ context.Context, site, path string) error {
	f.mu.Lock()
	if f.removing != nil {
		f.removing(site + "/" + path)
	}
	delete(f.files, site+"/"+path)
	f.removed++
	f.mu.Unlock()
	return f.manifest.Removed(site, path)
}

// RemoveRest keeps files of the size of foreign ones.
func (f *fakeSites) RemoveRest(ctx context.Context, id int64) error {
	link, _ := f.c.CopyOf(id)
	site, path := f.c.Links[link].To, f.Dest(link, id)
	f.mu.Lock()
	foreign := f.files[site+"/"+path] == foreignSize
	f.mu.Unlock()
	if foreign {
		return f.manifest.Removed(site, path)
	}
	return f.Remove(ctx, site, path)
}

func (f *fakeSites) Clean(ctx context.Context) error {
	left, err := f.manifest.Left()
	for _, m := range left {
		if err == nil {
			err = f.Remove(ctx, m.Site, m.Path)
		}
	}
	return err
}

func (f *fakeSites) Close() error { return nil }

func (f *fakeSites) left() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for path := range f.files {
		all = append(all, path)
	}
	slices.Sort(all)
	return all
}

const (
	fakeSize    = int64(1 << 20)
	foreignSize = int64(7)
)

// fakeInjector moves bytes at a fixed rate per link, shared evenly by its copies.
type fakeInjector struct {
	config inject.Config
	sites  *fakeSites
	rate   []float64 // of each link, bytes/s
	fails  func(id int64) bool
	exists func(id int64) bool // there is a foreign file at the path of the copy
	vague  bool                // the service does not report that as the reason
	lies   func(link int) bool // copies of the link are reported as done, and are not there
	hangs  bool                // copies do not end after Cancel
	health func() inject.Health
	mute   bool          // copies have no progress, and the service verifies them
	lag    time.Duration // age of reports
	away   time.Time     // until then, the service refuses connections
	before func()        // called by Start, may be nil
	stop   chan struct{}
	ended  sync.WaitGroup

	mu      sync.Mutex
	copies  map[int64]*fakeCopy
	started []time.Time
	ids     map[int64]int // number of requests
	moved   []int64       // of each link
	resumed []inject.Copy
}

type fakeCopy struct {
	inject.Copy
	moved float64
}

func newFakeInjector(f *fakeSites, rates ...float64) *fakeInjector {
	return &fakeInjector{sites: f, rate: rates, stop: make(chan struct{}), copies: map[int64]*fakeCopy{}, ids: map[int64]int{},
		moved: make([]int64, len(rates))}
}

func (f *fakeInjector) open(_ context.Context, c inject.Config) (inject.Injector, error) {
	f.config = c
	f.ended.Go(f.run)
	return f, nil
}

func (f *fakeInjector) run() {
	ticks := time.NewTicker(250 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			f.step(0.25)
		case <-f.stop:
			return
		}
	}
}

func (f *fakeInjector) step(seconds float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := make([]int, len(f.rate))
	for _, c := range f.copies {
		n[c.Link]++
	}
	for id, c := range f.copies {
		if f.exists != nil && f.exists(id) {
			f.sites.put(f.sites.c.Links[c.Link].To+"/"+c.Dest, foreignSize)
			delete(f.copies, id)
			f.config.Report(inject.Report{ID: id, At: time.Now(), State: inject.Failed, Class: storage.Other, Reason: "exists", Exists: !f.vague})
			continue
		}
		before := int64(c.moved)
		c.moved = min(c.moved+f.rate[c.Link]*seconds/float64(n[c.Link]), float64(c.Source.Size))
		f.moved[c.Link] += int64(c.moved) - before
		r := inject.Report{ID: id, At: time.Now(), State: inject.Running, Moved: int64(c.moved)}
		if f.mute {
			r.Moved = -1
		}
		if int64(c.moved) >= c.Source.Size {
			r.State, r.Verified = inject.Done, f.mute
			if f.lies == nil || !f.lies(c.Link) {
				f.sites.put(f.sites.c.Links[c.Link].To+"/"+c.Dest, c.Source.Size)
			}
			if f.fails != nil && f.fails(id) {
				r.State, r.Class, r.Reason, r.Site = inject.Failed, storage.ServerFailed, "disk full", f.sites.c.Links[c.Link].To
			}
			delete(f.copies, id)
		}
		r.At = r.At.Add(-f.lag)
		f.config.Report(r)
	}
}

func (f *fakeInjector) Check(context.Context) error {
	if time.Now().Before(f.away) {
		return syscall.ECONNREFUSED
	}
	return nil
}

func (f *fakeInjector) Start(ctx context.Context, copies []inject.Copy) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		f.before()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, c := range copies {
		f.copies[c.ID] = &fakeCopy{Copy: c}
		f.ids[c.ID]++
		f.started = append(f.started, time.Now())
	}
	return nil
}

func (f *fakeInjector) Cancel(_ context.Context, ids []int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if c := f.copies[id]; c != nil && !f.hangs {
			delete(f.copies, id)
			f.config.Report(inject.Report{ID: id, At: time.Now(), State: inject.Cancelled, Moved: int64(c.moved)})
		}
	}
	return nil
}

func (f *fakeInjector) Resume(_ context.Context, copies []inject.Copy) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resumed = append(f.resumed, copies...)
	for _, c := range copies {
		f.config.Report(inject.Report{ID: c.ID, At: time.Now(), State: inject.Failed, Moved: -1, Class: storage.Reset, Reason: "unknown"})
	}
	return nil
}

func (f *fakeInjector) Health() inject.Health {
	if f.health == nil {
		return inject.Health{}
	}
	return f.health()
}

func (f *fakeInjector) Close() error {
	close(f.stop)
	f.ended.Wait()
	return nil
}

// pacer requests copies so that the bytes requested follow the target, with a limit of 8 in flight.
type pacer struct {
	o    control.Options
	last time.Duration
	due  []float64 // bytes
}

func newPacer(o control.Options) Controller { return &pacer{o: o, due: make([]float64, len(o.Links))} }

func (p *pacer) Decide(now time.Duration, seen []control.Seen) []control.Decision {
	all := make([]control.Decision, len(seen))
	for i := range seen {
		size := float64(p.o.Links[i].FileBytes)
		p.due[i] = min(p.due[i]+seen[i].Target*(now-p.last).Seconds(), 2*size)
		all[i] = control.Decision{Allowed: 8, Reason: challenge.Paced}
		for p.due[i] >= size && seen[i].InFlight+all[i].Start < 8 {
			p.due[i] -= size
			all[i].Start++
		}
		if p.due[i] >= size {
			all[i].Reason = challenge.Copies
		}
	}
	p.last = now
	return all
}

// noView shows nothing, and keeps the last status.
type noView struct {
	mu     sync.Mutex
	status []Status
	events []measure.Event
}

func (*noView) Sample(*monitor.Sample) error { return nil }
func (*noView) Advance(string, int, int)     {}
func (*noView) Load()                        {}
func (*noView) End()                         {}
func (v *noView) Status(s Status) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status = append(v.status, s)
}
func (v *noView) Event(e measure.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.events = append(v.events, e)
}

// testChallenge has three sites and links A to B, B to C and C to A of 8 Mbit/s.
func testChallenge(stages ...challenge.Stage) *challenge.Challenge {
	c := &challenge.Challenge{Name: "test", Profile: stages, Verify: true, Seed: 1, Inject: challenge.Injection{By: challenge.Direct},
		Files: challenge.Files{Size: workload.Dist{Fixed: unit.Size(fakeSize)}, Sources: 2}, Timeout: unit.Duration(time.Hour)}
	for _, name := range []string{"A", "B", "C"} {
		c.Sites = append(c.Sites, challenge.Site{Name: name, URL: "https://192.0.2.1/" + name})
	}
	for _, ends := range []string{"AB", "BC", "CA"} {
		l := challenge.Link{From: ends[:1], To: ends[1:], Rate: unit.Bitrate(8 * fakeRate), InFlight: 100, Mode: challenge.Pull}
		c.Links = append(c.Links, l)
	}
	return c
}

// meshChallenge has 11 sites and the 110 links between them, each of 1 Mbit/s.
func meshChallenge(stages ...challenge.Stage) *challenge.Challenge {
	c := testChallenge(stages...)
	c.Sites, c.Links = nil, nil
	for i := range 11 {
		c.Sites = append(c.Sites, challenge.Site{Name: string('A' + rune(i)), URL: "https://192.0.2.1/x"})
	}
	for i := range c.Sites {
		for k := range c.Sites {
			if i != k {
				l := challenge.Link{From: c.Sites[i].Name, To: c.Sites[k].Name, Rate: unit.Bitrate(fakeRate), InFlight: 100}
				c.Links = append(c.Links, l)
			}
		}
	}
	return c
}

const fakeRate = float64(1 << 20) // bytes/s, the target of each link

func stage(length time.Duration, at float64) (s challenge.Stage) {
	s.For = unit.Duration(length)
	setShare(&s.At, at)
	return s
}

func setShare[T ~float64](to *T, share float64) { *to = T(share) }

// record has everything of a run directory.
type record struct {
	intervals []*measure.Interval
	links     []*results.LinkInterval
	transfers []*results.Transfer
	events    []*measure.Event
}

func readRecord(t *testing.T, dir string) (r record) {
	t.Helper()
	run, err := results.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for v, err := range run.Intervals() {
		r.intervals = append(r.intervals, v)
		fatal(t, err)
	}
	for v, err := range run.Links() {
		r.links = append(r.links, v)
		fatal(t, err)
	}
	for v, err := range run.Transfers() {
		r.transfers = append(r.transfers, v)
		fatal(t, err)
	}
	for v, err := range run.Events() {
		r.events = append(r.events, v)
		fatal(t, err)
	}
	return r
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
