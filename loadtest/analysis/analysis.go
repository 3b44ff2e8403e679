// Package analysis makes findings of a run directory: the curve with its spread, the best step, the knee, the limit, and whether the
// numbers can be relied on. Its functions are pure: the same run gives the same findings.
//
// A run falls through its packages: hosts sums the samples, steps makes the steps of the curve, limits finds saturated resources, and
// validity judges the data. The files of this package compose them. analysis reads a run; understand, optimum and boundary interpret
// the curve with packages fit and shape; threshold and gate compare it with the scenario's thresholds; headline, verdict and warnings
// put the result into words; csv and rows write it; series is the run against time; table analyzes a table of another program. document
// names the types of the other packages that findings.json and series consist of.
package analysis

import (
	"cmp"
	"io"
	"slices"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/links"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/analysis/transfers"
	"weir/loadtest/analysis/validity"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/monitor"
)

// Analyze analyzes run. It also returns findings for runs without steps, without successful
// operations or without hosts, and the findings describe that. It returns an error only if the
// directory cannot be read.
func Analyze(run *results.Run) (*Findings, error) {
	d, err := load(run)
	if err != nil {
		return nil, err
	}
	return d.findings(), nil
}

// AnalyzeWithSeries analyzes run as Analyze does, and also returns its time series.
func AnalyzeWithSeries(run *results.Run) (*Findings, *Series, error) {
	d, err := load(run)
	if err != nil {
		return nil, nil, err
	}
	f := d.findings()
	return f, d.series(f), nil
}

// Curve returns the steps of run as Analyze does, but without the findings on the whole curve, and
// the measure by which the steps are compared: Throughput or Rate. It costs a fraction of Analyze,
// so that a search can call it after each step. It leaves out steps during a part of which the
// service was away, but not a step in which the service refused all operations.
func Curve(run *results.Run) (all []steps.Figures, measure string, err error) {
	d, err := load(run)
	if err != nil {
		return nil, "", err
	}
	c := d.run.EmptyCurve()
	for _, t := range d.run.Held() {
		c.Steps = append(c.Steps, d.step(t))
	}
	validity.Availability(d.run, c)
	left := slices.DeleteFunc(c.Steps, func(s *steps.Working) bool {
		return s.Excluded != "" && s.ErrorRatio < shape.MostErrors &&
			s.Done > 0
	})
	steps.Widen(left)
	return steps.Document(left), c.Measure, nil
}

// data is a run in memory.
type data struct {
	run       *steps.Run
	hosts     *hosts.Watched
	backends  *limits.Backends
	bytes     *validity.ByteSums
	transfers *transfers.Sums // nil: the run is not a record of transfers
	links     *links.Sums     // nil: the run is not a data challenge
	overTime  []links.Series  // of the links of a data challenge, after findings
}

func load(run *results.Run) (*data, error) { return loadTo(run, nil, nil) }

// loadTo reads run, and writes intervals.csv and hosts.csv to the writers that are not nil.
func loadTo(run *results.Run, intervals, hosts io.Writer) (*data, error) {
	renderInterval, writeInterval, err := intervalTable(intervals)
	if err != nil {
		return nil, err
	}
	d := &data{}
	if d.run, err = steps.Load(run, renderInterval, writeInterval); err != nil {
		return nil, err
	}
	if err = d.copies(run); err != nil {
		return nil, err
	}
	d.watching()
	render, write, err := hostTable(hosts)
	if err != nil {
		return nil, err
	}
	if err := run.EachSample(render, func(s *monitor.Sample, row []byte) error {
		d.watch(s)
		return write(row)
	}); err != nil {
		return nil, err
	}
	d.hosts.SetDisksAside()
	if err := d.run.LoadEvents(run); err != nil {
		return nil, err
	}
	return d, nil
}

// copies reads the records of copies between sites: of a data challenge, or of transfers.
func (d *data) copies(run *results.Run) (err error) {
	if d.links, err = links.Load(run); err == nil && d.links == nil {
		d.transfers, err = transfers.Load(run, d.run)
	}
	d.run.Record = d.run.Record || d.links != nil
	return err
}

// watching prepares for the samples, which are added one by one in the order of their file, and
// only after all intervals: the intervals define the times of held load, and so the step of a
// sample.
func (d *data) watching() {
	scratch := ""
	if d.run.About.Scratch != nil {
		scratch = d.run.About.Scratch.Device
	}
	d.hosts = hosts.NewWatched(d.run.HoldTimes(), d.run.Begin(), scratch)
	d.bytes, d.backends = validity.NewByteSums(d.run), limits.NewBackends(d.run)
}

// watch adds one sample to all sums to which it contributes.
func (d *data) watch(s *monitor.Sample) {
	d.hosts.Counted(s)
	d.backends.Incomplete(s)
	if s.Nothing() {
		return
	}
	d.hosts.Program(s)
	from := s.Time.Add(-basics.Duration(s.Seconds))
	if d.backends.Watch(s, from) {
		return
	}
	if d.transfers != nil {
		d.transfers.Watch(s, from, d.hosts.Holds)
	}
	if d.links != nil {
		d.links.Sample(s)
	}
	held := d.hosts.Add(s, from)
	if s.Seconds > 0 {
		d.bytes.AddBytes(s, from, held >= hosts.Inside*s.Seconds)
	}
	d.hosts.Point(s)
}

