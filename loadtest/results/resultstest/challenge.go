package resultstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// A Challenge is a simulated data challenge with known problems: the disk of the third site receives
// less than the targets of its links, three links share a trunk that is too narrow for a while, and
// the last site refuses a tenth of its copies and is away for three minutes.
type Challenge struct {
	Sites, Links int
	Minutes      int
	Every        int          // seconds of an interval of a link
	Rate         unit.Bitrate // of a link, on average
	Copies       int          // of a link per minute at its whole rate
	Healthy      bool         // without the problems
}

// Rehearsal returns a challenge of six sites and 12 links of half an hour.
func Rehearsal() Challenge {
	return Challenge{Sites: 6, Links: 12, Minutes: 30, Every: 1, Rate: 20e6, Copies: 12}
}

// Grid returns a challenge of a hundred sites and 2,000 links of half an hour.
func Grid() Challenge {
	return Challenge{Sites: 100, Links: 2000, Minutes: 30, Every: 10, Rate: 2e9, Copies: 4}
}

// SiteName returns the name of the site with that index: A, B and so on, or T2-01 and so on in large
// challenges.
func (c Challenge) SiteName(i int) string {
	if c.Sites <= 26 {
		return string(rune('A' + i))
	}
	return fmt.Sprintf("T2-%02d", i)
}

// Ends returns the indexes of the source and the destination of a link.
func (c Challenge) Ends(link int) (source, dest int) {
	source = link % c.Sites
	return source, (source + 1 + link/c.Sites) % c.Sites
}

// Slow is the index of the site whose disk is slow, and Away that of the site that goes away.
func (c Challenge) Slow() int { return 2 }

// Away returns the index of the site that refuses copies, and goes away for three minutes.
func (c Challenge) Away() int { return c.Sites - 1 }

// trunk reports whether a link uses the trunk that is too narrow from minute 12 to 18.
func (c Challenge) trunk(link int) bool { return link == 3 || link == 4 || link == c.Sites+3 }

// rate returns the target rate of a link at 100%, in bytes/s: from half to one and a half of Rate.
func (c Challenge) rate(link int) float64 {
	return float64(c.Rate) / 8 * (0.5 + float64(link*7%11)/10)
}

// stages returns the profile: five minutes at half of the rate, five minutes of a ramp, the rest at
// the whole rate.
func (c Challenge) stages() []challenge.Stage {
	minutes := func(n int) unit.Duration { return unit.Duration(time.Duration(n) * time.Minute) }
	return []challenge.Stage{{For: minutes(5), At: 0.5}, {For: minutes(5), At: 1, Ramp: true}, {For: minutes(c.Minutes - 10), At: 1}}
}

// at returns the stage and the share of the target rates at a second.
func (c Challenge) at(second float64) (stage int, share float64) {
	switch {
	case second < 300:
		return 1, 0.5
	case second < 600:
		return 2, 0.5 + 0.5*(second-300)/300
	}
	return 3, 1
}

// Plan returns the plan of the challenge.
func (c Challenge) Plan() *scenario.Plan {
	ch := &challenge.Challenge{Name: "rehearsal", Inject: challenge.Injection{By: challenge.Direct}, Profile: c.stages(),
		Files:   challenge.Files{Size: workload.Dist{Fixed: unit.Size(c.size(0))}, Sources: 10},
		Timeout: unit.Duration(time.Hour), Verify: true, Seed: 1}
	plan := &scenario.Plan{Version: scenario.PlanVersion, Name: ch.Name, Target: "davs://a.example.org/challenge", Driver: "challenge",
		Seed: 1, Model: scenario.ClosedModel, Work: workload.Work{Kind: "copy", Timeout: ch.Timeout}, Challenge: ch}
	capacity := unit.Bitrate(math.Ceil(float64(c.Rate)*float64(c.Links)/float64(c.Sites)*1.5/1e6) * 1e6)
	for i := range c.Sites {
		host := monitor.Host{Name: c.SiteName(i) + "-disk", Role: "server", NodeExporter: "http://" + c.SiteName(i) + ".example.org:9100/metrics"}
		ch.Sites = append(ch.Sites, challenge.Site{Name: c.SiteName(i), URL: "davs://" + c.SiteName(i) + ".example.org/challenge",
			In: capacity, Out: capacity, Hosts: []monitor.Host{host}})
		plan.Hosts = append(plan.Hosts, host)
	}
	for i := range c.Links {
		source, dest := c.Ends(i)
		ch.Links = append(ch.Links, challenge.Link{From: c.SiteName(source), To: c.SiteName(dest), Rate: unit.Bitrate(8 * c.rate(i)),
			Protocol: challenge.WebDAV, Mode: challenge.Pull, InFlight: 100})
	}
	for i, s := range ch.Profile {
		plan.Steps = append(plan.Steps, scenario.Step{Number: i + 1, Clients: c.Links, Duration: s.For})
	}
	return plan
}

