package links

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// A model simulates a data challenge: copies share parts of the network and of the sites by weights
// (max-min fair), a controller raises the copies of links below their targets, and records are those
// of a run. It is a second implementation of the situation, not of the analysis.
type model struct {
	plan     challenge.Challenge
	parts    []modelPart
	perCopy  []float64                                    // highest rate of a copy of a link, bytes/s
	fixed    float64                                      // seconds of each copy before its first byte
	loginsOf []float64                                    // copies per second that a site can begin; 0: any
	tail     float64                                      // bytes/s of verification after the last byte; 0: none
	doors    []int                                        // copies that a site moves at once; 0: any
	starts   float64                                      // copies per second that the service begins; 0: any
	down     func(second float64) bool                    // the service begins no copies
	answers  func(second float64) (all []measure.Service) // in the ten seconds up to a moment
	active   int                                          // copies that the service runs at once for each link; 0: any
	fails    func(m *model, link int) *results.Transfer
	starved  func(second float64) bool
	clock    time.Duration   // of the service, ahead of this machine's
	hosts    bool            // disks of sites are sampled
	foreign  map[int]float64 // least usage of the disk of a site, by others
	speed    map[int]float64 // of the interface of a site, bytes/s
	away     func(site int, second float64) bool

	random    *rand.Rand
	links     []modelLink
	second    float64
	startRoom float64
	rooms     []float64 // of logins
	in, sent  []float64 // bytes of each site
	out       *Sums
}

// A modelPart is a resource of a capacity, which some links use.
type modelPart struct {
	capacity float64 // bytes/s
	uses     func(link int) bool
	disk     int // site whose disk it is, -1
	busy     float64
}

type modelLink struct {
	copies                []*modelCopy
	noise, weight         float64
	allowed               int
	credit, rate, before  float64
	moved, flight, queued float64
	started, done, failed int
	reason                challenge.Reason
	pauseUntil, nextLook  float64
	raises                int
}

type modelCopy struct {
	size, left            float64
	asked, running, begin float64 // seconds; below 0: not yet
	last                  float64
	fixedLeft             float64
	weight                float64
}

const tick = 0.25

func newModel(sites int, ends [][2]int, rate float64) *model {
	m := &model{plan: challenge.Challenge{Inject: challenge.Injection{By: challenge.Direct},
		Files:   challenge.Files{Size: workload.Dist{Fixed: unit.Size(rate * 60 / 50)}},
		Profile: []challenge.Stage{{For: unit.Duration(4 * time.Minute), At: 0.4}, {For: unit.Duration(20 * time.Minute), At: 1}}}}
	for i := range sites {
		name := string(rune('A' + i))
		m.plan.Sites = append(m.plan.Sites, challenge.Site{Name: name, Hosts: []monitor.Host{{Name: "host-" + name}}})
	}
	for _, e := range ends {
		m.plan.Links = append(m.plan.Links, challenge.Link{From: m.plan.Sites[e[0]].Name, To: m.plan.Sites[e[1]].Name,
			Rate: unit.Bitrate(8 * rate), InFlight: 40})
		m.perCopy = append(m.perCopy, rate/2)
	}
	m.doors, m.loginsOf = make([]int, sites), make([]float64, sites)
	return m
}

func (m *model) site(name string) int { return int(name[0] - 'A') }

func (m *model) from(site int) func(int) bool {
	return func(l int) bool { return m.site(m.plan.Links[l].From) == site }
}

func (m *model) to(site int) func(int) bool {
	return func(l int) bool { return m.site(m.plan.Links[l].To) == site }
}

func only(links ...int) func(int) bool {
	return func(l int) bool {
		for _, x := range links {
			if x == l {
				return true
			}
		}
		return false
	}
}

func (m *model) part(capacity float64, uses func(int) bool) {
	m.parts = append(m.parts, modelPart{capacity: capacity, uses: uses, disk: -1})
}

func (m *model) disk(site int, capacity float64, uses func(int) bool) {
	m.parts = append(m.parts, modelPart{capacity: capacity, uses: uses, disk: site})
}

var modelStart = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

func (m *model) now(second float64) time.Time {
	return modelStart.Add(time.Duration(second * 1e9))
}

