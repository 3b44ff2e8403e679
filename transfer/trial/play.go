package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/internal/say"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/record"
)

// A Play describes how a scenario is played.
type Play struct {
	Scenario *Scenario
	Seed     bool              // with files of the seed's size
	Options  Options           // Sites are the scenario's
	Roots    map[string]string // existing folders of sites; other folders are created in Options.Dir
	Cases    []*Case           // the cases of the scenario that are played; nil: all of them
	Prefix   string            // of the datasets' names: a database may have other datasets; "": /store
	Out      string            // the run directory that is created; "": no run directory
	Weir     string            // version of the program, for it
	Command  []string
	Progress func(string) // called with progress; nil: not called
}

// A Result is the result of a case.
type Result struct {
	Case     *Case
	Size     int64 // of each file
	Requests int
	Status   map[transfer.Status]int // the number of requests with each status
	Arrived  int
	Named    map[string]string // files that have not arrived, with their reasons
	From     map[string]int    // files that came from a site
	Seconds  float64           // from the first submission to the last end
	Ends     []float64         // when each file had arrived, in seconds since then, in order
	Problems []string          // deviations from the expectations; empty: as expected
	Usage    map[string]Usage  // of the coordinator (Main) and the sites
	Peak     float64           // largest throughput within a second, in bytes per second
	Sources  []record.Source   // totals of the files from each site
	Added    []Added           // of requests that were added one by one

	requests []int64
}

// An Added is the result of a request that was added to others, until the next request was added or
// all had ended.
type Added struct {
	Requests int              `json:"requests"` // that were submitted by then
	Open     int              `json:"open"`     // the number of these requests that had not ended
	Usage    map[string]Usage `json:"hosts"`
	Rate     float64          `json:"throughput_bytes_per_second"`

	from, to time.Time
}

// Run plays the scenario in a trial of its own. Its error describes why the scenario could not be
// played; deviations from the expectations are in the results.
func (p *Play) Run(ctx context.Context) (results []Result, err error) {
	o := p.Options
	o.Sites, o.Links = nil, p.Scenario.Named()
	for _, name := range p.Scenario.Sites {
		o.Sites = append(o.Sites, Site{Name: name, Root: p.Roots[name]})
	}
	if n := p.Scenario.AtOnce; n > 0 {
		at := strconv.Itoa(n)
		o.Coordinator = append(slices.Clone(o.Coordinator), "--link-min", at, "--link-max", at)
		o.Agent = append(slices.Clone(o.Agent), "--slots", at)
	}
	if s := p.Scenario.Probe; s > 0 {
		o.Coordinator = append(slices.Clone(o.Coordinator), "--probe", s.String())
	}
	if d := p.Scenario.Patience; d > 0 {
		o.Coordinator = append(slices.Clone(o.Coordinator), "--patience", d.String())
	}
	t, err := Start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	var steps []record.Step
	for i := range p.Scenario.Cases {
		c := &p.Scenario.Cases[i]
		if p.Cases != nil && !slices.Contains(p.Cases, c) {
			continue
		}
		s := &scene{Play: p, t: t, c: c, dataset: fmt.Sprintf("%s/%s/%d", p.prefix(), p.Scenario.Name, i+1)}
		r, err := s.play(ctx)
		if err != nil {
			return results, fmt.Errorf("%s, %s: %w", p.Scenario.Name, s.c.Name, err)
		}
		results = append(results, r)
		steps = append(steps, s.step())
	}
	if err := p.measure(ctx, t, results); err != nil || p.Out == "" {
		return results, err
	}
	return results, p.record(ctx, t, steps)
}

func (p *Play) prefix() string {
	if p.Prefix == "" {
		return "/store"
	}
	return p.Prefix
}

func (p *Play) note(format string, a ...any) {
	if p.Progress != nil {
		p.Progress(fmt.Sprintf(format, a...))
	}
}

// record creates the run directory.
func (p *Play) record(ctx context.Context, t *Trial, steps []record.Step) error {
	c, err := t.Client()
	if err != nil {
		return err
	}
	return record.Write(ctx, c, p.Out, record.Run{Name: "transfer-" + p.Scenario.Name, Weir: p.Weir, Command: p.Command, Steps: steps})
}

// measure completes the results with the history of the copies, once the agents have reported all
// samples of their hosts.
func (p *Play) measure(ctx context.Context, t *Trial, results []Result) error {
	c, err := t.Client()
	if err != nil {
		return err
	}
	end, late := time.Now(), time.Now().Add(10*time.Second)
	for _, site := range p.Scenario.Sites {
		for t.Site(site).Running() && time.Now().Before(late) {
			if list, err := c.Samples(ctx, site, end, 1); err == nil && len(list) > 0 {
				break
			}
			if !pause.For(ctx, lookEvery) {
				return ctx.Err()
			}
		}
	}
	for i := range results {
		r := &results[i]
		h, err := record.Load(ctx, c, record.Step{Name: r.Case.Name, Requests: r.requests})
		if err != nil {
			return err
		}
		r.Peak, r.Sources = h.Peak(), h.Sources()
		for k := range r.Added {
			a := &r.Added[k]
			a.Rate = float64(h.Moved(a.from, a.to)) / max(a.to.Sub(a.from).Seconds(), 1e-9)
		}
	}
	return nil
}

