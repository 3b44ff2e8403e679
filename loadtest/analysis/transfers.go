package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/results"
	"weir/monitor"
)

// mostFiles is how many files findings list one by one, and mostReasons how many of those that have not arrived.
const (
	mostFiles   = 1000
	mostReasons = 200
)

// longEnough is for how much of a second a case must have gone on for that second to tell how busy an agent was.
const longEnough = 0.25

// TransferFigures is what a record of transfers shows beside the curve.
type TransferFigures struct {
	Cases   []TransferCase `json:"cases"`             // one a step
	Files   []TransferFile `json:"files"`             // the first thousand that ended
	Left    int            `json:"files_left_out"`    // of that list
	Missing []TransferFile `json:"files_not_arrived"` // the first two hundred
}

// A TransferCase is what one step of a record of transfers gave.
type TransferCase struct {
	Step       int           `json:"step"`
	Case       string        `json:"case"` // in words
	Files      int           `json:"files"`
	Arrived    int           `json:"arrived"`
	There      int           `json:"had_been_there"` // of these: they were looked at only
	Smallest   int64         `json:"smallest_bytes"`
	Largest    int64         `json:"largest_bytes"`
	Bytes      int64         `json:"arrived_bytes"`
	Attempts   int           `json:"attempts"`
	Failures   int           `json:"failed_attempts"`
	AtOnce     int           `json:"at_once"` // copies, at most
	Begin      time.Time     `json:"begin"`   // from the first submission
	End        time.Time     `json:"end"`     // to the last end
	Seconds    float64       `json:"duration_seconds"`
	Throughput float64       `json:"throughput_bytes_per_second"`   // of what was brought
	SumOfFiles float64       `json:"sum_of_files_bytes_per_second"` // of each file's own throughput
	Spread     float64       `json:"spread_seconds"`                // from the first file's arrival to the last one's
	Ends       []TransferEnd `json:"ends"`

	brought int64 // of Bytes, what had not been there
}

// A TransferEnd is one site in a case. Shares of CPU are of one core, so that they may exceed 1; nil: its host reported
// nothing.
type TransferEnd struct {
	Site     string   `json:"site"`
	Role     string   `json:"role"`           // source, destination or both
	Moved    int64    `json:"moved_bytes"`    // that it gave and took
	Endpoint *int64   `json:"endpoint_bytes"` // of these through its endpoint, as that counts them
	CPUMax   *float64 `json:"cpu_max"`        // of its agent, busiest second
	CPUMean  *float64 `json:"cpu_mean"`       // over the case
	CPU      *float64 `json:"cpu_seconds"`    // of its agent
	Memory   *float64 `json:"memory_share"`   // of its agent, of the machine's
	Resident *int64   `json:"resident_bytes"`
}

// A TransferFile is the outcome of a file.
type TransferFile struct {
	Step       int       `json:"step"`
	File       string    `json:"file"`
	Size       int64     `json:"size_bytes"`
	Source     string    `json:"source"`
	Dest       string    `json:"destination"`
	Mode       string    `json:"mode,omitempty"`
	Tries      int       `json:"tries"`
	Done       bool      `json:"done"`
	Begin      time.Time `json:"begin,omitzero"` // of the attempt that decided
	End        time.Time `json:"end"`
	Seconds    float64   `json:"duration_seconds"`
	Throughput float64   `json:"throughput_bytes_per_second"` // of that attempt
	CPU        float64   `json:"mover_cpu_seconds,omitempty"`
	Reason     string    `json:"reason,omitempty"`
}

// transferSums are what transfers.jsonl and the samples add up to.
type transferSums struct {
	figures TransferFigures
	tries   map[string]int // by step and file
	list    []change       // of copies that run
	ends    map[siteCase]*endSum
}

// A siteCase is a site in the case of a step.
type siteCase struct {
	step int
	site string
}

// A change is a copy that begins or ends.
type change struct {
	step int
	at   time.Time
	by   int
}

// An endSum gathers one site in one case.
type endSum struct {
	TransferEnd
	cpu, max, span float64
	door           int64
	byDoor         int64 // that others tell to have moved through its endpoint
	from, to       time.Time
	covered        float64 // seconds of that time which samples report on
	total          int64   // memory of the machine
	sampled        bool
}

// loadTransfers reads transfers.jsonl, if there is one.
func (d *data) loadTransfers(run *results.Run) error {
	for t, err := range run.Transfers() {
		if err != nil {
			return err
		}
		if d.transfers == nil {
			d.transfers = &transferSums{figures: TransferFigures{Files: []TransferFile{}, Missing: []TransferFile{}}, tries: map[string]int{},
				ends: map[siteCase]*endSum{}}
		}
		d.transfers.add(t)
	}
	if d.transfers != nil {
		d.transfers.finish(d)
	}
	return nil
}

