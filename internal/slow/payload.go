package slow

import (
	"fmt"
	"math"

	"weir/internal/cause"
	"weir/internal/unit"
)

// host judges this machine.
func (j *judge) host() {
	h := &j.Host
	unread := middle(j.Fresh, func(f *Flow) float64 { return max(f.Wire.Unread, f.Wire.Idle) })
	measured := len(j.Fresh) > 0 && j.Fresh[0].Wire.Measured
	behind := !measured || unread >= 0.2
	slowDisk := j.Kept != nil && j.Kept.Rate > 0 && j.one/j.Kept.Rate >= cached
	if k := j.Kept; slowDisk {
		j.of(ThisHost, Disk).For(cause.Direct, "", fmt.Sprintf("%s when the payload is kept on the local disk, %s when it is dropped",
			unit.Bits(k.Rate), unit.Bits(j.one)))
		j.best[what{ThisHost, Disk}], j.one = j.one, k.Rate
	}
	busy := max(h.Throttled, h.CPU)
	switch {
	case h.Throttled >= 0.2 && behind, h.CPU >= full && behind && unread >= half:
		text := fmt.Sprintf("the CPU is %s busy or withheld, and data wait in %s of the time", unit.Percent(busy), unit.Percent(unread))
		j.of(ThisHost, CPU).For(cause.Direct, "", text)
	case h.Own >= 0.9 && behind:
		j.of(ThisHost, CPU).For(cause.Direct, "", fmt.Sprintf("this program needs %s of a core", unit.Percent(h.Own)))
	case measured && h.CPU >= full && unread >= 0.2:
		j.of(ThisHost, CPU).For(cause.Strong, "", fmt.Sprintf("the CPU is %s busy, and data wait in %s of the time",
			unit.Percent(busy), unit.Percent(unread)))
	case measured && unread >= half:
		j.of(Program, "").For(cause.Strong, "", "data wait for this program in "+unit.Percent(unread)+" of the time")
	}
	if measured && unread < 0.1 && !slowDisk {
		text := "this host: it waits for data in " + unit.Percent(1-unread) + " of the time"
		j.exclude(text, j.of(ThisHost, CPU), j.of(ThisHost, Disk), j.of(Program, ""))
	}
}

// disk judges the server's disk by reading the same range again.
func (j *judge) disk() {
	if j.again == 0 || j.one == 0 {
		return
	}
	h, text := j.of(ServerDisk, ""), fmt.Sprintf("fresh ranges come at %s, the same ranges again at %s", unit.Bits(j.one),
		unit.Bits(j.again))
	switch ratio := j.again / j.one; {
	case j.remembers():
		h.For(cause.Direct, "", text)
		j.best[h.Cause] = j.again
	case ratio >= level && j.repeats():
		h.For(cause.Strong, "", text)
		j.best[h.Cause] = j.again
	case ratio < 1.15:
		j.exclude("the server's disk: "+text, h)
	}
}

// remembers reports whether ranges that were just read come so much faster that they come from memory.
func (j *judge) remembers() bool { return j.again >= cached*j.one && j.repeats() }

// repeats reports whether each range came faster when it was read again; with loss, whose rates vary,
// faster than all ranges before.
func (j *judge) repeats() bool {
	most, least := 0.0, math.Inf(1)
	for i := range j.Fresh {
		most = max(most, j.Fresh[i].Rate)
		if i < len(j.Again) && j.Again[i].Rate < level*j.Fresh[i].Rate {
			return false
		}
	}
	for i := range j.Again {
		least = min(least, j.Again[i].Rate)
	}
	return len(j.Again) > 1 && (j.lost < lossy || least >= cached*most)
}

// exact reports whether any number of streams has the same rate, as a limit gives it.
func (j *judge) exact() bool {
	least, most := j.extremes()
	return len(j.Many) > 1 && max(most, j.one) <= 1.15*min(least, j.one)
}

// gain returns how many times the rate of one stream several streams have; 0: not measured.
func (j *judge) gain() float64 {
	if j.one == 0 {
		return 0
	}
	return j.many / j.one
}

// growth returns by how much the connect time, and the time of requests beyond it, grow under load.
func (j *judge) growth() (connect, request float64) {
	if j.Busy.Connect > 0 && j.Idle.Connect > 0 {
		connect = j.Busy.Connect - j.Idle.Connect
	}
	if j.Busy.Request > 0 && j.Idle.Request > 0 {
		request = j.Busy.Request - j.Idle.Request - max(connect, 0)
	}
	return connect, request
}

