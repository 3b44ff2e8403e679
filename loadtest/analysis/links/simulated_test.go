package links

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/control"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/simulated"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/workload"
	"weir/monitor"
)

// A simulation has weir's controller carry out a challenge on the model of package simulated, and
// keeps the records.
type simulation struct {
	plan  *challenge.Challenge
	model *simulated.Simulated
	sums  *Sums
	made  map[int64]*results.Transfer
	ended []*results.Transfer
	links map[int64]int
	done  []int
	fail  []int
}

const simulatedTick = 100 * time.Millisecond

// simulate runs a challenge of 4 minutes at 40% and 12 minutes at 100%.
func simulate(t *testing.T, c *challenge.Challenge, o simulated.Options, disks map[int]float64) *Sums {
	t.Helper()
	c.Profile = []challenge.Stage{{For: unit.Duration(4 * time.Minute), At: 0.4}, {For: unit.Duration(12 * time.Minute), At: 1}}
	s := &simulation{plan: c, sums: New(c), made: map[int64]*results.Transfer{}, links: map[int64]int{}, done: make([]int, len(c.Links)),
		fail: make([]int, len(c.Links))}
	o.Report, o.Begin = s.report, modelStart
	var err error
	s.model, err = simulated.New(o)
	require.NoError(t, err)
	size := int64(c.Files.Size.Fixed)
	options := control.Options{Ceiling: float64(c.Ceiling) / 8, Delay: o.Latency}
	for i := range c.Links {
		options.Links = append(options.Links, control.Limit{Source: o.Links[i].From, Dest: o.Links[i].To, InFlight: c.Links[i].InFlight,
			FileBytes: size})
	}
	for i := range c.Sites {
		options.Sites = append(options.Sites, c.Sites[i].InFlight)
	}
	s.conduct(t, control.New(options), size, disks)
	for _, x := range s.ended {
		s.sums.Transfer(x)
	}
	s.sums.Event(&measure.Event{Time: modelStart.Add(16 * time.Minute), Kind: measure.EventEnd, Outcome: measure.Complete})
	return s.sums
}

func (s *simulation) report(r inject.Report) {
	t := s.made[r.ID]
	switch {
	case t == nil:
		return
	case r.State == inject.Running && t.Begin.IsZero():
		t.Begin = r.At
	}
	if r.State == inject.Running && r.Moved == t.Size && t.LastByte.IsZero() {
		t.LastByte = r.At
	}
	if !r.State.Ended() {
		return
	}
	delete(s.made, r.ID)
	if t.LastByte.IsZero() {
		t.LastByte = r.At
	}
	t.End, t.Done, t.Class, t.Site, t.Expired, t.Last = r.At, r.State == inject.Done, r.Class, r.Site, r.Expired, true
	if !r.Begin.IsZero() {
		t.Begin = r.Begin
	}
	if t.Done {
		s.done[s.links[r.ID]]++
	} else {
		s.fail[s.links[r.ID]]++
	}
	s.ended = append(s.ended, t)
}

// conduct makes decisions ten times a second and writes a line of each link every second.
func (s *simulation) conduct(t *testing.T, c *control.Controller, size int64, disks map[int]float64) {
	t.Helper()
	n := len(s.plan.Links)
	last, seen, id := make([]simulated.Counts, n), make([]control.Seen, n), int64(0)
	lines := make([]results.LinkInterval, n)
	reasons := make([]map[challenge.Reason]int, n)
	for at := time.Duration(0); at < 16*time.Minute; at += simulatedTick {
		share := 1.0
		if at < 4*time.Minute {
			share = 0.4
		}
		for i := range n {
			now, target := s.model.Counts(i), share*float64(s.plan.Links[i].Rate)/8
			seen[i] = control.Seen{Target: target, Moved: now.Moved - last[i].Moved, InFlight: now.InFlight, Queued: now.Queued, Left: now.Left,
				Done: now.Done - last[i].Done, Failed: now.Failed - last[i].Failed}
			l := &lines[i]
			l.Target, l.Moved = target, l.Moved+seen[i].Moved
			l.Flight, l.Queued, l.Done, l.Failed = l.Flight+float64(now.InFlight)/10, l.Queued+float64(now.Queued)/10, l.Done+seen[i].Done,
				l.Failed+seen[i].Failed
			last[i] = now
		}
		if at > 0 && at%time.Second == 0 {
			s.write(at-time.Second, lines, reasons, disks)
		}
		var copies []inject.Copy
		for i, d := range c.Decide(at, seen) {
			if reasons[i] == nil {
				reasons[i] = map[challenge.Reason]int{}
			}
			reasons[i][d.Reason]++
			lines[i].Allowed, lines[i].Started = d.Allowed, lines[i].Started+d.Start
			for range d.Start {
				id++
				copies = append(copies, inject.Copy{ID: id, Link: i, Source: inject.File{Size: size}})
				p := &s.plan.Links[i]
				s.links[id] = i
				s.made[id] = &results.Transfer{Source: p.From, Dest: p.To, Size: size, File: "f", Asked: modelStart.Add(at)}
			}
		}
		require.NoError(t, s.model.Start(t.Context(), copies))
		s.model.Step(simulatedTick)
	}
}