// add counts an attempt.
func (s *transferSums) add(t *results.Transfer) {
	c := s.step(t)
	if !t.Begin.IsZero() {
		c.Attempts++
		s.list = append(s.list, change{t.Step, t.Begin, 1}, change{t.Step, t.End, -1})
		if !t.Done {
			c.Failures++
		}
	}
	s.move(t)
	name := fmt.Sprint(t.Step, " ", t.Request, " ", t.File)
	if !t.Begin.IsZero() {
		s.tries[name]++
	}
	if !t.Last {
		return
	}
	c.Files++
	f := TransferFile{
		Step: t.Step, File: t.File, Size: t.Size, Source: t.Source, Dest: t.Dest, Mode: t.Mode, Tries: s.tries[name], Done: t.Done,
		Begin: t.Begin, End: t.End, CPU: t.CPU, Reason: t.Reason,
	}
	delete(s.tries, name)
	if !t.Begin.IsZero() {
		f.Seconds = t.End.Sub(t.Begin).Seconds()
		f.Throughput = ratio(float64(t.Moved), f.Seconds)
	}
	if t.Done {
		c.Arrived++
		c.Bytes += t.Size
		if t.Mode == "check" {
			c.There++
		} else {
			c.brought += t.Size
		}
		c.SumOfFiles += f.Throughput
		if c.Smallest == 0 || t.Size < c.Smallest {
			c.Smallest = t.Size
		}
		c.Largest = max(c.Largest, t.Size)
		s.arrived(c, t.End)
	} else if len(s.figures.Missing) < mostReasons {
		s.figures.Missing = append(s.figures.Missing, f)
	}
	if len(s.figures.Files) < mostFiles {
		s.figures.Files = append(s.figures.Files, f)
	} else {
		s.figures.Left++
	}
}

// arrived notes when a file had arrived: Begin and End keep the first and the last of these moments until finish.
func (s *transferSums) arrived(c *TransferCase, at time.Time) {
	if c.Begin.IsZero() || at.Before(c.Begin) {
		c.Begin = at
	}
	if at.After(c.End) {
		c.End = at
	}
}

func (s *transferSums) step(t *results.Transfer) *TransferCase {
	all := &s.figures.Cases
	if i := slices.IndexFunc(*all, func(c TransferCase) bool { return c.Step == t.Step }); i >= 0 {
		return &(*all)[i]
	}
	*all = append(*all, TransferCase{Step: t.Step, Case: t.Case})
	return &(*all)[len(*all)-1]
}

// move notes what went through which site.
func (s *transferSums) move(t *results.Transfer) {
	for i, site := range []string{t.Source, t.Dest} {
		if site == "" {
			continue
		}
		e := entryOf(&s.ends, siteCase{t.Step, site})
		role := [2]string{"source", "destination"}[i]
		if e.Role != "" && e.Role != role {
			role = "both"
		}
		e.Site, e.Role = site, role
		e.Moved += t.Moved
		if t.Mode == [2]string{"pull", "push"}[i] && t.Moved > 0 {
			e.byDoor += t.Moved
			if e.from.IsZero() || t.Begin.Before(e.from) {
				e.from = t.Begin
			}
			if t.End.After(e.to) {
				e.to = t.End
			}
		}
	}
}

// finish knows all attempts, and when the steps were.
func (s *transferSums) finish(d *data) {
	slices.SortFunc(s.list, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.step, b.step), a.at.Compare(b.at), cmp.Compare(a.by, b.by))
	})
	most, now, step := map[int]int{}, 0, 0
	for _, c := range s.list {
		if c.step != step {
			step, now = c.step, 0
		}
		now += c.by
		most[step] = max(most[step], now)
	}
	s.list = nil
	for c := range each(s.figures.Cases) {
		c.AtOnce = most[c.Step]
		c.Spread = c.End.Sub(c.Begin).Seconds()
		if t := d.steps[c.Step]; t != nil && len(t.seconds) > 0 {
			c.Begin, c.End = t.seconds[0].start, t.seconds[len(t.seconds)-1].end()
		}
		c.Seconds = c.End.Sub(c.Begin).Seconds()
		c.Throughput = ratio(float64(c.brought), c.Seconds)
	}
}

// watch adds what the host of a site went through to the case that had most of it.
func (s *transferSums) watch(m *monitor.Sample, from time.Time, holds holds) {
	step, most := 0, 0.0
	holds.during(from, m.Time, func(n int, seconds float64) {
		if seconds > most {
			step, most = n, seconds
		}
	})
	site, _ := strings.CutPrefix(m.Host, "site ")
	if e := s.ends[siteCase{step, site}]; e != nil && site != m.Host {
		e.watch(m, from, most)
	}
}

