// Package hosts sums the samples of hosts, of their processes, of servers and of emulated links by
// step. It is the lowest layer of the analysis: of the run it needs only the times at which load
// was held. A HostFigure is part of findings.json; a Host has in addition the values that other
// packages need to interpret it.
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

// Watched sums the samples of the hosts. The samples are read one by one in the order of their
// file, and only after all intervals, which determine when load was held and so the step of a
// sample. Samples are not stored: an hour of fifty hosts would not fit into memory.
type Watched struct {
	Holds     Holds
	steps     map[int]map[string]*hostSum // by step and host
	hosts     map[string]*HostSeries
	byProgram map[Program]bool
	begin     time.Time // of the series

	scratch string // device of the copies of files of jobs, if samples do not contain it
	Count   int
	Broken  int
	LeftOut map[string]int // seconds that are missing, by counter and host
	Cost    float64        // seconds of CPU
	Span    float64        // seconds, summed over samples
}

// SetDisksAside excludes disks of a host that are full at all loads, such as a disk with a running
// backup, from its busiest disks if other disks become full with the load.
func (w *Watched) SetDisksAside() {
	hosts := map[string][]*hostSum{}
	for _, step := range w.steps {
		for name, h := range step {
			hosts[name] = append(hosts[name], h)
		}
	}
	for _, sums := range hosts {
		full := map[string]int{} // number of steps in which a disk is full
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
		return // the samples of its host include its process
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

// HostSeries returns the series of the hosts by role and name, each in order of time.
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

// mostPrograms is the maximum number of programs that are stored: a server that keeps changing its
// version must not fill memory.
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

// Programs returns the recorded programs by server.
func (w *Watched) Programs() []Program {
	return slices.SortedFunc(maps.Keys(w.byProgram), func(a, b Program) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Kind, b.Kind))
	})
}

// NewWatched returns a Watched for a run whose load was held at the given times. begin is the start
// of its series. scratch is the device of the copies of files of jobs, for samples that do not
// contain it.
func NewWatched(held Holds, begin time.Time, scratch string) *Watched {
	return &Watched{Holds: held, steps: map[int]map[string]*hostSum{}, hosts: map[string]*HostSeries{}, byProgram: map[Program]bool{},
		begin: begin, scratch: scratch}
}

// Counted counts a sample, its cost, and the seconds that are missing in it.
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

// Add adds a sample to the sums of its host in all steps that were held since from. held is the
// number of seconds of the sample in these steps.
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

// A Hold is one contiguous part of a step's measurement time.
type Hold struct {
	From, To time.Time
	Step     int
	Last     time.Time // the latest end of this hold and all earlier holds
}

// Holds are all measurement times of a run in order of their start.
type Holds []Hold

// During calls f for each step that was held between two times, in order of time, with the number
// of seconds.
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
	LeastSeen = 1e6  // bytes; a machine's other activity hides smaller amounts
	diskFull  = 0.90 // share of the time from which a disk counts as full
)

// MostLateLook is the maximum delay of a sample of a host, in seconds.
const MostLateLook = 0.5

// A watched host counts as lost after this number of seconds and this share of the run without
// samples.
const (
	leastSilent = 10.0
	partSilent  = 0.05
)

// Silent returns the host whose samples end the longest before the end of the run, which is at last
// seconds, and the duration without samples; 0 if no host was lost.
func (w *Watched) Silent(last float64) (host string, seconds float64) {
	for _, h := range w.HostSeries() { // sorted by name, so that the result is always the same
		if len(h.Points) > 0 {
			if gone := last - h.last; gone > max(seconds, leastSilent, partSilent*last) {
				host, seconds = h.Host, gone
			}
		}
	}
	return host, seconds
}
