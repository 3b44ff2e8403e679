// Package link describes an emulated link between clients and service: its rate, its delay and its
// loss. A description is plain data, so that a scenario can contain it; package emulator makes
// links of it.
package link

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"weir/internal/tags"
	"weir/internal/unit"
)

// A Spec describes a link. Both ways are alike unless Up is set. The zero value is a link that
// changes nothing.
type Spec struct {
	Rate       unit.Bitrate  `json:"rate,omitempty" doc:"Bitrate both ways, counted in IP packets. Default: no limit."`
	Up         unit.Bitrate  `json:"up,omitempty" doc:"Bitrate from the clients to the service, if different."`
	RTT        unit.Duration `json:"rtt,omitempty" doc:"Added round trip time, half of it each way."`
	Jitter     unit.Duration `json:"jitter,omitempty" doc:"Variation of the one-way delay around its mean: at most half of rtt."`
	Loss       unit.Fraction `json:"loss,omitempty" doc:"Share of packets lost each way."`
	Queue      unit.Duration `json:"queue,omitempty" doc:"Longest wait of a packet before it is dropped; 0: derived from the rest."`
	Burst      unit.Size     `json:"burst,omitempty" doc:"Bytes that pass at once after a pause, as in a token bucket. Default: none."`
	MTU        unit.Size     `json:"mtu,omitempty" doc:"Largest IP packet. 0: 1500B."`
	BlackHole  unit.Size     `json:"black_hole,omitempty" doc:"Largest IP packet that arrives; larger ones vanish, without ICMP. Default: all."`
	Congestion string        `json:"congestion,omitempty" doc:"TCP congestion control at both ends, such as cubic. Default: the machine's."`
	Share      float64       `json:"share,omitempty" doc:"Relative part of the clients. 0: 1."`
	Trunk      string        `json:"trunk,omitempty" doc:"Name of a link that this one shares with others on the way to the service."`
	Outages    []Outage      `json:"outages,omitempty" doc:"Times at which the link is cut."`
}

// An Outage is a time in which nothing passes: packets in flight and packets sent during it are lost.
type Outage struct {
	After unit.Duration `json:"after" required:"true" doc:"Start, since the load began."`
	For   unit.Duration `json:"for" required:"true" doc:"Duration."`
}

// A Named link is one of several. Its name is a word of letters, digits, _ and -; the only link of
// a scenario may have no name.
type Named struct {
	Name string `json:"name,omitempty"`
	Spec Spec   `json:"link"`
}

// Defaults of keys that are left out.
const (
	defaultMTU   = 1500
	defaultQueue = 50 * time.Millisecond
	leastPackets = 10 // that a queue holds at least
)

// Complete returns s with default values for empty fields, except Up, Congestion and Rate, whose
// zero values have a meaning.
func (s Spec) Complete() Spec {
	s.MTU = cmp.Or(s.MTU, defaultMTU)
	if s.Queue == 0 {
		s.Queue = max(s.RTT, unit.Duration(defaultQueue))
		if slow := s.slowest(); slow > 0 {
			packets := leastPackets * 8e9 * float64(s.MTU) / float64(slow)
			s.Queue = max(s.Queue, unit.Duration(min(packets, float64(longest))))
		}
	}
	s.Share = cmp.Or(s.Share, 1)
	return s
}

func (s Spec) slowest() unit.Bitrate {
	if s.Up > 0 && (s.Rate == 0 || s.Up < s.Rate) {
		return s.Up
	}
	return s.Rate
}

// FromClients returns the rate from the clients to the service; 0 is without a limit.
func (s Spec) FromClients() unit.Bitrate {
	if s.Up > 0 {
		return s.Up
	}
	return s.Rate
}

// String returns s in words, as in "2 Mbit/s, 51 ms round trip".
func (s Spec) String() string {
	var parts []string
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(s.Rate > 0, "%s", unit.Bits(float64(s.Rate)/8))
	add(s.Rate == 0, "no limit of speed")
	add(s.Up > 0 && s.Up != s.Rate, "%s from the clients", unit.Bits(float64(s.Up)/8))
	add(s.RTT > 0, "%s round trip", unit.Seconds(time.Duration(s.RTT).Seconds()))
	add(s.Jitter > 0, "%s jitter", unit.Seconds(time.Duration(s.Jitter).Seconds()))
	add(s.Loss > 0, "%s loss", unit.Percent(float64(s.Loss)))
	add(s.Queue > 0, "queue of %s", unit.Seconds(time.Duration(s.Queue).Seconds()))
	add(s.Burst > 0, "bursts of %s", unit.Bytes(float64(s.Burst)))
	add(s.MTU > 0 && s.MTU != defaultMTU, "packets of %d bytes", s.MTU)
	add(s.BlackHole > 0, "packets above %d bytes vanish", s.BlackHole)
	add(s.Congestion != "", "%s", s.Congestion)
	add(s.Trunk != "", "over %s", s.Trunk)
	for _, o := range s.Outages {
		add(true, "down for %s after %s", unit.Seconds(time.Duration(o.For).Seconds()), unit.Seconds(time.Duration(o.After).Seconds()))
	}
	return strings.Join(parts, ", ")
}

// Deal returns the number of clients, of n in total, at each of the sites, which Sites returns. A
// link never loses a client when n grows, so that the clients of a step are also clients of every
// larger step; and no link is further from its exact part than necessary (Sainte-Laguë's method).
func Deal(n int, sites []Named) []int {
	out := make([]int, len(sites))
	for range n {
		best, most := -1, 0.0
		for i, l := range sites {
			if q := l.Spec.Complete().Share / float64(2*out[i]+1); q > most {
				best, most = i, q
			}
		}
		if best < 0 {
			break
		}
		out[best]++
	}
	return out
}

// Keys returns the keys of a link, in the order of the reference.
func Keys() []string { return tags.Names(reflect.TypeFor[Spec]()) }

// short shortens a user's text for a message.
func short(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:37]) + "..."
	}
	return text
}

// Traffic is the traffic of one way of a link. Counts are of a span, which is usually one second.
type Traffic struct {
	Packets int64 `json:"packets"` // that have arrived
	Bytes   int64 `json:"bytes"`   // of these, IP headers included
	Dropped int64 `json:"dropped"` // because the queue was full
	Lost    int64 `json:"lost"`    // according to the link's loss, or in its black hole
	Cut     int64 `json:"cut"`     // because the link was down

	// Busy is the share of the time in which the wire was sending; 0 if it has no rate.
	Busy float64   `json:"busy"`
	Wait Quantiles `json:"wait_seconds"` // of packets for the wire
	// Late is the delay of packets beyond their intended arrival: the emulation's own fault.
	Late Quantiles `json:"late_seconds"`
}

// Quantiles has quantiles of a span's packets, each at most 13% too high.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}