func (e *endSum) watch(m *monitor.Sample, from time.Time, during float64) {
	cores, resident := processes(m, server)
	if math.IsNaN(cores) {
		return
	}
	cpu := cores * m.Seconds
	e.sampled, e.cpu, e.span = true, e.cpu+cpu, e.span+during
	if during >= longEnough {
		e.max = max(e.max, ratio(cpu, during))
	}
	if m.Memory != nil {
		e.total = max(e.total, m.Memory.Total)
	}
	if e.Resident == nil || resident > *e.Resident {
		e.Resident = &resident
	}
	for p := range each(m.Procs) {
		e.door += p.Sent + p.Received
	}
	e.covered += secondsShared(from, m.Time, e.from, e.to)
}

// transferFigures returns the figures of all cases, nil if nothing was transferred between sites.
func (d *data) transferFigures() *TransferFigures {
	s := d.transfers
	if s == nil {
		return nil
	}
	f := &s.figures
	for c := range each(f.Cases) {
		c.Ends = []TransferEnd{}
		for of, e := range s.ends {
			if of.step == c.Step {
				c.Ends = append(c.Ends, e.figure(c.Seconds))
			}
		}
		slices.SortFunc(c.Ends, func(a, b TransferEnd) int {
			return cmp.Or(-cmp.Compare(a.Role, b.Role), cmp.Compare(a.Site, b.Site)) // sources first
		})
	}
	return f
}

func (e *endSum) figure(seconds float64) TransferEnd {
	f := e.TransferEnd
	if !e.sampled {
		return f
	}
	mean := ratio(e.cpu, min(seconds, e.span))
	f.CPU, f.CPUMean, f.CPUMax, f.Endpoint = new(e.cpu), &mean, new(max(e.max, mean)), new(e.door)
	if e.total > 0 && f.Resident != nil {
		f.Memory = new(float64(*f.Resident) / float64(e.total))
	}
	return f
}

// checkEnds compares what movers counted with what the endpoints at the other ends did, where their samples cover the
// time.
func (d *data) checkEnds() Check {
	c := Check{Name: "both ends agree", Status: Skipped}
	var moved, there int64
	silent := 0
	for _, e := range d.transfers.ends {
		switch {
		case e.byDoor == 0:
		case !e.sampled || e.covered < 0.9*e.to.Sub(e.from).Seconds():
			silent++
		default:
			moved, there = moved+e.byDoor, there+e.door
		}
	}
	if moved == 0 {
		c.Detail = "no endpoint of an agent transferred bytes while its host was sampled"
		return c
	}
	off := ratio(float64(there-moved), float64(moved))
	c.Detail = fmt.Sprintf("movers counted %s, the endpoints at the other ends %s: %+.2f%%", unit.Bytes(float64(moved)),
		unit.Bytes(float64(there)), 100*off)
	if silent > 0 {
		c.Detail += fmt.Sprintf("; not compared where a site sent no samples (%s)", say.Times(int64(silent)))
	}
	switch off = math.Abs(off); {
	case off <= bytesOK:
		c.Status = OK
	case off <= bytesWarn:
		c.Status = Warn
	default:
		c.Status = Fail
	}
	return c
}

// rungs is how many different loads make a curve of the cases.
const rungs = 4

// transferVerdict says what arrived, and what the curve shows if the cases are one.
func (f *Findings) transferVerdict() string {
	text := f.Transfers.Text()
	loads := map[int]bool{}
	for s := range each(f.Curve) {
		loads[s.Clients] = true
	}
	if len(loads) >= rungs && len(loads) == len(f.Curve) {
		return text + "\n" + f.Verdict
	}
	best := slices.MaxFunc(f.Transfers.Cases, func(a, b TransferCase) int { return cmp.Compare(a.Throughput, b.Throughput) })
	switch {
	case best.Throughput <= 0:
		return text
	case len(f.Transfers.Cases) > 1:
		return text + fmt.Sprintf("\nThe fastest case was %q with %s.", best.Case, unit.Bits(best.Throughput))
	}
	return text + fmt.Sprintf("\nThat is %s.", unit.Bits(best.Throughput))
}

// Text says in a sentence what arrived.
func (t *TransferFigures) Text() string {
	var all TransferCase
	for c := range each(t.Cases) {
		all.Files, all.Arrived, all.There, all.Bytes = all.Files+c.Files, all.Arrived+c.Arrived, all.There+c.There, all.Bytes+c.Bytes
		all.Attempts, all.Failures = all.Attempts+c.Attempts, all.Failures+c.Failures
	}
	text := fmt.Sprintf("%d of %s arrived (%s) in %s", all.Arrived, say.Plural(all.Files, "file"), unit.Bytes(float64(all.Bytes)),
		say.Plural(all.Attempts, "attempt"))
	if all.Failures > 0 {
		text += fmt.Sprintf(", %d of which failed", all.Failures)
	}
	text += fmt.Sprintf("; %s.", say.Plural(len(t.Cases), "case"))
	if all.There > 0 {
		text += fmt.Sprintf(" %d of the files already existed at the destination.", all.There)
	}
	if n := all.Files - all.Arrived; n > 0 {
		text += fmt.Sprintf(" %s did not arrive; the reasons are listed.", say.Plural(n, "file"))
	}
	return text
}
