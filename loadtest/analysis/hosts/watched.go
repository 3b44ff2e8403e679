// Package hosts sums the samples of hosts, of their processes, of servers and of emulated links by step. It is the bottom of the
// analysis: of the run it needs only the times at which load was held. A HostFigure is in findings.json; a Host has in addition the
// values by which other packages judge it.
package hosts

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"weir/loadtest/analysis/basics"
	"weir/monitor"
)

// Watched sums the samples of the hosts. They are taken one by one in the order of their file, and only
// after all intervals, which say when load was held and so to which step a sample belongs. None of them is kept: an
// hour of fifty hosts would not fit into memory.
type Watched struct {
	Holds     Holds
	steps     map[int]map[string]*hostSum // by step and host
	hosts     map[string]*HostSeries
	byProgram map[Program]bool
	begin     time.Time // of the series

	scratch string // device that jobs' copies of files lie on, in runs whose samples do not say so
	Count   int
	Broken  int
	LeftOut map[string]int // seconds that are left out, by counter and host
	Cost    float64        // seconds of CPU
	Span    float64        // seconds, summed over samples
}

// SetDisksAside has the disks of a host that are full at all loads, as a backup fills one, not count as its busiest where others become
// full with the load.
func (w *Watched) SetDisksAside() {
	hosts := map[string][]*hostSum{}
	for _, step := range w.steps {
		for name, h := range step {
			hosts[name] = append(hosts[name], h)
		}
	}
	for _, sums := range hosts {
		full := map[string]int{} // steps in which a disk is
		for _, h := range sums {
			for name, d := range h.disks {
				if d.idle(h.looks); d.busy.Or0() >= diskFull {
					full[name]++
				}
			}
		}
		always, grows := map[string]bool{}, false
		for name, n := range full {
			always[name] = n == len(sums)
			grows = grows || n < len(sums)
		}
		for _, h := range sums {
			if grows {
				h.aside = always
			}
		}
	}
}

// host returns the sums of s's host in step.
func (w *Watched) host(step int, s *monitor.Sample) *hostSum {
	hosts := w.steps[step]
	h := basics.EntryOf(&hosts, s.Host)
	w.steps[step] = hosts
	if h.Host == "" {
		if h.Host, h.Role = s.Host, s.Role; s.Role == Client || s.Role == "both" {
			h.device = w.scratch
		}
	}
	h.device = cmp.Or(s.Scratch, h.device)
	return h
}

// Point appends s to its host's series.
func (w *Watched) Point(s *monitor.Sample) {
	if s.Service != nil && len(s.Procs) == 0 {
		return // its process is among those of the host it runs on
	}
	h := basics.EntryOf(&w.hosts, s.Host)
	if h.Host == "" {
		h.Host, h.Role, h.Link = s.Host, s.Role, s.Link != nil
	}
	h.Cores = max(h.Cores, s.Cores)
	if s.Memory != nil {
		h.Memory = max(h.Memory, s.Memory.Total)
	}
	h.add(NewHostPoint(s, w.begin))
}

// HostSeries lists the hosts by role and name, each in order of time.
func (w *Watched) HostSeries() []HostSeries {
	var all []HostSeries
	for _, h := range w.hosts {
		h.sort()
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b HostSeries) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Host, b.Host))
	})
	return all
}

// mostPrograms is how many are kept: a server that keeps changing its version must not fill memory.
const mostPrograms = 4096

// Program records the server's program of a sample.
func (w *Watched) Program(s *monitor.Sample) {
	if s.Service == nil || s.Service.Program == "" && s.Service.Version == "" {
		return
	}
	if p := (Program{Server: s.Host, Kind: s.Service.Kind, Name: s.Service.Program,
		Version: s.Service.Version}); len(w.byProgram) < mostPrograms {
		w.byProgram[p] = true
	}
}

// Programs lists them by server.
func (w *Watched) Programs() []Program {
	return slices.SortedFunc(maps.Keys(w.byProgram), func(a, b Program) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Kind, b.Kind))
	})
}

// NewWatched returns watched for a run whose load was held at these times; begin is the start of its series, and scratch the device
// of jobs' copies of files where samples do not name it.
func NewWatched(held Holds, begin time.Time, scratch string) *Watched {
	return &Watched{Holds: held, steps: map[int]map[string]*hostSum{}, hosts: map[string]*HostSeries{}, byProgram: map[Program]bool{},
		begin: begin, scratch: scratch}
}

// Counted counts a sample, its cost, and the seconds that it leaves out.
func (w *Watched) Counted(s *monitor.Sample) {
	w.Count++
	w.Cost += s.Cost
	w.Span += s.Seconds
	if s.Error != "" {
		w.Broken++
	}
	for _, what := range s.LeftOut {
		if w.LeftOut == nil {
			w.LeftOut = map[string]int{}
		}
		w.LeftOut[what+" of "+s.Host]++
	}
}

// Add adds a sample to the sums of its host in all steps that were held since from. held is how many of its seconds they were.
func (w *Watched) Add(s *monitor.Sample, from time.Time) (held float64) {
	w.Holds.During(from, s.Time, func(step int, weight float64) {
		w.host(step, s).add(s, weight)
		held += weight
	})
	return held
}

// Figures returns the hosts of a step, by role and name.
func (w *Watched) Figures(step int) []Host {
	var all []Host
	for _, h := range w.steps[step] {
		all = append(all, h.figure())
	}
	slices.SortFunc(all, func(a, b Host) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Host, b.Host))
	})
	return all
}

// A Hold is one contiguous stretch of a step's measurement time.
type Hold struct {
	From, To time.Time
	Step     int
	Last     time.Time // the latest end of this one and all before it
}

// Holds are all measurement times of a run by their begin.
type Holds []Hold

// During calls f with the steps that were held between two moments, in order of time, and for how many seconds each
// was.
func (h Holds) During(from, to time.Time, f func(step int, seconds float64)) {
	step, sum := 0, 0.0
	tell := func() {
		if sum > 0 {
			f(step, sum)
		}
		sum = 0
	}
	for i := sort.Search(len(h), func(i int) bool { return h[i].Last.After(from) }); i < len(h) && h[i].From.Before(to); i++ {
		if part := basics.SecondsShared(from, to, h[i].From, h[i].To); part > 0 {
			if step != h[i].Step {
				tell()
			}
			step = h[i].Step
			sum += part
		}
	}
	tell()
}

// Bounds of samples.
const (
	Inside    = 0.99 // share of a sample that must lie in one step's measurement time
	LeastSeen = 1e6  // bytes; less is lost among everything else that a machine does
	diskFull  = 0.90 // share of the time from which on a disk counts as full
)

// MostLateLook is by how many seconds a look at a host is late at most.
const MostLateLook = 0.5

// Bounds from which a host that was watched counts as lost: so many seconds, and such a part of the run.
const (
	leastSilent = 10.0
	partSilent  = 0.05
)

// Silent returns the host whose last sample lies the longest before the end of the run, which is last seconds after its begin, and how
// many seconds; 0 if none was lost.
func (w *Watched) Silent(last float64) (host string, seconds float64) {
	for _, h := range w.HostSeries() { // by name, so that the same one is named each time
		if len(h.Points) > 0 {
			if gone := last - h.last; gone > max(seconds, leastSilent, partSilent*last) {
				host, seconds = h.Host, gone
			}
		}
	}
	return host, seconds
}
