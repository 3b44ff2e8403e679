package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/lab"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/client"
	"weir/transfer/trial"
)

// The metrics of a coordinator.
var (
	wholeTime  = metric{"submitted to completed", "completed-s", 1, " s"}
	askTime    = metric{"show, p50", "show-p50-ms", 1e3, " ms"}
	askHigh    = metric{"show, p99", "show-p99-ms", 1e3, " ms"}
	askMost    = metric{"show, slowest", "show-max-ms", 1e3, " ms"}
	leaseCPU   = metric{"CPU of the coordinator", "coordinator-cpu-s", 1, " s"}
	filesMoved = metric{"files", "files", 1, ""}
)

// onDatabases compares the two databases. Each of them is new, and has all settings that preserve
// its contents over a crash.
func (r *rig) onDatabases(run func(db string) (figures, error)) []side {
	return []side{
		{"SQLite", func() (figures, error) { return run("") }},
		{"PostgreSQL", func() (f figures, err error) {
			pg, err := lab.PostgreSQLConfig{}.Start(r.Context())
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, pg.Stop()) }()
			return run(pg.URL)
		}},
	}
}

// queued measures a coordinator that leases the files of one request of a million files.
func queued(s scale) comparison {
	b := comparison{
		name:   "service-million",
		title:  fmt.Sprintf("A request of %d files", s.queued),
		rounds: 1,
		about: fmt.Sprintf("A coordinator with its database on disk leases %d files to a simulated agent, which reports each as done over "+
			"HTTPS, while `weir transfer show` is called up to 20 times per second. Memory is the coordinator's peak; CPU excludes "+
			"PostgreSQL. One round.", s.queued),
		metrics: []metric{wholeTime, filesRate, memoryUsed, leaseCPU, askTime, askHigh, askMost, filesMoved},
		setup:   func(r *rig) []side { return r.onDatabases(r.million) },
	}
	const shared = "Coordinator, database and simulated agent share the cores with everything else on the machine."
	for _, db := range []string{"SQLite", "PostgreSQL"} {
		b.bars = append(b.bars, bar{metric: wholeTime, a: db, limit: 300, why: shared}, bar{metric: memoryUsed, a: db, limit: 500e6},
			bar{metric: askHigh, a: db, limit: .2, why: shared})
	}
	return b
}

// million measures one request of many files.
func (r *rig) million(db string) (f figures, err error) {
	ctx := r.Context()
	t, err := r.coordinator(ctx, db)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	c, err := t.Client()
	if err != nil {
		return nil, err
	}
	source, dest := newRobot(c, "A"), newRobot(c, "B")
	if err := source.hello(ctx); err != nil {
		return nil, err
	}
	if err := register(ctx, c, r.queued); err != nil {
		return nil, err
	}
	if err := errors.Join(source.hello(ctx), dest.hello(ctx)); err != nil { // again: it was silent for a while
		return nil, err
	}
	before, err := groupCPU(t.Coordinator().Pid())
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	q, err := c.Submit(ctx, transfer.Submission{Dataset: serviceName, To: "B", Approve: true})
	if err != nil {
		return nil, err
	}
	took, err := whileWorking(ctx, []*robot{source, dest}, func(ctx context.Context) ([]time.Duration, error) { return showing(ctx, c, q.ID) })
	if err != nil {
		return nil, err
	}
	wall := time.Since(begin)
	after, err := groupCPU(t.Coordinator().Pid())
	if err != nil {
		return nil, err
	}
	q, err = c.Request(ctx, q.ID)
	if err == nil && (q.Status != transfer.Completed || q.Count.Done != int64(r.queued)) {
		err = fmt.Errorf("the request is %s with %d of %d files", q.Status, q.Count.Done, r.queued)
	}
	if err != nil {
		return nil, err
	}
	peak, err := lab.StatusBytes(t.Coordinator().Pid(), "VmHWM:")
	slices.Sort(took)
	at := func(p int) float64 { return took[min(len(took)*p/100, len(took)-1)].Seconds() }
	return figures{
		wholeTime: wall.Seconds(), filesRate: float64(r.queued) / wall.Seconds(), memoryUsed: float64(peak), leaseCPU: (after - before).Seconds(),
		askTime: at(50), askHigh: at(99), askMost: at(100), filesMoved: float64(r.queued),
	}, err
}