// run simulates the challenge and returns its sums.
func (m *model) run(seed uint64) *Sums {
	m.random = rand.New(rand.NewPCG(seed, 7))
	m.out = New(&m.plan)
	m.links = make([]modelLink, len(m.plan.Links))
	m.rooms, m.in, m.sent = make([]float64, len(m.plan.Sites)), make([]float64, len(m.plan.Sites)), make([]float64, len(m.plan.Sites))
	for i := range m.links {
		m.links[i] = modelLink{allowed: 2, noise: 0, weight: 1, reason: challenge.Raised}
	}
	total := 0.0
	for _, s := range m.plan.Profile {
		total += time.Duration(s.For).Seconds()
	}
	line, lineBegan := 0.0, 0.0
	var transfers []*results.Transfer
	for m.second = 0; m.second < total; m.second += tick {
		stuck := m.starved != nil && m.starved(m.second)
		m.carry(&transfers)
		if stuck && math.Mod(m.second, 4) >= tick {
			continue
		}
		m.control(stuck)
		if line = m.second + tick; line-lineBegan >= 1 {
			m.lines(lineBegan, line)
			lineBegan = line
			if m.answers != nil && math.Mod(line, 10) < tick {
				for _, a := range m.answers(line) {
					a.Seconds = 10
					m.out.Event(&measure.Event{Time: m.now(line), Kind: measure.EventService, Service: &a})
				}
			}
		}
	}
	for _, t := range transfers {
		m.out.Transfer(t)
	}
	m.out.Event(&measure.Event{Time: m.now(total), Kind: measure.EventEnd, Outcome: measure.Complete})
	return m.out
}

func (m *model) target(link int) float64 {
	at := m.second
	for _, s := range m.plan.Profile {
		if at -= time.Duration(s.For).Seconds(); at < 0 {
			return float64(s.At) * float64(m.plan.Links[link].Rate) / 8
		}
	}
	return 0
}

// carry moves the bytes of a tick and ends copies.
func (m *model) carry(transfers *[]*results.Transfer) {
	if m.starts > 0 {
		m.startRoom = min(m.startRoom+m.starts*tick, max(1, m.starts*tick))
	}
	moving := make([]int, len(m.plan.Sites))
	for i, x := range m.loginsOf {
		m.rooms[i] = min(m.rooms[i]+x*tick, max(1, x*tick))
	}
	for i := range m.links {
		for _, c := range m.links[i].copies {
			if c.begin >= 0 && c.last < 0 {
				moving[m.site(m.plan.Links[i].From)]++
				moving[m.site(m.plan.Links[i].To)]++
			}
		}
	}
	for _, i := range m.random.Perm(len(m.links)) {
		m.beginCopies(i, moving)
	}
	rates := m.share()
	for i := range m.links {
		l := &m.links[i]
		weight := 0.0
		for _, c := range l.copies {
			if c.begin >= 0 && c.last < 0 {
				weight += c.weight
			}
		}
		var left []*modelCopy
		for _, c := range l.copies {
			if c.begin >= 0 && c.last < 0 {
				n := min(c.left, rates[i]*tick*c.weight/weight)
				c.left -= n
				l.moved += n
				m.in[m.site(m.plan.Links[i].To)] += n
				m.sent[m.site(m.plan.Links[i].From)] += n
				if c.left < 1 {
					c.last = m.second + tick
				}
			}
			if c.last >= 0 && m.tail > 0 && m.second-c.last < c.size/m.tail {
				left = append(left, c)
				continue
			}
			if c.last >= 0 {
				m.end(i, c, nil, transfers)
				continue
			}
			if c.running >= 0 && m.fails != nil {
				if t := m.fails(m, i); t != nil {
					m.end(i, c, t, transfers)
					continue
				}
			}
			left = append(left, c)
		}
		l.copies = left
	}
}

// beginCopies has the service and the sites begin copies of a link.
func (m *model) beginCopies(i int, moving []int) {
	l, p := &m.links[i], &m.plan.Links[i]
	source, dest := m.site(p.From), m.site(p.To)
	running := 0
	for _, c := range l.copies {
		if c.running >= 0 {
			running++
		}
	}
	for _, c := range l.copies {
		if c.running < 0 {
			if m.down != nil && m.down(m.second) || m.starts > 0 && m.startRoom < 1 || m.active > 0 && running >= m.active {
				continue
			}
			m.startRoom--
			running++
			c.running, c.fixedLeft = m.second, m.fixed*(0.9+0.2*m.random.Float64())
		}
		if c.begin >= 0 {
			continue
		}
		if c.fixedLeft -= tick; c.fixedLeft > 0 {
			continue
		}
		full := false
		for _, s := range []int{source, dest} {
			full = full || m.doors[s] > 0 && moving[s] >= m.doors[s] || m.loginsOf[s] > 0 && m.rooms[s] < 1 ||
				m.away != nil && m.away(s, m.second)
		}
		if full {
			continue
		}
		m.rooms[source]--
		m.rooms[dest]--
		moving[source]++
		moving[dest]++
		c.begin = m.second
	}
}

