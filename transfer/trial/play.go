package trial

import (
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

// A Play plays a scenario.
type Play struct {
	Scenario *Scenario
	Seed     bool              // with files as large as the seed's
	Options  Options           // Sites are the scenario's
	Roots    map[string]string // existing folders of sites; those of others are made in Options.Dir
	Cases    []*Case           // of the scenario, that are played; nil: all of them
	Prefix   string            // of the datasets' names: a database may have others; "": /store
	Out      string            // the run directory that is made; "": none
	Weir     string            // version of the program, for it
	Command  []string
	Tell     func(string) // what is being done; nil: nobody listens
}

// A Result is what a case came to.
type Result struct {
	Case     *Case
	Size     int64 // of each file
	Requests int
	Status   map[transfer.Status]int // of how many requests
	Arrived  int
	Named    map[string]string // files that have not arrived, with their reasons
	From     map[string]int    // files that came from a site
	Seconds  float64           // from the first submission to the last end
	Ends     []float64         // when each file had arrived, in seconds since then, in order
	Problems []string          // what is not as expected; empty: all is
}

// Run plays the scenario in a trial of its own. Its error is about what hindered
// that; what is not as expected is in the results.
func (p *Play) Run(ctx context.Context) (results []Result, err error) {
	o := p.Options
	o.Sites = nil
	for _, name := range p.Scenario.Sites {
		o.Sites = append(o.Sites, Site{Name: name, Root: p.Roots[name]})
	}
	if n := p.Scenario.AtOnce; n > 0 {
		at := strconv.Itoa(n)
		o.Coordinator = append(slices.Clone(o.Coordinator), "--link-min", at, "--link-max", at)
		o.Agent = append(slices.Clone(o.Agent), "--slots", at)
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
	if p.Out == "" {
		return results, nil
	}
	return results, p.record(ctx, t, steps)
}

func (p *Play) prefix() string {
	if p.Prefix == "" {
		return "/store"
	}
	return p.Prefix
}

func (p *Play) tell(format string, a ...any) {
	if p.Tell != nil {
		p.Tell(fmt.Sprintf(format, a...))
	}
}

// record makes the run directory, once the agents have told all of their hosts.
func (p *Play) record(ctx context.Context, t *Trial, steps []record.Step) error {
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
	return record.Write(ctx, c, p.Out, record.Run{Name: "transfer-" + p.Scenario.Name, Weir: p.Weir, Command: p.Command, Steps: steps})
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
}

// step is the case as the run directory has it.
func (s *scene) step() record.Step {
	at := 0
	if s.c.Requests > 1 {
		if at = s.c.Open; at == 0 {
			at = s.c.Requests
		}
	}
	return record.Step{Name: s.c.Name, Requests: s.ids, AtOnce: at, Notes: s.notes}
}

func (s *scene) play(ctx context.Context) (Result, error) {
	size := s.c.Bytes(s.Seed)
	r := Result{Case: s.c, Size: size, Requests: s.c.Requests, Status: map[transfer.Status]int{}, Named: map[string]string{},
		From: map[string]int{}}
	s.files = Files(s.dataset, s.c.Files, size)
	s.pending = slices.Clone(s.c.Events)
	s.tell("%s: %s", s.Scenario.Name, s.c.Name)
	defer s.clear()
	if err := s.prepare(ctx); err != nil {
		return r, err
	}
	if err := s.move(ctx); err != nil {
		return r, err
	}
	if err := s.collect(ctx, &r); err != nil {
		return r, err
	}
	s.judge(&r)
	return r, nil
}

// prepare makes the files, has the catalog know them, and takes away those that are
// to be missing.
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

// settle has a file on its disk, if what is played is recorded: else the disk is busy
// with it while copies, and the coordinator's commits, wait for it.
func (s *scene) settle(path string) error {
	if s.Out == "" {
		return nil
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // one that is to be missing
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// A made is a file that is there already.
type made struct{ path, sum string }

// register makes files at a site and adds them to the catalog. those are there
// already, by name: on the same disk they are linked, which takes no space; nobody
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
		if !ok || link(m.path, path) != nil {
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

// link gives a file another name, in a folder that is made.
func link(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	return os.Link(from, to)
}

// calm waits until a second of the wall clock begins, with which the agents' samples
// do: so none has anything of two cases.
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

// clear removes the case's files, so that a scenario needs the space of its largest
// case only. They are the trial's own, made by prepare and by the copies.
func (s *scene) clear() {
	for _, site := range s.Scenario.Sites {
		_ = os.RemoveAll(filepath.Join(s.t.Root(site), filepath.FromSlash(s.dataset))) // the trial's end removes all
	}
}

// move submits the requests, as many at once as may be open, and waits for the end of
// all of them. Meanwhile it does to sites what the case wants.
func (s *scene) move(ctx context.Context) error {
	s.begin = time.Now()
	open := s.c.Open
	if open == 0 {
		open = s.c.Requests
	}
	s.ids = make([]int64, s.c.Requests)
	for next, ended := 0, 0; ended < s.c.Requests; {
		n := min(open-(next-ended), s.c.Requests-next)
		if err := s.submit(ctx, next, n); err != nil {
			return err
		}
		next += n
		var arrived int
		var err error
		if ended, arrived, err = s.progress(ctx); err != nil {
			return err
		}
		if err := s.changes(ctx, arrived); err != nil {
			return err
		}
		if ended < next && !pause.For(ctx, lookOften) {
			return ctx.Err()
		}
	}
	return nil
}

// lookOften is how often it is asked how far a case is, by one question for all of
// its requests: more would slow down what is measured.
const lookOften = 5 * time.Millisecond

// submit submits n requests at the same moment, the first one being number from.
func (s *scene) submit(ctx context.Context, from, n int) error {
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			want := transfer.Submission{Dataset: s.dataset, To: s.c.To, Mode: s.c.Mode, Tries: s.c.Tries}
			if all := s.c.Requests; all > 1 {
				for k := from + i; k < len(s.files); k += all {
					want.Files = append(want.Files, s.files[k].Name)
				}
			}
			s.ids[from+i], errs[i] = s.t.Submit(ctx, want)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// progress is how many requests have ended, and how many files have arrived.
func (s *scene) progress(ctx context.Context) (ended, arrived int, err error) {
	c, err := s.t.Client()
	if err != nil {
		return 0, 0, err
	}
	list, err := c.Requests(ctx, transfer.Filter{Dataset: s.dataset, Limit: s.c.Requests})
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

// changes does what is due when so many files have arrived.
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
		s.tell("%s", note)
		s.notes = append(s.notes, record.Note{Time: time.Now(), Text: note})
		if err := act(); err != nil {
			return err
		}
	}
	return nil
}