// coordinator starts a coordinator without agents; its state is on a disk.
func (r *rig) coordinator(ctx context.Context, db string, args ...string) (*trial.Trial, error) {
	t, err := trial.Start(ctx, trial.Options{Program: []string{r.weir}, DB: db, Coordinator: args, Idle: true})
	if err != nil {
		return nil, err
	}
	if err := t.Coordinator().Start(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, t.Ready(ctx)
}

// register adds a dataset of n files at A to the catalog. The files do not exist.
func register(ctx context.Context, c *client.Client, n int) error {
	in := transfer.NewFiles{Dataset: serviceName, Site: "A", By: "nobody"}
	for i := range n {
		in.Files = append(in.Files, transfer.NewFile{File: catalog.File{Name: fmt.Sprintf("%s/%04d/file%07d.root", serviceName, i/1000, i),
			Size: 1e6, Adler: fmt.Sprintf("%08x", i+1)}})
		if len(in.Files) == transfer.MaxNewFiles || i == n-1 {
			if _, err := c.AddFiles(ctx, in); err != nil {
				return err
			}
			in.Files = in.Files[:0]
		}
	}
	return nil
}

// whileWorking runs robots until f returns.
func whileWorking[T any](ctx context.Context, robots []*robot, f func(ctx context.Context) (T, error)) (v T, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var working sync.WaitGroup
	for _, r := range robots {
		working.Go(func() {
			if err := r.work(ctx); err != nil {
				cancel(err)
			}
		})
	}
	v, err = f(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	cancel(nil)
	working.Wait()
	return v, err
}

// showing sends the requests of weir transfer show, until the transfer request has ended, and
// returns the response times.
func showing(ctx context.Context, c *client.Client, id int64) (took []time.Duration, err error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		begin := time.Now()
		q, err := c.Request(ctx, id)
		if err == nil {
			_, err = c.First(ctx, id, []transfer.State{transfer.FileFailed, transfer.Leased, transfer.NoSource, transfer.Queued,
				transfer.FileCancelled}, 50)
		}
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
		if q.Status.Ended() {
			return took, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// The metrics of many requests.
var (
	firstEnd   = metric{"first ended", "first-s", 1, " s"}
	medianEnd  = metric{"half ended", "half-s", 1, " s"}
	lastEnd    = metric{"last ended", "last-s", 1, " s"}
	endsSpread = metric{"last over half", "last/half", 1, ""}
	firstFile  = metric{"each has a file", "first-file-s", 1, " s"}
)

// crowded compares many requests at once.
func crowded(s scale) comparison {
	requests, files, size := 100, 10, 1<<20
	if s.size < 64<<20 {
		requests, files, size = 20, 3, 1<<16
	}
	b := comparison{
		name:  "service-hundred",
		title: fmt.Sprintf("%d requests at once", requests),
		about: fmt.Sprintf("%d requests, each for a block of %d files of %d KiB, submitted at once and copied between two agents with "+
			"default settings; the database is on disk. Times count from the submission. Failed operations include database errors.",
			requests, files, size>>10),
		metrics: []metric{firstEnd, medianEnd, lastEnd, endsSpread, firstFile, filesRate, failed},
		setup: func(r *rig) []side {
			src := r.blocks(requests, files, int64(size))
			return r.onDatabases(func(db string) (figures, error) { return r.hundred(src, db, requests, files) })
		},
	}
	for _, db := range []string{"SQLite", "PostgreSQL"} {
		b.bars = append(b.bars, bar{metric: failed, a: db}, bar{metric: endsSpread, a: db, limit: 2})
	}
	return b
}

// blocks makes a dataset of n blocks in a folder of its own.
func (r *rig) blocks(n, files int, size int64) string {
	src := r.source(1, size, 1)
	first := filepath.Join(src, serviceName, fileName(0))
	for i := range n {
		dir := filepath.Join(src, serviceName, blockName(i))
		r.must(os.Mkdir(dir, 0o755))
		for k := range files {
			r.must(os.Link(first, filepath.Join(dir, fileName(k))))
		}
	}
	r.must(os.Remove(first))
	return src
}

func blockName(i int) string { return fmt.Sprintf("block%03d", i) }

// hundred measures many requests at once.
func (r *rig) hundred(src, db string, requests, files int) (f figures, err error) {
	ctx := r.Context()
	dir, remove, err := r.fresh(false)
	if err != nil {
		return nil, err
	}
	state, removeState, err := r.fresh(true)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	defer func() { err = errors.Join(err, remove(), removeState(), os.RemoveAll(filepath.Join(src, agentState))) }()
	t, err := trial.Start(ctx, trial.Options{Program: []string{r.weir}, Dir: state, DB: db,
		Sites: []trial.Site{{Name: "A", Root: src}, {Name: "B", Root: dir}}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := t.Add(ctx, serviceName, "A"); err != nil {
		return nil, err
	}
	c, err := t.Client()
	if err != nil {
		return nil, err
	}
	f = figures{}
	ids, err := submitAll(ctx, c, requests)
	if err != nil {
		f[failed]++
	}
	if err := f.ends(ctx, t, c, ids, requests*files); err != nil {
		return nil, err
	}
	f[failed] += complaints(filepath.Join(state, "coordinator.log"))
	return f, nil
}

// submitAll submits a request for each block at the same moment.
func submitAll(ctx context.Context, c *client.Client, n int) ([]int64, error) {
	ids, errs := make([]int64, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			q, err := c.Submit(ctx, transfer.Submission{Dataset: serviceName, Block: blockName(i), To: "B", Approve: true})
			ids[i], errs[i] = q.ID, err
		})
	}
	all.Wait()
	return slices.DeleteFunc(ids, func(id int64) bool { return id == 0 }), errors.Join(errs...)
}

// ends waits for requests and records the times at which they ended, and at which they had their
// first files.
func (f figures) ends(ctx context.Context, t *trial.Trial, c *client.Client, ids []int64, files int) error {
	var made time.Time
	var ends, firsts []float64
	for _, id := range ids {
		m, err := t.Wait(ctx, id)
		if err != nil {
			return err
		}
		if m.Request.Status != transfer.Completed {
			f[failed]++
		}
		if made.IsZero() || m.Request.Made.Before(made) {
			made = m.Request.Made
		}
		attempts, err := c.Attempts(ctx, id, 0, 1)
		if err != nil || len(attempts) == 0 {
			return errors.Join(err, fmt.Errorf("request %d has no attempts", id))
		}
		ends = append(ends, float64(m.Request.Ended.UnixNano()))
		firsts = append(firsts, float64(attempts[0].End.UnixNano()))
	}
	since := func(at float64) float64 { return (at - float64(made.UnixNano())) / 1e9 }
	s := spreadOf(ends)
	f[firstEnd], f[medianEnd], f[lastEnd] = since(s.low), since(s.median), since(s.high)
	f[endsSpread], f[firstFile] = f[lastEnd]/f[medianEnd], since(slices.Max(firsts))
	f[filesRate] = float64(files) / f[lastEnd]
	return nil
}

// complaints counts the lines about the database in a coordinator's log.
func complaints(log string) (n float64) {
	text, err := os.ReadFile(log)
	if err != nil {
		return 1
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "database") || strings.Contains(line, "locked") {
			n++
		}
	}
	return n
}

// A robot sends the requests of the agent of a site, but transfers no data: it reports each file
// that it is to fetch as done at once. So the limit of a coordinator is not hidden by the cost of
// transfers.
type robot struct {
	ask  *client.Client
	site string

	mu      sync.Mutex
	holding map[int64]transfer.Lease
	wake    chan struct{}
	done    int
}

const (
	robotSlots   = 1000 // files at once: the most that an agent may have
	robotReports = 2000 // outcomes in a report, as agents have
)

func newRobot(c *client.Client, site string) *robot {
	return &robot{ask: c, site: site, holding: map[int64]transfer.Lease{}, wake: make(chan struct{}, 1)}
}

// hello registers the site.
func (r *robot) hello(ctx context.Context) error {
	_, err := r.ask.Register(ctx, transfer.Register{Site: r.site, Session: "one", URL: "http://127.0.0.1:1", Slots: robotSlots, Free: 1 << 50})
	return err
}

// work requests leases of files and reports them as done, until ctx ends.
func (r *robot) work(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var both sync.WaitGroup
	for _, loop := range []func(context.Context) error{r.fetch, r.tell} {
		both.Go(func() {
			for ctx.Err() == nil {
				if err := loop(ctx); err != nil {
					cancel(err)
				}
			}
		})
	}
	both.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// fetch requests leases of files.
func (r *robot) fetch(ctx context.Context) error {
	r.mu.Lock()
	ask := transfer.PollRequest{Site: r.site, Session: "one", Slots: robotSlots, Free: 1 << 50}
	for _, l := range r.holding {
		ask.Holding = append(ask.Holding, transfer.LeaseID{Item: l.Item, Epoch: l.Epoch})
	}
	r.mu.Unlock()
	w, err := r.ask.Work(ctx, ask)
	if err != nil {
		return err
	}
	r.mu.Lock()
	for _, l := range w.Leases {
		r.holding[l.Item] = l
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return nil
}

// tell reports all leased files as done.
func (r *robot) tell(ctx context.Context) error {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-r.wake:
	case <-late.C: // so that the site counts as up
	case <-ctx.Done():
		return nil
	}
	in := transfer.Report{Site: r.site, Session: "one", Free: 1 << 50}
	now := time.Now()
	r.mu.Lock()
	for _, l := range r.holding {
		if len(in.Outcomes) < robotReports {
			in.Outcomes = append(in.Outcomes, transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Size: l.Size, Adler: l.Adler, Verified: true,
				Moved: l.Size, Begin: now.Add(-10 * time.Millisecond), End: now})
		}
	}
	r.mu.Unlock()
	if _, err := r.ask.Report(ctx, in); err != nil {
		return err
	}
	r.mu.Lock()
	for _, o := range in.Outcomes {
		delete(r.holding, o.Item)
	}
	r.done += len(in.Outcomes)
	r.mu.Unlock()
	return nil
}
