package link

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"weir/internal/unit"
)

// A KeyError names an invalid key of the links and describes a valid value. Key is the path from
// the key link, such as "cern.rate" or "rate"; empty means the links themselves.
type KeyError struct {
	Key  string
	Text string
}

// Error returns "link.key: text".
func (e *KeyError) Error() string {
	if e.Key == "" {
		return "link: " + e.Text
	}
	return "link." + e.Key + ": " + e.Text
}

// Limits of the emulation.
const (
	slowestRate = unit.Bitrate(10e3) // a packet takes more than a second there
	fastestRate = unit.Bitrate(1e11)
	longest     = 10 * time.Second
	longestRun  = 366 * 24 * time.Hour
	leastMTU    = 576 // every host takes at least that (RFC 791)
	mostMTU     = 9000
	leastHole   = 100 // below it, connections could not even begin
	mostLoss    = 0.5
	mostOnWay   = 256 << 20 // bytes that one direction of a link holds at most
	mostLinks   = 200
)

// Check returns all that is impossible in links, as *KeyErrors joined by errors.Join, or nil.
func Check(links []Named) error {
	c := &checker{}
	if len(links) > mostLinks {
		c.say("", "%d links: there can be %d", len(links), mostLinks)
	}
	seen := map[string]bool{}
	for _, l := range links {
		c.at = ""
		if len(links) > 1 || l.Name != "" {
			c.name(l.Name, seen)
			c.at = l.Name + "."
		}
		c.spec(l.Spec)
		c.trunk(l, links)
	}
	return errors.Join(c.errs...)
}

type checker struct {
	at   string
	errs []error
}

func (c *checker) say(key, format string, args ...any) {
	c.errs = append(c.errs, &KeyError{Key: c.at + key, Text: fmt.Sprintf(format, args...)})
}

// congestionName matches the name of a congestion control.
var congestionName = regexp.MustCompile(`^[a-z0-9_]{0,15}$`)

// linkName matches the name of a link.
var linkName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)

func (c *checker) name(name string, seen map[string]bool) {
	if !linkName.MatchString(name) {
		c.say("", "invalid link name %q: use up to 32 letters, digits, _ and -", short(name))
	} else if slices.Contains(Keys(), name) {
		c.say("", "%s is a key of a link and cannot be the name of one", name)
	}
	if seen[name] {
		c.say("", "there are two links named %s", short(name))
	}
	seen[name] = true
}

func (c *checker) spec(s Spec) {
	before := len(c.errs)
	c.rate("rate", s.Rate)
	c.rate("up", s.Up)
	c.time("rtt", s.RTT)
	c.time("jitter", s.Jitter)
	c.time("queue", s.Queue)
	if s.Jitter > s.RTT/2 {
		c.say("jitter", "%s: the delay of one way, %s, cannot swing by more than itself: use at most %s", s.Jitter, s.RTT/2, s.RTT/2)
	}
	if !(s.Loss >= 0 && s.Loss <= mostLoss) {
		c.say("loss", "%s: use 0 to %s", unit.Percent(float64(s.Loss)), unit.Percent(mostLoss))
	}
	if s.MTU != 0 && (s.MTU < leastMTU || s.MTU > mostMTU) {
		c.say("mtu", "%s: use %dB to %dB", s.MTU, leastMTU, mostMTU)
	}
	if s.Burst != 0 && (s.Burst < cmp.Or(s.MTU, defaultMTU) || s.slowest() == 0) {
		c.say("burst", "%dB: use at least one packet, as in 1MB, and set the rate that holds after it", s.Burst)
	}
	if s.BlackHole != 0 && (s.BlackHole < leastHole || s.BlackHole > mostMTU) {
		c.say("black_hole", "%dB: use %dB to %dB", s.BlackHole, leastHole, mostMTU)
	}
	if !(s.Share >= 0) || math.IsInf(s.Share, 0) {
		c.say("share", "%g: use a number above 0, such as 1", s.Share)
	}
	if !congestionName.MatchString(s.Congestion) {
		c.say("congestion", "%q: use the name of one, such as cubic, reno or bbr", short(s.Congestion))
	}
	c.outages(s.Outages)
	if len(c.errs) == before {
		c.room(s.Complete())
	}
}

// trunk checks which link l leads over, and that a trunk has nothing that only clients need.
func (c *checker) trunk(l Named, links []Named) {
	at := slices.IndexFunc(links, func(t Named) bool { return t.Name == l.Spec.Trunk })
	switch {
	case l.Spec.Trunk == "":
	case at < 0 || len(links) == 1:
		c.say("trunk", "there is no other link %s; describe the shared line under that name, as in {%s: {rate: 2Mbit/s}}", short(l.Spec.Trunk),
			short(l.Spec.Trunk))
	case links[at].Spec.Trunk != "":
		c.say("trunk", "%s leads over a trunk itself, %s; a trunk leads to the service", short(l.Spec.Trunk), short(links[at].Spec.Trunk))
	}
	if over := Over(links, l.Name); len(over) > 0 {
		if l.Spec.Share != 0 {
			c.say("share", "a trunk has no clients; set the share of the links over it, such as %s", short(over[0]))
		}
		if l.Spec.Congestion != "" {
			c.say("congestion", "a trunk has no TCP of its own; set that of the links over it, such as %s", short(over[0]))
		}
	}
}

// outages checks that each is over before the next begins.
func (c *checker) outages(all []Outage) {
	for i, o := range all {
		at := fmt.Sprintf("outages.%d", i)
		switch {
		case o.After < 0 || time.Duration(o.After) > longestRun:
			c.say(at+".after", "%s: use 0 to %s, counted from when the load begins", o.After, unit.Duration(longestRun))
		case o.For <= 0 || time.Duration(o.For) > longestRun:
			c.say(at+".for", "%s: use more than 0, and at most %s", o.For, unit.Duration(longestRun))
		case i > 0 && o.After <= all[i-1].After+all[i-1].For:
			c.say(at+".after", "%s: the link is still down then, from %s for %s: write outages in their order, with time between them", o.After,
				all[i-1].After, all[i-1].For)
		}
	}
}

func (c *checker) rate(key string, r unit.Bitrate) {
	if r != 0 && !(r >= slowestRate && r <= fastestRate) {
		c.say(key, "%s: use %s to %s, or leave it out for no limit", r, slowestRate, fastestRate)
	}
}

func (c *checker) time(key string, d unit.Duration) {
	if d < 0 || time.Duration(d) > longest {
		c.say(key, "%s: use 0 to %s", d, unit.Duration(longest))
	}
}

// room refuses a link with more bytes on their way than the emulation can store.
func (c *checker) room(s Spec) {
	fast := max(s.Rate, s.Up)
	way := time.Duration(s.RTT/2 + s.Jitter + s.Queue)
	if holds := float64(fast)/8*way.Seconds() + float64(s.Burst); holds > mostOnWay {
		c.say("queue", "%s: at %s this link would hold %s in one direction, more than %s: use a shorter queue, a lower rate or a shorter rtt",
			s.Queue, fast, unit.Bytes(holds), unit.Bytes(mostOnWay))
	}
}