// A scene is one case while it is played.
type scene struct {
	*Play
	t       *Trial
	c       *Case
	dataset string
	files   []File
	ids     []int64
	begin   time.Time
	notes   []record.Note
	pending []Change
	wanted  []transfer.Submission // in the order in which they are submitted
	watcher *watcher
	added   []Added
}

// step returns the step of the case in the run directory.
func (s *scene) step() record.Step {
	at := 0
	if n := len(s.wanted); n > 1 {
		if at = s.c.Open; at == 0 {
			at = n
		}
	}
	return record.Step{Name: s.c.Name, Requests: s.ids, AtOnce: at, Notes: s.notes}
}

func (s *scene) play(ctx context.Context) (Result, error) {
	size := s.c.Bytes(s.Seed)
	s.want()
	r := Result{Case: s.c, Size: size, Requests: len(s.wanted), Status: map[transfer.Status]int{}, Named: map[string]string{},
		From: map[string]int{}}
	s.pending = slices.Clone(s.c.Events)
	s.note("%s: %s", s.Scenario.Name, s.c.Name)
	defer s.clear()
	if err := s.prepare(ctx); err != nil {
		return r, err
	}
	s.watcher = s.t.watch()
	err := s.move(ctx)
	s.watcher.stop()
	if err != nil {
		return r, err
	}
	r.requests, r.Usage, r.Added = s.ids, s.watcher.all(), s.added
	if err := s.collect(ctx, &r); err != nil {
		return r, err
	}
	s.judge(&r)
	return r, nil
}

// want creates the list of files, and the list of requests: the requests of a case are made for
// each of its destinations, or spread over them.
func (s *scene) want() {
	s.files = Files(s.dataset, s.c.Files, s.c.Bytes(s.Seed))
	for i := range s.files {
		if s.c.Same {
			s.files[i].Like = s.files[0].Name
		}
	}
	for i := range s.c.Requests {
		var names []string // empty: all files of the dataset
		for k := i; k < len(s.files) && s.c.Requests > 1; k += s.c.Requests {
			names = append(names, s.files[k].Name)
		}
		for k, to := range s.c.To {
			if !s.c.Spread || i%len(s.c.To) == k {
				s.wanted = append(s.wanted, transfer.Submission{Dataset: s.dataset, To: to, Files: names, Mode: s.c.Mode, Tries: s.c.Tries})
			}
		}
	}
}