// size returns the size of the files of a link, in bytes.
func (c Challenge) size(link int) int64 { return int64(c.rate(link) * 60 / float64(c.Copies)) }

// A carried is the state of a link at a moment.
type carried struct {
	rate    float64 // bytes/s
	flight  float64
	queued  float64
	reason  challenge.Reason
	failing float64 // share of the copies that fail
}

// carries returns the state of a link at a second.
func (c Challenge) carries(r *rand.Rand, link int, second float64) (target float64, x carried) {
	source, dest := c.Ends(link)
	_, share := c.at(second)
	target = share * c.rate(link)
	x = carried{rate: target * (1 + 0.02*r.NormFloat64()), flight: 2, reason: challenge.Paced}
	if c.Healthy {
		return target, x
	}
	switch minute := second / 60; {
	case source == c.Away() || dest == c.Away():
		x.failing = 0.1
		if minute >= 22 && minute < 25 {
			return target, carried{flight: 1, failing: 1, reason: challenge.Failing}
		}
	case dest == c.Slow() && share > 0.62:
		return target, carried{rate: 0.62 * c.rate(link) * (1 + 0.03*r.NormFloat64()), flight: 40, queued: 4, reason: challenge.Saturated}
	case c.trunk(link) && minute >= 12 && minute < 18:
		return target, carried{rate: 0.45 * target * (1 + 0.05*r.NormFloat64()), flight: 25, reason: challenge.Saturated}
	}
	return target, x
}

// Write writes the run into dir.
func (c Challenge) Write(dir string) (err error) {
	about := results.About{Weir: "test", Go: "go", Run: "20260301-120000-abcdef", Start: Start(),
		Command: []string{"weir", "challenge", "rehearsal.yaml"}, Clock: results.Clock{Source: "tsc", Read: 4e-8, Step: 2e-8},
		Environment: json.RawMessage(`{"kernel":"6.12.0","cores":4}`)}
	w, err := results.Create(dir, c.Plan(), about)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	p := &conduct{c: c, w: w, r: rand.New(rand.NewPCG(5, 6)), left: make([]float64, c.Links)}
	p.keep(w.Event(measure.Event{Time: Start(), Kind: measure.EventRun, Text: "begins"}))
	last := 0
	for s := 0; s < 60*c.Minutes && p.err == nil; s++ {
		if stage, _ := c.at(float64(s)); stage != last {
			last = stage
			p.keep(w.Event(measure.Event{Time: p.now(s), Kind: measure.EventStep, Step: stage, Text: "begins"}))
		}
		p.second(s)
	}
	p.keep(w.Event(measure.Event{Time: p.now(60 * c.Minutes), Kind: measure.EventEnd, Outcome: measure.Complete, Text: "all stages done"}))
	return p.err
}

// A conduct writes a challenge second by second.
type conduct struct {
	c    Challenge
	w    *results.Writer
	r    *rand.Rand
	left []float64 // bytes of each link that belong to a copy that has not ended
	sum  measure.Interval
	err  error // the first
	all  int64 // bytes/s in the last interval
	in   []float64
}

func (p *conduct) keep(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *conduct) now(second int) time.Time { return Start().Add(time.Duration(second) * time.Second) }