func (s *simulation) write(at time.Duration, lines []results.LinkInterval, reasons []map[challenge.Reason]int, disks map[int]float64) {
	in := map[string]float64{}
	for i := range lines {
		l, p := &lines[i], &s.plan.Links[i]
		l.Start, l.Seconds, l.Source, l.Dest, l.Stage = modelStart.Add(at), 1, p.From, p.To, 1+min(1, int(at/(4*time.Minute)))
		l.Reason = slices.MaxFunc(slices.Sorted(maps.Keys(reasons[i])), func(a, b challenge.Reason) int { return reasons[i][a] - reasons[i][b] })
		in[p.To] += float64(l.Moved)
		s.sums.Link(l)
		lines[i], reasons[i] = results.LinkInterval{}, nil
	}
	for site, capacity := range disks {
		name := s.plan.Sites[site].Name
		s.sums.Sample(&monitor.Sample{Time: modelStart.Add(at + time.Second), Seconds: 1, Host: "host-" + name, Role: monitor.RoleServer,
			Cores: 4, CPU: &monitor.CPU{Idle: 0.8, User: 0.2}, Disks: []monitor.Disk{{Name: "sda", Busy: min(1, in[name]/capacity)}}})
	}
}

// TestSimulated holds the causes against the model of package simulated, with weir's controller.
func TestSimulated(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	right, all := 0, 0
	for _, r := range simulatedRigs() {
		m := twelve()
		c, disks := m.plan, map[int]float64{}
		c.Files.Size = workload.Dist{Fixed: unit.Size(rate * 60 / 60)}
		o := simulated.Of(&c)
		o.Latency, o.Spread, o.Seed = 500*time.Millisecond, 0.5, 3
		for i := range o.Links {
			o.Links[i].PerCopy = rate / 2
		}
		r.make(&c, &o, disks)
		found, _ := simulate(t, &c, o, disks).Result()
		if r.no && len(found.Links[0].Causes) > 0 {
			explain(t, found)
		}
		var s score
		answers := map[string]int{}
		(&rig{name: r.name, links: r.links, right: r.right, no: r.no}).judge(t, found, &s, answers)
		_, _ = fmt.Fprintf(&table, "| %s | %s | %d | %d | %d | %d | %v |\n", r.name, r.right, s.right, s.unknown, s.wrong, s.missed, answers)
		if all++; r.no && s.wrong+s.unknown == 0 || !r.no && s.right > 0 && s.right > 2*(s.unknown+s.wrong) {
			right++
		}
	}
	const head = "| rig | truth | right | cannot tell | wrong | held | answers |\n|---|---|---|---|---|---|---|\n"
	t.Logf("%d of %d rigs right, by links\n%s%s", right, all, head, table.String())
	if 20*right < 19*all {
		t.Errorf("%d of %d rigs are right", right, all)
	}
}

type simulatedRig struct {
	name  string
	make  func(c *challenge.Challenge, o *simulated.Options, disks map[int]float64)
	links []int
	right string
	no    bool
}