// step returns a step with its hosts.
func (d *data) step(t *steps.Total) *steps.Working {
	s := d.run.Step(t)
	limits.Hosts(d.run, d.hosts, s)
	return s
}

// curve returns the steps of the run, with their windows. The order in which a search measures loads
// depends on the search only: its steps are returned in the order of load.
func (d *data) curve() *steps.Curve {
	c, all := d.run.EmptyCurve(), map[int][]steps.Second{}
	for _, seconds := range d.run.BySteps() {
		all[seconds[0].Step] = seconds
	}
	for _, t := range d.run.Held() {
		s := d.step(t)
		d.run.Windows(s, all[t.Number])
		c.Steps = append(c.Steps, s)
	}
	if d.run.Plan.Find != nil {
		slices.SortStableFunc(c.Steps, func(a, b *steps.Working) int { return cmp.Compare(c.LoadOf(a), c.LoadOf(b)) })
	}
	return c
}

func (d *data) findings() *Findings {
	r, c := d.run, d.curve()
	f := &Findings{
		Version: FindingsVersion, Run: r.About.Run, Name: r.Plan.Name, Target: r.Plan.Target, Work: r.Plan.WorkText(), Start: r.About.Start,
		Model: c.Model, Measure: c.Measure, Warnings: []string{}, WarningFacts: []fact.Fact{}, Phases: r.Phases(),
		Subintervals: r.Subintervals(), Hysteresis: []Hysteresis{}, Boundaries: []Boundary{}, Bottleneck: []limits.Bottleneck{},
		Ending: r.Ending(),
	}
	sessions(r, f, c)
	signing(r, f, c)
	f.Outages = validity.Availability(r, c)
	f.Correlation = steps.Widen(c.Steps)
	f.Populations = r.PopulationCurves()
	c.Mixed = len(f.Populations) > 0
	f.Kinds, f.Servers, f.Workers = steps.Parts(r.Kinds), steps.Parts(r.Servers), validity.Workers(r)
	validity.MissingWorkers(r, c, f.Workers)
	if d.transfers != nil {
		f.Transfers = d.transfers.Figures()
	}
	if d.links != nil {
		d.challenge(f, c)
		return f
	}
	if r.Plan.On.Batch.Queues() {
		f.Parts = f.partFits()
	}
	best, left := d.capacity(f, c)
	f.Balance = d.backends.Balance(c)
	f.Validity = (&validity.Evidence{Run: r, Hosts: d.hosts, Backends: d.backends, Bytes: d.bytes, Transfers: d.transfers, Curve: c,
		Outages: f.Outages,
		Phases:  f.Phases, Workers: f.Workers, Balance: f.Balance, Best: best, Left: left,
		Unclear: f.Optimum != nil && f.Optimum.Unclear}).Validity()
	f.Thresholds = stopped(r, (&conclusion{Findings: f, c: c}).judged(r.Plan.Thresholds))
	f.warn(r, c)
	f.addWarnings(d.backends.Unnamed(f.Balance)...)
	f.Curve = steps.Document(c.Steps)
	if f.Transfers != nil {
		f.concludeTransfers()
	}
	f.Search = r.Search()
	return f
}

// capacity fills in the findings on all steps that count: models, knee, optimum, limits, bottleneck
// and verdict. It returns the index of their best step in the curve, -1 without a best step, and
// the number of steps that count.
func (d *data) capacity(f *Findings, c *steps.Curve) (best, left int) {
	g := &conclusion{Findings: f, c: c.Counting(), resources: limits.ResourcesOf(d.run, c)}
	g.understand()
	at := g.best()
	g.Bottleneck = limits.Bottlenecks(g.c, g.resources, at)
	g.Boundaries = g.boundaries(d.run.Plan.Boundaries)
	g.conclude()
	best, left = at, len(g.c.Steps)
	if at >= 0 {
		best = c.IndexOf(g.c.Steps[at].Step)
	}
	g.c = c
	g.reportOutages(left)
	return best, left
}

func (d *data) series(f *Findings) *Series {
	r := d.run
	s := &Series{Plan: r.Plan, About: r.About, Start: r.Begin(), Hosts: d.hosts.HostSeries(), Programs: d.hosts.Programs(), Links: d.overTime}
	s.Latencies = r.Distributions(func(t *steps.Total) *measure.Histogram { return &t.Latency })
	s.JobTimes = r.Distributions(func(t *steps.Total) *measure.Histogram { return &t.Wall })
	s.Points, s.Kinds, s.Classes = r.Points(s.Start)
	if n := len(s.Points); n > 0 {
		s.Heat = r.Heat.Heat(s.Start, s.Points[n-1].At+s.Points[n-1].Seconds/2)
		s.Servers = r.ServerSeries(s.Start)
		s.Backends = d.backends.Series(f.Balance, s.Start)
	}
	for _, e := range r.Events {
		s.Events = append(s.Events, *e)
	}
	return s
}
