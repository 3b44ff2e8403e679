package calibration

import (
	"math"

	"weir/internal/unit"
	"weir/loadtest/run/calibration/relay"
)

// notes says what to keep in mind.
func (r *Result) notes() {
	if r.given.Interrupted {
		r.note("interrupted: this is what was measured until then")
	}
	r.noteRounds()
	if n := min(r.Files[0], r.Files[1]); len(r.Points) > 0 && n < fewFiles {
		r.note("one side moved only %d files: use a longer --duration, more --rounds or smaller files", n)
	}
	r.noteSlow()
	r.noteTicks()
	r.noteFailures()
	for _, doubt := range r.given.Doubts {
		r.note("a check of one side's report failed: %s", doubt)
	}
	r.noteWaiting()
	r.noteOthers()
	r.noteBusy()
	r.noteMachine()
	r.noteWork()
	r.noteWire()
}

func (r *Result) noteRounds() {
	switch r.Rounds {
	case 0:
	case 1:
		r.note("one round: nothing tells how much a ratio varies; use --rounds 3 or more")
	default:
		r.note("%d rounds, taken in turns (A B, B A, ...): a ratio is the median of the rounds' ratios, with the least and the greatest; "+
			"the figures beside it are of that round", r.Rounds)
	}
}

// noteSlow adds a note on holds that were too short.
func (r *Result) noteSlow() {
	for i, name := range []string{"weir", r.Program} {
		n := 0
		for k := range r.sides[i] {
			if r.sides[i][k].slow() {
				n++
			}
		}
		if n > 0 {
			r.note("in %d of %d steps %s brought less than %d files a client to their end while the load was held: there its rates and times are "+
				"of the whole step; a longer --duration is better", n, len(r.sides[i]), name, fewHeld)
		}
	}
}

// leastCPU is how many seconds of CPU make the kernel's hundredths good enough.
const leastCPU = 0.3

// noteTicks adds a note on a server that did so little that its CPU is coarse.
func (r *Result) noteTicks() {
	least := leastCPU
	for _, side := range r.sides {
		for i := range side {
			if s := &side[i]; s.Local && len(s.Services) == 0 && s.ServerCPU != nil {
				least = min(least, *s.ServerCPU)
			}
		}
	}
	if least < leastCPU {
		r.note("the kernel counts the server's CPU in hundredths of a second, and one step took only %s of it: a longer --duration makes "+
			"that figure exact", unit.Seconds(least))
	}
}

func (r *Result) noteFailures() {
	for i, name := range []string{"weir", r.Program} {
		var failed, broken int64
		for k := range r.sides[i] {
			failed, broken = failed+r.sides[i][k].Failed, broken+r.sides[i][k].Broken
		}
		if failed > 0 {
			r.note("%d operations of %s failed: its run directory says how", failed, name)
		}
		if broken > 0 {
			r.note("%d operations of %s were broken off at the end of a step; what they cost is in the figures", broken, name)
		}
	}
}

// noteWaiting looks for a program that waits for something else than the
// service.
func (r *Result) noteWaiting() {
	if len(r.Points) == 0 {
		return
	}
	p := &r.Points[0]
	took, cpu := p.Figure(Median), p.Figure(ClientByFile).Real
	if took.Ratio == nil || cpu == nil || *took.Real < slowStart || *cpu > idleShare**took.Real || took.Ratio.Value > 0.1 {
		return
	}
	if r.busy() {
		return // it waits for a processor
	}
	if took.PacedRatio != nil && took.PacedRatio.Value > 0.1 {
		r.note("at the pace of %s weir waits for a file as well (%s, and %s at full speed): the service answers more slowly when it is "+
			"asked less often", r.Program, unit.Seconds(*took.Paced), unit.Seconds(*took.Weir))
		return
	}
	text := "%s takes %s for a file, of which %s is CPU, and weir %s: it waits, and not for the service. "
	if r.Program != "curl" {
		text += "It looks names up about four times in each process: on a host with a slow name server that is most of it. " +
			"\"hosts: files\" in /etc/nsswitch.conf, with the server in /etc/hosts, or a local cache of names shows what it can do"
	} else {
		text += "A slow name server is the usual reason"
	}
	r.note(text, r.Program, unit.Seconds(*took.Real), unit.Seconds(*cpu), unit.Seconds(*took.Weir))
}