// prepare creates the files, adds them to the catalog, and removes the files that are meant to be
// missing.
func (s *scene) prepare(ctx context.Context) error {
	for _, name := range s.Scenario.Sites {
		if !s.t.Site(name).Running() {
			if err := s.t.Site(name).Start(ctx); err != nil {
				return err
			}
		}
	}
	if err := s.t.Ready(ctx); err != nil {
		return err
	}
	made := map[string]made{}
	for _, site := range slices.Sorted(maps.Keys(s.c.At)) {
		var mine []File
		for i, f := range s.files {
			if s.c.has(site, i+1) {
				mine = append(mine, f)
			}
		}
		if err := s.t.register(ctx, s.dataset, site, mine, made); err != nil {
			return err
		}
	}
	for _, n := range s.c.Missing {
		for site := range s.c.At {
			if err := os.Remove(filepath.Join(s.t.Root(site), filepath.FromSlash(s.files[n-1].Name))); err != nil &&
				!errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	for _, m := range made {
		if err := s.settle(m.path); err != nil {
			return err
		}
	}
	return s.calm(ctx)
}

// settle flushes a file to its disk, if a run directory is recorded: otherwise the disk would be
// busy with it while copies, and the coordinator's commits, wait for it.
func (s *scene) settle(path string) error {
	if s.Out == "" {
		return nil
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a file that is meant to be missing
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// A made is a file that exists already.
type made struct{ path, sum string }

// register creates files at a site and adds them to the catalog. The argument those contains
// existing files, by name: on the same disk they are linked, which takes no space; no process
// writes into them.
func (t *Trial) register(ctx context.Context, dataset, site string, files []File, those map[string]made) error {
	c, err := t.Client()
	if err != nil {
		return err
	}
	all := transfer.NewFiles{Dataset: dataset, Site: site, By: "weir transfer demo"}
	for i, f := range files {
		path := filepath.Join(t.Root(site), filepath.FromSlash(f.Name))
		m, ok := those[f.Name]
		if !ok || hardLink(m.path, path) != nil {
			if m.sum, err = f.write(path); err != nil {
				return err
			}
			m.path = path
			those[f.Name] = m
		}
		all.Files = append(all.Files, transfer.NewFile{File: catalog.File{Name: f.Name, Size: f.Size, Adler: m.sum},
			Path: strings.TrimPrefix(f.Name, "/")})
		if len(all.Files) == transfer.MaxNewFiles || i == len(files)-1 {
			if _, err := c.AddFiles(ctx, all); err != nil {
				return err
			}
			all.Files = nil
		}
	}
	return nil
}

// hardLink gives a file another name, in a folder that it creates.
func hardLink(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	return os.Link(from, to)
}

// calm waits until a second of the wall clock begins, the boundary of the agents' samples, so that
// no sample covers two cases.
func (s *scene) calm(ctx context.Context) error {
	if s.Out == "" {
		return nil
	}
	now := time.Now()
	if !pause.For(ctx, now.Truncate(time.Second).Add(time.Second+30*time.Millisecond).Sub(now)) {
		return ctx.Err()
	}
	return nil
}

// renamed is the suffix of the names of folders of renamed files.
const renamed = ".renamed"

// clear removes the case's files, so that a scenario needs the space of its largest case only. The
// files are the trial's own, made by prepare and by the copies.
func (s *scene) clear() {
	for _, site := range s.Scenario.Sites {
		for _, name := range []string{s.dataset, s.dataset + renamed} {
			_ = os.RemoveAll(filepath.Join(s.t.Root(site), filepath.FromSlash(name))) // the trial's end removes all
		}
	}
}

// move submits the requests, as many at once as may be open, and waits for the end of all of them.
// Meanwhile it makes the changes of the case to sites.
func (s *scene) move(ctx context.Context) error {
	s.begin = time.Now()
	all := len(s.wanted)
	open := s.c.Open
	open = cmp.Or(open, all)
	s.ids = make([]int64, all)
	for next, ended := 0, 0; ended < all; {
		n := min(open-(next-ended), all-next)
		if s.c.Every > 0 {
			n = s.add(next, ended)
		}
		if err := s.submit(ctx, next, n); err != nil {
			return err
		}
		next += n
		var arrived int
		var err error
		if ended, arrived, err = s.progress(ctx); err != nil {
			return err
		}
		if ended == all {
			s.endAdded()
		}
		if err := s.changes(ctx, arrived); err != nil {
			return err
		}
		if ended < all && !pause.For(ctx, lookOften) {
			return ctx.Err()
		}
	}
	return nil
}

// add returns 1 if a request must be added now, after next requests were submitted and ended
// requests have ended, and 0 otherwise.
func (s *scene) add(next, ended int) int {
	if next == len(s.wanted) || time.Since(s.begin) < time.Duration(next)*time.Duration(s.c.Every) {
		return 0
	}
	s.endAdded()
	s.added = append(s.added, Added{Requests: next + 1, Open: next + 1 - ended, from: s.watcher.look()})
	return 1
}

// endAdded ends the measurement of the request that was added last.
func (s *scene) endAdded() {
	if n := len(s.added); n > 0 {
		a := &s.added[n-1]
		a.to = s.watcher.look()
		a.Usage = s.watcher.between(a.from, a.to)
	}
}

// lookOften is the interval between polls of the progress of a case, by one API call for all of its
// requests: more frequent polls would slow down the measured transfers.
const lookOften = 5 * time.Millisecond

// submit submits n requests at the same moment, beginning with number from.
func (s *scene) submit(ctx context.Context, from, n int) error {
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			s.ids[from+i], errs[i] = s.t.Submit(ctx, s.wanted[from+i])
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// progress returns the number of requests that have ended, and the number of files that have
// arrived.
func (s *scene) progress(ctx context.Context) (ended, arrived int, err error) {
	c, err := s.t.Client()
	if err != nil {
		return 0, 0, err
	}
	list, err := c.Requests(ctx, transfer.Filter{Dataset: s.dataset, Limit: len(s.wanted)})
	if err != nil {
		return 0, 0, err
	}
	for i := range list {
		arrived += int(list[i].Count.Done)
		if list[i].Status.Ended() {
			ended++
		}
	}
	return ended, arrived, nil
}

// changes makes the changes that are due after so many files have arrived.
func (s *scene) changes(ctx context.Context, arrived int) error {
	for len(s.pending) > 0 && s.pending[0].After <= arrived {
		e := s.pending[0]
		s.pending = s.pending[1:]
		note := fmt.Sprintf("site %s was switched off when %s had arrived", e.Off, say.Plural(arrived, "file"))
		act := func() error { return s.t.Site(e.Off).Kill() }
		if e.On != "" {
			note = fmt.Sprintf("site %s was started again when %s had arrived", e.On, say.Plural(arrived, "file"))
			act = func() error { return s.t.Site(e.On).Start(ctx) }
		}
		if e.Rename != "" {
			note = fmt.Sprintf("all files of site %s were renamed when %s had arrived", e.Rename, say.Plural(arrived, "file"))
			at := filepath.Join(s.t.Root(e.Rename), filepath.FromSlash(s.dataset))
			act = func() error { return os.Rename(at, at+renamed) }
		}
		s.note("%s", note)
		s.notes = append(s.notes, record.Note{Time: time.Now(), Text: note})
		if err := act(); err != nil {
			return err
		}
	}
	return nil
}