// queues reports whether there is a queue in the line under load: a connect to the server's kernel takes longer.
func (j *judge) queues() bool {
	connect, _ := j.growth()
	return connect >= max(leastQueue, queueing*j.round)
}

// ladder describes the rates by number of streams.
func (j *judge) ladder() string {
	return fmt.Sprintf("one stream gets %s, %d get %s", unit.Bits(j.one), j.streams, unit.Bits(j.many))
}

// line judges loss, rate and windows.
func (j *judge) line() {
	gain := j.gain()
	connect, _ := j.growth()
	queue := j.queues()
	rate, loss := j.of(Line, Rate), j.of(Line, Loss)
	lost := unit.Percent(j.lost) + " of the segments are lost"
	if !j.Write {
		lost = unit.Percent(j.lost) + " of the segments arrive out of order (loss is inferred)"
	}
	if gain > 0 && gain < level && j.consistent() {
		if queue {
			rate.For(cause.Direct, "", fmt.Sprintf("under load a connect takes %s longer, and %s", unit.Seconds(connect), j.ladder()))
		} else if j.lost >= lossy {
			rate.For(cause.Strong, "", j.ladder()+", and "+lost)
			rate.For(cause.Weak, "", "no queue is seen: a shaper drops what exceeds the rate")
		}
	}
	if j.lost >= lossy && gain >= gains && !j.steady() {
		loss.For(cause.Strong, "", lost+"; "+j.ladder())
		j.best[loss.Cause] = j.many
		if j.Write {
			loss.For(cause.Strong, "", "each segment that is sent again is counted here")
		}
		if !queue {
			loss.For(cause.Weak, "", "there is no queue in the line")
		}
	}
	if j.lost < lossy/5 && len(j.Fresh) > 0 && j.Fresh[0].Wire.Measured {
		j.exclude("loss: "+unit.Percent(j.lost)+" of the segments", loss)
	}
	if gain >= gains {
		j.exclude("the rate of the line and of the whole server: "+j.ladder(), rate, j.of(ServerLimit, Client))
		j.perStream()
	}
}

// perStream tells the window of a stream from a limit that the server gives it.
func (j *judge) perStream() {
	window, limit := j.of(Line, Window), j.of(ServerLimit, Stream)
	if j.lost >= lossy && !j.steady() {
		return
	}
	flight := j.one * max(j.round, middle(j.Fresh, func(f *Flow) float64 { return f.Wire.RTT }))
	round := middle(j.Fresh, func(f *Flow) float64 { return f.Round })
	offered := middle(j.Fresh, func(f *Flow) float64 { return f.Wire.Window })
	text := fmt.Sprintf("%s in flight at a round trip of %s; %s", unit.Bytes(flight), unit.Seconds(j.round), j.ladder())
	own := middle(j.Fresh, func(f *Flow) float64 { return f.Wire.OwnBuffer })
	peer := middle(j.Fresh, func(f *Flow) float64 { return f.Wire.PeerWindow })
	switch {
	case j.Write && own >= half:
		window.For(cause.Direct, "", "the send buffer of this host is full in "+unit.Percent(own)+" of the time; "+text)
	case j.Write && peer >= half && j.round >= farAway && flight >= half*offered:
		window.For(cause.Direct, "", "the window of the receiver is full in "+unit.Percent(peer)+" of the time; "+text)
	case j.round < farAway:
		j.limited("no window is so small at a round trip of " + unit.Seconds(j.round))
	case !j.Write && offered > 0 && offered < 1.5*flight:
		window.For(cause.Direct, "", fmt.Sprintf("this host offers %s: %s", unit.Bytes(offered), text))
	case round >= half:
		window.For(cause.Strong, "", "data come once in a round trip; "+text)
		window.For(cause.Weak, "", "this host offers more: the sender's window is too small")
	default:
		j.limited("data do not come in the time of round trips of " + unit.Seconds(j.round))
	}
	j.best[window.Cause], j.best[limit.Cause] = j.many, j.many
}

// limited judges streams that something at the server limits, and no window.
func (j *judge) limited(noWindow string) {
	limit := j.of(ServerLimit, Stream)
	limit.For(cause.Strong, "", j.ladder())
	if j.proportional() {
		limit.For(cause.Weak, "", "each stream gets the same")
		limit.For(cause.Weak, "", noWindow)
		return
	}
	j.of(ServerHost, CPU).For(cause.Strong, "", "more streams get more, but less each: a thread of the server may serve each stream")
}

