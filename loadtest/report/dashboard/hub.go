package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/internal/say"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/results"
)

// scanEvery is the interval at which the hub looks for runs that have begun.
const scanEvery = time.Second

// mostListed is the number of runs that a page can choose from.
const mostListed = 200

// An entry is a run that a page can choose.
type entry struct {
	Key   string `json:"key"`  // constant as long as the hub lives
	Name  string `json:"name"` // for people
	dir   string
	start time.Time
}

// A hub finds the runs below a folder, and follows the runs that are shown: always the newest run,
// and other runs while pages show them.
type hub struct {
	root       string
	understand Understand
	clock      func() time.Time
	wait       *sync.WaitGroup

	mu      sync.Mutex
	list    []entry // the newest last
	seq     int64   // of the list's last change
	newest  *shown
	runs    map[string]*running // by key
	changed chan struct{}       // closed when list or newest change
}

// A running is a run that is followed.
type running struct {
	*shown
	stop context.CancelFunc
}

func newHub(root string, understand Understand, wait *sync.WaitGroup) *hub {
	return &hub{root: root, understand: understand, clock: time.Now, wait: wait, runs: map[string]*running{}, changed: make(chan struct{})}
}

// run looks for runs until ctx ends.
func (u *hub) run(ctx context.Context) {
	for ctx.Err() == nil {
		u.scan(ctx)
		pause.For(ctx, scanEvery)
	}
}

// scan updates the list of runs and the newest run, and drops runs without readers for a long time.
// If there is no run, the hub waits for a run at the root itself.
func (u *hub) scan(ctx context.Context) {
	root := u.where()
	list := all(root)
	if n := len(list) - mostListed; n > 0 {
		list = list[n:]
	}
	newest := slices.MaxFunc(list, func(a, b entry) int { return a.start.Compare(b.start) })
	u.mu.Lock()
	defer u.mu.Unlock()
	if root != u.root {
		return // the next scan covers the new root
	}
	changed := !slices.Equal(list, u.list)
	u.list = list
	if u.newest == nil || u.newest.key != newest.Key || u.newest.dir != newest.dir {
		u.newest, changed = u.follow(ctx, newest), true
	}
	if changed {
		u.seq++
		close(u.changed)
		u.changed = make(chan struct{})
	}
	u.drop(keepPast)
}

// follow returns the run of e and begins to follow it if it is not followed yet. u.mu is held.
func (u *hub) follow(ctx context.Context, e entry) *shown {
	if r := u.runs[e.Key]; r != nil && r.dir == e.dir {
		return r.shown
	} else if r != nil { // a link such as runs/latest now leads elsewhere
		r.stop()
	}
	ctx, stop := context.WithCancel(ctx)
	r := &running{newShown(e.Key, e.dir, u.clock), stop}
	u.runs[e.Key] = r
	u.wait.Go(func() { r.follow(ctx) })
	u.wait.Go(func() { r.analyze(ctx, u.understand) })
	return r.shown
}

// drop removes runs without readers for a long time. u.mu is held.
func (u *hub) drop(after time.Duration) {
	for key, r := range u.runs {
		if r.shown != u.newest && !r.watchedSince(u.clock().Add(-after)) {
			r.stop()
			delete(u.runs, key)
		}
	}
}

// get returns the run of that key, or the newest run for "". It has entered the run; the caller
// must leave it.
func (u *hub) get(ctx context.Context, key string) (*shown, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.newest
	if key != "" {
		i := slices.IndexFunc(u.list, func(e entry) bool { return e.Key == key })
		if i < 0 {
			return nil, errGone
		}
		if u.runs[key] == nil && len(u.runs) > mostPast {
			u.drop(0)
		}
		if u.runs[key] == nil && len(u.runs) > mostPast {
			return nil, fmt.Errorf("too many runs are looked at: %d", len(u.runs))
		}
		s = u.follow(ctx, u.list[i])
	}
	s.enter()
	return s, nil
}

// choice returns the runs that pages can choose from, and a channel that is closed when these, or
// the newest run, change.
func (u *hub) choice() (list []entry, seq int64, newest *shown, changed <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.list, u.seq, u.newest, u.changed
}

// show switches the hub to another folder.
func (u *hub) show(ctx context.Context, dir string) {
	u.mu.Lock()
	u.root = clean(dir)
	for key, r := range u.runs {
		if r.dir != u.root {
			r.stop()
			delete(u.runs, key)
		}
	}
	u.mu.Unlock()
	u.scan(ctx)
}

func (u *hub) where() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.root
}

// all lists the runs at root, or root itself if there are no runs yet.
func all(root string) []entry {
	dir, err := filepath.EvalSymlinks(root)
	if err != nil || root == "" {
		dir = root
	}
	list := find(dir, dir, 1)
	if len(list) == 0 {
		list = []entry{{Key: ".", Name: say.Plain(filepath.Base(root)), dir: dir}}
	}
	return list
}

// find lists the runs at dir, which is a run directory, or a campaign's folder, or a folder with
// such folders below it, depth deep.
func find(root, dir string, depth int) []entry {
	if root == "" {
		return nil
	}
	if campaign.Is(dir) {
		return campaignRuns(root, dir)
	}
	if _, err := os.Lstat(filepath.Join(dir, results.PlanFile)); err == nil {
		if e, ok := entryOf(root, dir, ""); ok {
			return []entry{e}
		}
		return nil
	}
	if depth == 0 {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var all []entry
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") { // links, such as latest, are not followed
			all = append(all, find(root, filepath.Join(dir, e.Name()), depth-1)...)
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Or(a.start.Compare(b.start), cmp.Compare(a.Key, b.Key)) })
	return all
}

// campaignRuns lists the runs of a campaign that have begun, in their order.
func campaignRuns(root, dir string) []entry {
	c, err := campaign.Read(dir)
	if err != nil {
		return nil
	}
	var all []entry
	for i := range c.Runs {
		r := &c.Runs[i]
		if e, ok := entryOf(root, filepath.Join(dir, r.Dir), runName(c, r)); ok {
			all = append(all, e)
		}
	}
	return all
}

// runName returns the position of r in its campaign, with its levels.
func runName(c *campaign.Campaign, r *campaign.Run) string {
	name := fmt.Sprintf("run %d of %d", r.Number, len(c.Runs))
	for _, f := range c.Factors {
		name += ", " + r.Levels[f.Key]
	}
	if c.Repeat > 1 {
		name += fmt.Sprintf(", block %d", r.Block)
	}
	return say.Plain(name)
}

// entryOf returns the entry of the run in dir, false if there is no run yet. If a run was set aside
// and another run is in its place, the start differs.
func entryOf(root, dir, name string) (entry, bool) {
	info, err := os.Stat(filepath.Join(dir, results.PlanFile))
	if err != nil || !info.Mode().IsRegular() {
		return entry{}, false
	}
	key, err := filepath.Rel(root, dir)
	if err != nil {
		return entry{}, false
	}
	if name == "" {
		name = say.Plain(filepath.Base(dir))
	}
	e := entry{Key: key, Name: name, dir: dir, start: info.ModTime()}
	return e, true
}