// noteOthers adds a note if the servers have other clients.
func (r *Result) noteOthers() {
	if len(r.given.Idle) == 0 || r.given.IdleSeconds <= 0 || r.Servers == nil {
		return
	}
	var ops int64
	var cpu float64
	for _, v := range r.given.Idle {
		ops += v.Operations() + v.Logins
		cpu += v.User + v.System
	}
	perSecond, cores := float64(ops)/r.given.IdleSeconds, cpu/r.given.IdleSeconds
	if perSecond > 1 || cores > othersShare {
		r.note("the servers have other clients: before the load they answered %s requests/s with %s of a core; that is in all their figures",
			unit.Count(round(perSecond)), unit.Percent(cores))
	}
}

// mostOthers is the share of this machine's CPU that others may use.
const mostOthers = 0.15

// others is the greatest share of this machine's CPU that others used.
func (r *Result) others() float64 {
	most := 0.0
	for _, side := range r.sides {
		for i := range side {
			most = max(most, side[i].others())
		}
	}
	return most
}

// busy reports whether most of the program's steps found this machine without a
// core to spare.
func (r *Result) busy() bool {
	n := 0
	for i := range r.sides[1] {
		if s := &r.sides[1][i]; s.busy > 0.8*s.here && s.here > 0 {
			n++
		}
	}
	return 2*n > len(r.sides[1])
}

func (r *Result) noteBusy() {
	if x := r.others(); x > mostOthers {
		r.note("other programs used up to %s of this machine's CPU meanwhile: rates and times are of what they left, and vary with it; "+
			"CPU a file suffers less", unit.Percent(math.Round(100*x)/100))
	}
}

func (r *Result) noteMachine() {
	for _, side := range r.sides {
		for i := range side {
			if side[i].Local {
				r.note("server and clients share this machine, so each throughput is also what the other end's CPU left; " +
					"CPU a file depends much less on that, requests not at all")
				return
			}
		}
	}
}

// noteWork tells what the two do differently on purpose.
func (r *Result) noteWork() {
	switch {
	case r.Kind != "read":
	case r.Program == "xrdcp" && !r.Plain:
		r.note("xrdcp verifies the checksum of each page; weir asks for the same pages and drops the payload in the kernel, " +
			"unless --set workload.verify=100%% makes it read and verify all of them")
	default:
		r.note("weir drops the payload in the kernel where it can; %s copies it to its memory", r.Program)
	}
}

func (r *Result) noteWire() {
	if r.given.LookError != "" {
		r.note("no look at the requests through a relay: %s", r.given.LookError)
	}
	if r.Relay == nil && r.Servers == nil && len(r.Points) > 0 {
		if f := r.last().Figure(WireByByte); f.Ratio != nil && !r.interfaces(&f) {
			r.note("how many bytes were on the wire is not known: this machine's interfaces carried more than the two sides' (%s and %s bytes for "+
				"each byte of the files)", three(*f.Weir), three(*f.Real))
		}
	}
	if r.Relay != nil && r.Relay.Redirected {
		r.note("the target redirects: what was asked of data servers went past the relay, and stands only in what the servers count")
	}
	if r.Servers == nil {
		r.note("the servers do not tell what they were asked for (only XRootD's do, to those whom they let ask)")
	}
	if r.Relay.request("open" + relay.Async).Differ() {
		r.note("one side opens files for asynchronous I/O and the other does not: it matters where the server is set up for that " +
			"(xrootd.async), and then what asynchronous I/O costs is not in the other's figures")
	}
}
