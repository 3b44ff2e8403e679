package analysis

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"weir/monitor"
)

// watched is what the samples of the hosts add up to. They are taken one by one in the order of their file, and only
// after all intervals, which say when load was held and so to which step a sample belongs. None of them is kept: an
// hour of fifty hosts would not fit into memory.
type watched struct {
	holds     holds
	steps     map[int]map[string]*hostSum // by step and host
	bytes     byteSums
	hosts     map[string]*HostSeries
	byProgram map[Program]bool
	begin     time.Time // of the series

	scratch string // device that jobs' copies of files lie on, in runs whose samples do not say so
	count   int
	broken  int
	leftOut map[string]int // seconds that are left out, by what and host
	cost    float64        // seconds of CPU
	span    float64        // seconds, summed over samples
}

// watching prepares for the samples. All seconds are known by now.
func (d *data) watching() {
	d.watched = watched{holds: d.holdTimes(), steps: map[int]map[string]*hostSum{}, hosts: map[string]*HostSeries{},
		byProgram: map[Program]bool{},
		begin:     d.begin(), bytes: byteSums{index: map[source]int{}, held: map[string]*count{}, whole: map[string]*count{},
			fastest: d.fastest()}}
	if d.about.Scratch != nil {
		d.watched.scratch = d.about.Scratch.Device
	}
	d.watchBackends()
}

// begin is when the run's series starts.
func (d *data) begin() time.Time {
	if len(d.seconds) > 0 {
		return d.seconds[0].start
	}
	return d.about.Start
}

// watch adds one sample to everything that it counts for.
func (d *data) watch(s *monitor.Sample) {
	w := &d.watched
	w.count++
	w.cost += s.Cost
	w.span += s.Seconds
	if s.Error != "" {
		w.broken++
	}
	for _, what := range s.LeftOut {
		if w.leftOut == nil {
			w.leftOut = map[string]int{}
		}
		w.leftOut[what+" of "+s.Host]++
	}
	d.incomplete(s)
	if s.Nothing() {
		return
	}
	w.program(s)
	from := s.Time.Add(-duration(s.Seconds))
	if d.watchBackend(s, from) {
		return
	}
	if d.transfers != nil {
		d.transfers.watch(s, from, w.holds)
	}
	held := 0.0
	w.holds.during(from, s.Time, func(step int, weight float64) {
		w.host(step, s).add(s, weight)
		held += weight
	})
	if s.Seconds > 0 {
		d.addBytes(s, from, held >= inside*s.Seconds)
	}
	w.point(s)
}

// setDisksAside has the disks of a host that are full at all loads, as a backup fills one, not count as its busiest where others become
// full with the load.
func (w *watched) setDisksAside() {
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
				if d.idle(h.looks); d.busy.or0() >= boundOf(ResourceDisk).reached {
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
func (w *watched) host(step int, s *monitor.Sample) *hostSum {
	hosts := w.steps[step]
	h := entryOf(&hosts, s.Host)
	w.steps[step] = hosts
	if h.Host == "" {
		if h.Host, h.Role = s.Host, s.Role; s.Role == client || s.Role == "both" {
			h.device = w.scratch
		}
	}
	h.device = cmp.Or(s.Scratch, h.device)
	return h
}

// point appends s to its host's series.
func (w *watched) point(s *monitor.Sample) {
	if s.Service != nil && len(s.Procs) == 0 {
		return // its process is among those of the host it runs on
	}
	h := entryOf(&w.hosts, s.Host)
	if h.Host == "" {
		h.Host, h.Role, h.Link = s.Host, s.Role, s.Link != nil
	}
	h.Cores = max(h.Cores, s.Cores)
	if s.Memory != nil {
		h.Memory = max(h.Memory, s.Memory.Total)
	}
	h.add(NewHostPoint(s, w.begin))
}

// hostSeries lists the hosts by role and name, each in order of time.
func (w *watched) hostSeries() []HostSeries {
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

// A hold is one contiguous stretch of a step's measurement time.
type hold struct {
	from, to time.Time
	step     int
	last     time.Time // the latest end of this one and all before it
}

// holds are all measurement times of a run by their begin.
type holds []hold

func (d *data) holdTimes() holds {
	var all holds
	for _, t := range d.held() {
		for _, span := range t.spans() {
			all = append(all, hold{from: span[0], to: span[1], step: t.number})
		}
	}
	slices.SortStableFunc(all, func(a, b hold) int { return a.from.Compare(b.from) })
	for i := range all {
		all[i].last = all[i].to
		if i > 0 && all[i-1].last.After(all[i].last) {
			all[i].last = all[i-1].last
		}
	}
	return all
}

// during calls f with the steps that were held between two moments, in order of time, and for how many seconds each
// was.
func (h holds) during(from, to time.Time, f func(step int, seconds float64)) {
	step, sum := 0, 0.0
	tell := func() {
		if sum > 0 {
			f(step, sum)
		}
		sum = 0
	}
	for i := sort.Search(len(h), func(i int) bool { return h[i].last.After(from) }); i < len(h) && h[i].from.Before(to); i++ {
		if part := secondsShared(from, to, h[i].from, h[i].to); part > 0 {
			if step != h[i].step {
				tell()
			}
			step = h[i].step
			sum += part
		}
	}
	tell()
}

// spans returns the contiguous stretches of a step's measurement time.
func (t *total) spans() [][2]time.Time {
	var all [][2]time.Time
	for s := range each(t.seconds) {
		if n := len(all); n > 0 && s.start.Sub(all[n-1][1]) < 50*time.Millisecond {
			all[n-1][1] = s.end()
			continue
		}
		all = append(all, [2]time.Time{s.start, s.end()})
	}
	return all
}