// consistent reports whether the rates of several streams are alike; if not, something else disturbed them.
func (j *judge) consistent() bool {
	least, most := j.extremes()
	return least >= 0.6*most
}

// extremes returns the lowest and the highest rate of several streams.
func (j *judge) extremes() (least, most float64) {
	least = math.Inf(1)
	for i := range j.Many {
		least, most = min(least, j.Many[i].Rate), max(most, j.Many[i].Rate)
	}
	return least, most
}

// steady reports whether each stream has the same rate all the time, as a limit gives it.
func (j *judge) steady() bool {
	return j.proportional() && middle(j.Fresh, func(f *Flow) float64 { return f.Spread }) < 0.1
}

// proportional reports whether several streams carry as many times the rate of one. Flows of less than a second do not
// count: a limit lets a burst pass.
func (j *judge) proportional() bool {
	seen := false
	for i := range j.Many {
		f := &j.Many[i]
		if f.Seconds < 1 {
			continue
		}
		seen = true
		if ratio := f.Rate / (float64(f.Streams) * j.one); ratio < 0.85 || ratio > 1.15 {
			return false
		}
	}
	return seen
}

// exporter judges what the server's host reports of itself.
func (j *judge) exporter() {
	s := j.Server
	if s == nil {
		return
	}
	disk, host := j.of(ServerDisk, ""), j.of(ServerHost, CPU)
	if s.Disk >= 0.9 {
		disk.For(cause.Direct, "", "its busiest disk is busy in "+unit.Percent(s.Disk)+" of the time")
	} else if s.Disk < half {
		j.exclude("the server's disk: it is busy in "+unit.Percent(s.Disk)+" of the time", disk)
	}
	if s.CPU >= 0.9 {
		host.For(cause.Direct, "", "its CPU is busy in "+unit.Percent(s.CPU)+" of the time")
	} else if s.CPU < half && s.Core < 0.9 {
		j.exclude("the server's CPU: it is busy in "+unit.Percent(s.CPU)+" of the time", host)
	}
}

// server judges the server's host and the rate that it gives to a client.
func (j *judge) server() {
	gain := j.gain()
	connect, request := j.growth()
	host, limit := j.of(ServerHost, CPU), j.of(ServerLimit, Client)
	beyond := j.Idle.Request - j.Idle.Connect
	grows := request >= max(slowAnswer, beyond)
	if grows {
		strength := cause.Strong
		if j.exact() {
			strength = cause.Weak // a limit delays requests as well
		}
		host.For(strength, "", fmt.Sprintf("under load its requests take %s longer, a connect to its kernel only %s", unit.Seconds(request),
			unit.Seconds(max(connect, 0))))
	}
	if j.Idle.Request > 0 && beyond >= slowAnswer {
		host.For(cause.Weak, "", "a request without payload takes "+unit.Seconds(beyond)+" beyond the round trip")
	}
	if !j.remembers() && !j.queues() && gain > 0 && gain < level && j.lost < lossy && j.consistent() {
		switch {
		case grows && !j.exact():
			host.For(cause.Strong, "", j.ladder()+", without a queue in the line")
		case grows:
			limit.For(cause.Strong, "", j.ladder()+", without a queue in the line")
			limit.For(cause.Weak, "", "the rates are equal within 15%")
		default:
			limit.For(cause.Strong, "", j.ladder()+", without a queue in the line, and its answers take no longer")
			if steady := middle(j.Fresh, func(f *Flow) float64 { return f.Spread }); steady < 0.1 {
				limit.For(cause.Weak, "", "the rate is steady within "+unit.Percent(steady))
			}
		}
	}
}

// writes judges the other end of a write, which takes data or does not.
func (j *judge) writes() {
	peer := middle(j.Fresh, func(f *Flow) float64 { return f.Wire.PeerWindow })
	if peer < half || j.gain() >= gains {
		return
	}
	_, request := j.growth()
	text := "its window is closed in " + unit.Percent(peer) + " of the time: it does not take the data"
	j.of(ServerDisk, "").For(cause.Strong, "", text)
	j.of(ServerHost, CPU).For(cause.Strong, "", text)
	if request >= slowAnswer {
		j.of(ServerHost, CPU).For(cause.Strong, "", "its requests take "+unit.Seconds(request)+" longer meanwhile")
		return
	}
	if j.Busy.Request > 0 {
		j.of(ServerDisk, "").For(cause.Strong, "", "its requests without payload take no longer meanwhile")
	}
}