// share returns the rates of the links: max-min fair by the weights of their moving copies.
func (m *model) share() []float64 {
	n := len(m.links)
	rates, weights, fixed := make([]float64, n), make([]float64, n), make([]bool, n)
	for i := range m.links {
		l := &m.links[i]
		l.noise = 0.97*l.noise + 0.06*m.random.NormFloat64()
		k := 0.0
		for _, c := range l.copies {
			if c.begin >= 0 && c.last < 0 {
				k++
			}
		}
		weights[i] = k * math.Exp(l.noise)
		rates[i] = k * m.perCopy[i] * math.Exp(0.2*l.noise)
		if m.away != nil && (m.away(m.site(m.plan.Links[i].From), m.second) || m.away(m.site(m.plan.Links[i].To), m.second)) {
			rates[i] = 0
		}
		fixed[i] = k == 0
	}
	left := make([]float64, len(m.parts))
	for p := range m.parts {
		left[p] = m.parts[p].capacity * (1 + 0.01*m.random.NormFloat64())
	}
	done := make([]float64, n)
	for range n + len(m.parts) {
		fill := math.Inf(1) // next level of rate per weight
		for i := range m.links {
			if !fixed[i] {
				fill = min(fill, (rates[i]-done[i])/weights[i])
			}
		}
		for p := range m.parts {
			w := 0.0
			for i := range m.links {
				if !fixed[i] && m.parts[p].uses(i) {
					w += weights[i]
				}
			}
			if w > 0 {
				fill = min(fill, left[p]/w)
			}
		}
		if math.IsInf(fill, 1) {
			break
		}
		for i := range m.links {
			if fixed[i] {
				continue
			}
			done[i] += fill * weights[i]
			for p := range m.parts {
				if m.parts[p].uses(i) {
					left[p] -= fill * weights[i]
				}
			}
		}
		for i := range m.links {
			fixed[i] = fixed[i] || rates[i]-done[i] < 1
			for p := range m.parts {
				fixed[i] = fixed[i] || m.parts[p].uses(i) && left[p] < 1
			}
		}
	}
	for p := range m.parts {
		used := 0.0
		for i := range m.links {
			if m.parts[p].uses(i) {
				used += done[i]
			}
		}
		m.parts[p].busy += min(1, used/m.parts[p].capacity) * tick
	}
	return done
}

// end records the end of a copy, with failure if it is not nil.
func (m *model) end(i int, c *modelCopy, failure *results.Transfer, transfers *[]*results.Transfer) {
	l, p := &m.links[i], &m.plan.Links[i]
	t := &results.Transfer{}
	if failure != nil {
		t = failure
	}
	t.Source, t.Dest, t.File, t.Size, t.Last = p.From, p.To, "f", int64(c.size), true
	t.Asked, t.End = m.now(c.asked), m.now(m.second+tick)
	if c.begin >= 0 {
		t.Begin = m.now(c.begin).Add(m.clock)
	}
	if c.last >= 0 && m.tail > 0 {
		t.LastByte = m.now(c.last).Add(m.clock)
	}
	t.Done = failure == nil
	*transfers = append(*transfers, t)
	if t.Done {
		l.done++
		return
	}
	l.failed++
	l.pauseUntil = m.second + 5
}

// control decides on copies.
func (m *model) control(bool) {
	sum := 0.0
	for i := range m.links {
		sum += m.links[i].rate
	}
	for _, i := range m.random.Perm(len(m.links)) {
		l, p := &m.links[i], &m.plan.Links[i]
		target, size := m.target(i), m.size()
		if m.second >= l.nextLook {
			l.look(m, target)
		}
		l.credit = min(l.credit+target*tick, 2*size+2*target)
		waiting := 0
		for _, c := range l.copies {
			if c.running < 0 {
				waiting++
			}
		}
		limit := m.plan.Ceiling
		switch n := len(l.copies); {
		case m.second < l.pauseUntil:
			l.reason = challenge.Failing
		case limit > 0 && sum >= 0.97*float64(limit)/8:
			l.reason = challenge.Ceiling
		case l.credit < size:
			l.reason = challenge.Paced
			if size > target*15 && n > 0 {
				l.reason = challenge.LargeFile
			}
		case n >= p.InFlight:
			l.reason = challenge.Copies
		case waiting > 4:
			l.reason = challenge.Queued
		case n >= l.allowed && l.raises >= 3:
			l.reason = challenge.Saturated
		case n >= l.allowed:
			l.reason = challenge.Raised
		default:
			for len(l.copies) < l.allowed && l.credit >= size {
				l.credit -= size
				l.started++
				l.copies = append(l.copies, &modelCopy{size: size, left: size, asked: m.second, running: -1, begin: -1, last: -1,
					weight: math.Exp(0.3 * m.random.NormFloat64())})
				size = m.size()
			}
		}
		l.flight += float64(len(l.copies)) * tick
		l.queued += float64(waiting) * tick
	}
}

