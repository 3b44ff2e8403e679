package transfers

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/results"
	"weir/monitor"
)

// Sums are the sums of the records in transfers.jsonl and of the samples.
type Sums struct {
	figures TransferFigures
	tries   map[string]int // by step and file
	list    []change       // of running copies
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

// An endSum sums one site in one case.
type endSum struct {
	TransferEnd
	cpu, max, span float64
	door           int64
	byDoor         int64 // bytes through its endpoint according to other sites
	from, to       time.Time
	covered        float64 // seconds of that time covered by samples
	total          int64   // memory of the machine
	sampled        bool
}

// Load reads transfers.jsonl. It returns nil if the file does not exist. d is the run, whose
// intervals have been read.
func Load(run *results.Run, d *steps.Run) (s *Sums, err error) {
	for t, err := range run.Transfers() {
		if err != nil {
			return nil, err
		}
		if s == nil {
			s = &Sums{figures: TransferFigures{Files: []TransferFile{}, Missing: []TransferFile{}}, tries: map[string]int{},
				ends: map[siteCase]*endSum{}}
		}
		s.add(t)
	}
	if s != nil {
		d.Record = true
		s.finish(d)
	}
	return s, nil
}

// add counts an attempt.
func (s *Sums) add(t *results.Transfer) {
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
		f.Throughput = stats.Ratio(float64(t.Moved), f.Seconds)
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

// arrived records the arrival of a file: until finish, Begin and End hold the first and the last
// arrival.
func (s *Sums) arrived(c *TransferCase, at time.Time) {
	if c.Begin.IsZero() || at.Before(c.Begin) {
		c.Begin = at
	}
	if at.After(c.End) {
		c.End = at
	}
}

func (s *Sums) step(t *results.Transfer) *TransferCase {
	all := &s.figures.Cases
	if i := slices.IndexFunc(*all, func(c TransferCase) bool { return c.Step == t.Step }); i >= 0 {
		return &(*all)[i]
	}
	*all = append(*all, TransferCase{Step: t.Step, Case: t.Case})
	return &(*all)[len(*all)-1]
}

// move adds the bytes of a transfer to its source and its destination.
func (s *Sums) move(t *results.Transfer) {
	for i, site := range []string{t.Source, t.Dest} {
		if site == "" {
			continue
		}
		e := basics.EntryOf(&s.ends, siteCase{t.Step, site})
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

// finish computes the figures that need all attempts and the times of the steps.
func (s *Sums) finish(d *steps.Run) {
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
	for c := range basics.Each(s.figures.Cases) {
		c.AtOnce = most[c.Step]
		c.Spread = c.End.Sub(c.Begin).Seconds()
		if t := d.Steps[c.Step]; t != nil && len(t.Seconds) > 0 {
			c.Begin, c.End = t.Seconds[0].Start, t.Seconds[len(t.Seconds)-1].End()
		}
		c.Seconds = c.End.Sub(c.Begin).Seconds()
		c.Throughput = stats.Ratio(float64(c.brought), c.Seconds)
	}
}

// Watch adds a sample of the host of a site to the case that has the largest part of its span.
func (s *Sums) Watch(m *monitor.Sample, from time.Time, holds hosts.Holds) {
	step, most := 0, 0.0
	holds.During(from, m.Time, func(n int, seconds float64) {
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
	cores, resident := hosts.Processes(m, hosts.Server)
	if math.IsNaN(cores) {
		return
	}
	cpu := cores * m.Seconds
	e.sampled, e.cpu, e.span = true, e.cpu+cpu, e.span+during
	if during >= longEnough {
		e.max = max(e.max, stats.Ratio(cpu, during))
	}
	if m.Memory != nil {
		e.total = max(e.total, m.Memory.Total)
	}
	if e.Resident == nil || resident > *e.Resident {
		e.Resident = &resident
	}
	for p := range basics.Each(m.Procs) {
		e.door += p.Sent + p.Received
	}
	e.covered += basics.SecondsShared(from, m.Time, e.from, e.to)
}

// Figures returns the figures of all cases.
func (s *Sums) Figures() *TransferFigures {
	f := &s.figures
	for c := range basics.Each(f.Cases) {
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
	mean := stats.Ratio(e.cpu, min(seconds, e.span))
	f.CPU, f.CPUMean, f.CPUMax, f.Endpoint = new(e.cpu), &mean, new(max(e.max, mean)), new(e.door)
	if e.total > 0 && f.Resident != nil {
		f.Memory = new(float64(*f.Resident) / float64(e.total))
	}
	return f
}

// Agreement compares the byte counts of the movers with the counts of the endpoints at the other
// ends, if samples of the endpoints cover the time. silent is the number of ends that are not
// compared because samples are missing.
func (s *Sums) Agreement() (moved, there int64, silent int) {
	for _, e := range s.ends {
		switch {
		case e.byDoor == 0:
		case !e.sampled || e.covered < 0.9*e.to.Sub(e.from).Seconds():
			silent++
		default:
			moved, there = moved+e.byDoor, there+e.door
		}
	}
	return moved, there, silent
}