func simulatedRigs() []simulatedRig {
	return []simulatedRig{
		{name: "nothing", no: true, make: func(*challenge.Challenge, *simulated.Options, map[int]float64) {}},
		{name: "source", links: []int{4, 5}, right: "source C *",
			make: func(_ *challenge.Challenge, o *simulated.Options, _ map[int]float64) { o.Sites[2].Out = 1.2 * rate }},
		{name: "destination", links: []int{1, 2}, right: "destination C *",
			make: func(_ *challenge.Challenge, o *simulated.Options, _ map[int]float64) { o.Sites[2].In = 1.2 * rate }},
		{name: "destination, sampled", links: []int{1, 2}, right: "destination C disk",
			make: func(_ *challenge.Challenge, o *simulated.Options, disks map[int]float64) {
				o.Sites[2].In = 1.2 * rate
				disks[2] = 1.2 * rate
			}},
		{name: "stated", links: []int{1, 2}, right: "line C capacity",
			make: func(c *challenge.Challenge, o *simulated.Options, _ map[int]float64) {
				o.Sites[2].In = 1.2 * rate
				c.Sites[2].In = unit.Bitrate(8 * 1.25 * rate)
			}},
		{name: "line", links: []int{6}, right: "line  *",
			make: func(_ *challenge.Challenge, o *simulated.Options, _ map[int]float64) {
				o.Links[6].Capacity = 0.6 * rate
			}},
		{name: "trunk", links: []int{0, 4, 8}, right: "line  trunk|line  ",
			make: func(_ *challenge.Challenge, o *simulated.Options, _ map[int]float64) {
				o.Trunks = []simulated.Trunk{{Links: []int{0, 4, 8}, Capacity: 1.8 * rate}}
			}},
		{name: "loss", links: []int{7}, right: "line  *",
			make: func(c *challenge.Challenge, o *simulated.Options, _ map[int]float64) { o.Links[7].PerCopy = rate / 80 }},
		{name: "starts", right: "service  *",
			make: func(c *challenge.Challenge, o *simulated.Options, _ map[int]float64) {
				c.Inject.By = "fts"
				o.Starts = 8
			}},
		{name: "refuses", no: true, // the controller makes up for it
			make: func(_ *challenge.Challenge, o *simulated.Options, _ map[int]float64) { o.Sites[4].Failure = 0.1 }},
		{name: "away", links: []int{8, 9, 6, 5}, right: "* E away",
			make: func(_ *challenge.Challenge, o *simulated.Options, _ map[int]float64) {
				o.Sites[4].Outages = []simulated.Outage{{From: 8 * time.Minute, To: 13 * time.Minute}}
			}},
		{name: "tokens", right: "credentials  expired|service  *",
			make: func(c *challenge.Challenge, o *simulated.Options, _ map[int]float64) {
				c.Inject.By = "fts"
				o.Starts, o.TokenLife = 8, 2*time.Second
			}},
		{name: "checksum", links: nil, right: "destination * checksum|injection  in_flight",
			make: func(c *challenge.Challenge, o *simulated.Options, _ map[int]float64) {
				for i := range o.Links { // the model does not report the last byte
					o.Links[i].PerCopy = rate / 10
					c.Links[i].InFlight = 12
				}
				for i := range o.Sites {
					o.Sites[i].Checksum = rate / 10
				}
			}},
		{name: "door", links: []int{1, 2}, right: "destination C door",
			make: func(c *challenge.Challenge, o *simulated.Options, _ map[int]float64) {
				o.Sites[2].Slots = 2
				for i := range o.Links {
					o.Links[i].PerCopy = rate / 4
				}
				c.Links, o.Links = c.Links[:4], o.Links[:4]
			}},
		{name: "limit", links: []int{3}, right: "injection  in_flight",
			make: func(c *challenge.Challenge, o *simulated.Options, _ map[int]float64) {
				for i := range o.Links {
					o.Links[i].PerCopy = rate / 8
				}
				c.Links[3].InFlight = 5
			}},
		{name: "ceiling", right: "injection  ceiling",
			make: func(c *challenge.Challenge, o *simulated.Options, _ map[int]float64) {
				c.Ceiling = unit.Bitrate(8 * 8 * rate)
			}},
	}
}