// look raises the copies of a link every five seconds, and tries others when more brought no more.
func (l *modelLink) look(m *model, target float64) {
	l.nextLook = m.second + 5
	if l.credit < 2*target || l.rate >= 0.98*target || len(l.copies) < l.allowed {
		return
	}
	if l.rate > 1.05*l.before {
		l.raises, l.before = 0, l.rate
	} else {
		l.raises++
	}
	switch {
	case l.raises < 3:
		l.allowed = min(l.allowed+2, 40)
	case l.raises%4 == 3: // it tries fewer and more
		l.allowed = max(2, min(40, l.allowed+m.random.IntN(9)-4))
	}
}

func (m *model) size() float64 {
	d := m.plan.Files.Size
	if len(d.Uniform) == 2 {
		return float64(d.Uniform[0]) + m.random.Float64()*float64(d.Uniform[1]-d.Uniform[0])
	}
	return float64(d.Fixed)
}

// lines writes the lines of links and the samples of hosts.
func (m *model) lines(from, to float64) {
	span := to - from
	ticks := span
	if m.starved != nil && m.starved(from) {
		ticks = tick * math.Max(1, math.Round(span/4))
	}
	for i := range m.links {
		l, p := &m.links[i], &m.plan.Links[i]
		l.rate = 0.7*l.rate + 0.3*l.moved/span
		m.out.Link(&results.LinkInterval{Start: m.now(from), Seconds: span, Stage: 1 + min(1, int(from/240)),
			Source: p.From, Dest: p.To, Target: m.target(i),
			Moved: int64(l.moved), Flight: l.flight / ticks, Queued: l.queued / ticks, Allowed: min(l.allowed, p.InFlight), Started: l.started,
			Done: l.done, Failed: l.failed, Reason: l.reason})
		l.moved, l.flight, l.queued, l.started, l.done, l.failed = 0, 0, 0, 0, 0, 0
	}
	if m.starved != nil {
		idle := 0.6
		if m.starved(from) {
			idle = 0.01
		}
		m.out.Sample(&monitor.Sample{Time: m.now(to), Seconds: span, Host: "weir", Role: monitor.RoleClient, Cores: 2,
			CPU: &monitor.CPU{User: 1 - idle, Idle: idle}})
	}
	if !m.hosts {
		return
	}
	busy := make([]float64, len(m.plan.Sites))
	for p := range m.parts {
		if s := m.parts[p].disk; s >= 0 {
			busy[s] = max(busy[s], m.parts[p].busy/span)
		}
		m.parts[p].busy = 0
	}
	for i := range m.plan.Sites {
		v := &monitor.Sample{Time: m.now(to), Seconds: span, Host: "host-" + m.plan.Sites[i].Name, Role: monitor.RoleServer, Cores: 4,
			CPU: &monitor.CPU{User: 0.2, Idle: 0.8}, Disks: []monitor.Disk{{Name: "sda", Busy: max(0.1, busy[i], m.foreign[i])}}}
		if m.speed[i] > 0 {
			v.Nets = []monitor.Net{{Name: "eth0", Speed: 8 * m.speed[i], Received: int64(m.in[i]), Sent: int64(m.sent[i])}}
		}
		m.out.Sample(v)
		m.in[i], m.sent[i] = 0, 0
	}
}

// failAt returns a function by which a share of copies fails per second at a site.
func failAt(site string, class storage.Class, perSecond float64, when func(m *model, link int) bool) func(*model, int) *results.Transfer {
	return func(m *model, link int) *results.Transfer {
		if !when(m, link) || m.random.Float64() >= perSecond*tick {
			return nil
		}
		return &results.Transfer{Class: class, Site: site, Reason: fmt.Sprint("failed at ", site)}
	}
}
