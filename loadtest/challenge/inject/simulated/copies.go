package simulated

import (
	"math"
	"slices"

	"weir/loadtest/challenge/inject"
	"weir/storage"
)

// A running is a copy that has not ended.
type running struct {
	inject.Copy
	state state
	asked float64 // time of the request
	begun float64 // time at which bytes began to move
	from  float64 // level of the link at that time
	until float64 // level of the link at which it has moved its bytes
	bytes int64   // that it will move: less than the size if it breaks
	fault int     // site that breaks it; -1: none
	turn  int     // number of uses of this value, so that old events are recognized
}

// A state is the progress of a copy.
type state int

const (
	requested state = iota // not yet begun by the service
	slotless               // begun by the service if its sites have a slot
	moving
	summing // all bytes have moved; the destination may compute the checksum
	ended
)

// request adds a copy.
func (s *Simulated) request(c *inject.Copy) {
	r := &running{}
	if n := len(s.spare); n > 0 {
		r, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	*r = running{Copy: *c, asked: s.now, fault: -1, turn: r.turn + 1}
	s.copies[c.ID] = r
	l := &s.links[c.Link]
	l.flight++
	l.queued++
	l.asked += c.Source.Size
	s.report(inject.Report{ID: c.ID, State: inject.Queued, Moved: s.unmoved()})
	wait := s.o.Latency.Seconds() * (1 + s.o.Spread*(2*s.random.Float64()-1))
	s.events.push(event{at: s.now + wait, what: serviceHasRequest, copy: r, turn: r.turn})
}

// unmoved returns the number of bytes of a copy that has moved no bytes, as the service reports it.
func (s *Simulated) unmoved() int64 {
	if s.o.Silent {
		return -1
	}
	return 0
}

// arrive queues a copy in the service, which begins a limited number in a second.
func (s *Simulated) arrive(c *running) {
	at := max(s.now, s.free)
	if s.o.Starts > 0 {
		s.free = at + 1/s.o.Starts
	}
	if at > s.now {
		s.events.push(event{at: at, what: serviceBegins, copy: c, turn: c.turn})
		return
	}
	s.admit(c)
}

// admit begins a copy, or has it wait for a slot.
func (s *Simulated) admit(c *running) {
	l := s.o.Links[c.Link]
	for _, i := range [...]int{l.From, l.To} {
		if s.sites[i].away > 0 {
			c.fault = i
			s.end(c, inject.Failed, "site is away")
			return
		}
		if n := s.o.Sites[i].Most; n > 0 && s.sites[i].slots >= n {
			c.fault = i
			s.end(c, inject.Failed, "site refuses further copies")
			return
		}
	}
	if s.o.TokenLife > 0 && s.now-c.asked > s.o.TokenLife.Seconds() {
		c.fault = l.To
		s.end(c, inject.Failed, expired)
		return
	}
	if !s.hasSlot(l.From) || !s.hasSlot(l.To) {
		c.state = slotless
		s.waiting = append(s.waiting, c)
		return
	}
	s.begin(c)
}

// expired is the reason of a copy whose token has ended.
const expired = "token expired"

// hasSlot reports whether a site can take one more copy.
func (s *Simulated) hasSlot(i int) bool {
	return s.o.Sites[i].Slots == 0 || s.sites[i].slots < s.o.Sites[i].Slots
}

// begin lets a copy move bytes.
func (s *Simulated) begin(c *running) {
	o, l := s.o.Links[c.Link], &s.links[c.Link]
	s.sites[o.From].slots++
	s.sites[o.To].slots++
	l.queued--
	c.state, c.begun, c.bytes = moving, s.now, c.Source.Size
	for _, i := range [...]int{o.From, o.To} {
		if p := s.o.Sites[i].Failure; p > 0 && c.fault < 0 && s.random.Float64() < p {
			c.fault = i
			c.bytes = int64(s.random.Float64() * float64(c.bytes))
		}
	}
	c.from = l.level
	c.until = l.level + float64(c.bytes)
	l.now = append(l.now, c)
	l.begun += c.from
	l.next = min(l.next, c.until)
	s.sharing.add(c.Link, 1)
	s.report(inject.Report{ID: c.ID, State: inject.Running, Moved: s.unmoved()})
}

// stop ends the moving of a copy, which has moved some bytes.
func (s *Simulated) stop(c *running, moved int64) {
	l := &s.links[c.Link]
	i := slices.Index(l.now, c)
	l.now[i] = l.now[len(l.now)-1]
	l.now = l.now[:len(l.now)-1]
	l.begun -= c.from
	l.settled += moved
	l.flying += moved
	c.bytes = moved
	if len(l.now) == 0 {
		l.level, l.begun = 0, 0
	}
	l.next = math.Inf(1)
	for _, other := range l.now {
		l.next = min(l.next, other.until)
	}
	s.sharing.add(c.Link, -1)
}

// complete handles a copy that has moved all the bytes that it will.
func (s *Simulated) complete(c *running) {
	s.stop(c, c.bytes)
	c.state = summing
	if c.fault >= 0 {
		s.end(c, inject.Failed, "the site broke the copy")
		return
	}
	if rate := s.o.Sites[s.o.Links[c.Link].To].Checksum; rate > 0 {
		s.events.push(event{at: s.now + float64(c.Source.Size)/rate, what: checksumIsKnown, copy: c, turn: c.turn})
		return
	}
	s.end(c, inject.Done, "")
}

// end ends a copy in any state.
func (s *Simulated) end(c *running, final inject.State, reason string) {
	o, l := s.o.Links[c.Link], &s.links[c.Link]
	r := inject.Report{ID: c.ID, State: final, Moved: c.bytes, Verified: final == inject.Done, Reason: reason}
	switch c.state {
	case requested, slotless:
		l.queued--
		r.Moved = 0
	case moving:
		s.stop(c, min(int64(l.level-c.from), c.bytes))
		r.Moved = c.bytes
		fallthrough
	default:
		s.sites[o.From].slots--
		s.sites[o.To].slots--
		r.Begin = s.clock(c.begun)
	}
	l.flying -= r.Moved
	l.flight--
	l.asked -= c.Source.Size
	if final == inject.Done {
		l.done++
	} else {
		l.failed++
	}
	if final == inject.Failed {
		r.Class, r.Expired = storage.Other, reason == expired
		if c.fault >= 0 {
			r.Site = s.o.Sites[c.fault].Name
		}
	}
	hadSlot := c.state == moving || c.state == summing
	if c.state == slotless {
		s.waiting = slices.DeleteFunc(s.waiting, func(w *running) bool { return w == c })
	}
	c.state = ended
	delete(s.copies, c.ID)
	s.spare = append(s.spare, c)
	s.report(r)
	if hadSlot && len(s.waiting) > 0 {
		s.events.push(event{at: s.now, what: slotIsFree})
	}
}

// fill begins the waiting copies that have slots now.
func (s *Simulated) fill() {
	waiting := s.waiting
	s.waiting = make([]*running, 0, len(waiting))
	for _, c := range waiting {
		c.state = requested
		s.admit(c)
	}
}

// leave breaks the copies of a site at the beginning of an outage.
func (s *Simulated) leave(i int) {
	s.sites[i].away++
	for k, o := range s.o.Links {
		if o.From != i && o.To != i {
			continue
		}
		for _, c := range slices.Clone(s.links[k].now) {
			c.fault = i
			s.end(c, inject.Failed, "site is away")
		}
	}
}