// second writes a second of all links and hosts.
func (p *conduct) second(s int) {
	stage, _ := p.c.at(float64(s))
	p.sum = measure.Interval{Start: p.now(s), Seconds: 1, Step: stage, Phase: measure.Measured, Kind: storage.Copy,
		Clients: p.sum.Clients}
	if s%p.c.Every == 0 {
		p.all, p.sum.Clients, p.in = 0, 0, make([]float64, p.c.Sites)
		for i := range p.c.Links {
			p.link(s, stage, i)
		}
	}
	p.sum.Moved = p.all
	p.keep(p.w.Interval(&p.sum))
	for i := range p.c.Sites {
		p.host(s, stage, i)
	}
}

// link writes an interval of a link, and the copies that end in it.
func (p *conduct) link(s, stage, i int) {
	source, dest := p.c.Ends(i)
	target, x := p.c.carries(p.r, i, float64(s))
	every := float64(p.c.Every)
	v := &results.LinkInterval{Start: p.now(s), Seconds: every, Stage: stage, Source: p.c.SiteName(source), Dest: p.c.SiteName(dest),
		Target: target, Moved: int64(x.rate * every), Flight: x.flight, Queued: x.queued, Allowed: int(x.flight), Reason: x.reason}
	p.all += v.Moved / int64(p.c.Every)
	p.in[dest] += x.rate
	p.sum.Clients += x.flight
	size := float64(p.c.size(i))
	p.left[i] += max(x.rate, target*x.failing/10) * every
	for ; p.left[i] >= size; p.left[i] -= size {
		p.copied(s, stage, i, x, v)
	}
	v.Started = v.Done + v.Failed
	p.keep(p.w.LinkInterval(v))
}

// copied writes the end of a copy.
func (p *conduct) copied(s, stage, i int, x carried, v *results.LinkInterval) {
	end := p.now(s).Add(time.Duration(p.r.Float64() * float64(p.c.Every) * 1e9))
	took := x.flight * float64(p.c.size(i)) / max(x.rate, p.c.rate(i)/10) * math.Exp(0.2*p.r.NormFloat64())
	queue := (0.2 + x.queued*float64(p.c.size(i))/max(x.rate, 1)) * math.Exp(0.5*p.r.NormFloat64())
	begin := end.Add(-time.Duration(min(took, end.Sub(Start()).Seconds()/2) * 1e9))
	queue = min(queue, begin.Sub(Start()).Seconds()/2)
	t := &results.Transfer{Step: stage, Case: v.Source + " to " + v.Dest, File: fmt.Sprintf("copy-%d-%d", i, s), Size: p.c.size(i),
		Source: v.Source, Dest: v.Dest, Mode: "third", Begin: begin, End: end, Asked: begin.Add(-time.Duration(queue * 1e9)), Last: true}
	if p.r.Float64() < x.failing {
		v.Failed++
		t.Class, t.Reason, t.Site = storage.Denied, "403 Forbidden", p.c.SiteName(p.c.Away())
		if x.failing == 1 {
			t.Class, t.Reason = storage.Refused, "connection refused"
		}
		p.sum.Begun++
		if p.sum.Failed == nil {
			p.sum.Failed = map[storage.Class]int64{}
		}
		p.sum.Failed[t.Class]++
	} else {
		v.Done++
		t.Done, t.Verified, t.Moved = true, true, t.Size
		p.sum.Begun++
		p.sum.Done++
		p.sum.Latency.Record(end.Sub(begin))
	}
	p.keep(p.w.Transfer(t))
}

// host writes a sample of the disk server of a site.
func (p *conduct) host(s, stage, i int) {
	if p.c.Sites > 26 && s%10 != 0 {
		return
	}
	busy := 0.3
	if i == p.c.Slow() && !p.c.Healthy && s > 360 {
		busy = 0.995
	}
	p.keep(p.w.Sample(&monitor.Sample{Time: p.now(s + 1), Seconds: 1, Host: p.c.SiteName(i) + "-disk", Role: "server", Step: stage, Cores: 4,
		CPU: &monitor.CPU{User: 0.1, System: 0.1, Idle: 0.8}, Memory: &monitor.Memory{Total: 16 << 30, Available: 8 << 30},
		Disks: []monitor.Disk{{Name: "sda", Write: p.in[i], Ops: 50, Queue: 8 * busy, Busy: busy}},
		Nets:  []monitor.Net{{Name: "eth0", Received: int64(p.in[i]), Speed: 1e10}}, Cost: 0.0005}))
}
