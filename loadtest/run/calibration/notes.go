package calibration

import (
	"weir/loadtest/analysis/fact"
	"weir/loadtest/run/calibration/relay"
)

// notes adds notes on the limits of the comparison.
func (r *Result) notes() {
	if r.given.Interrupted {
		r.note(fact.New("calibration.interrupted"))
	}
	r.noteRounds()
	if n := min(r.Files[0], r.Files[1]); len(r.Points) > 0 && n < fewFiles {
		r.note(fact.New("calibration.few_files", "files", n))
	}
	r.noteSlow()
	r.noteTicks()
	r.noteFailures()
	for _, doubt := range r.given.Doubts {
		r.note(doubt)
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
		r.note(fact.New("calibration.rounds.one"))
	default:
		r.note(fact.New("calibration.rounds.several", "rounds", r.Rounds))
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
			r.note(fact.New("calibration.short_steps", "short", n, "steps", len(r.sides[i]), "side", name, "least", fewHeld))
		}
	}
}

// leastCPU is the number of seconds of CPU for which the kernel's resolution of hundredths is good
// enough.
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
		r.note(fact.New("calibration.coarse_cpu", "seconds", least))
	}
}

func (r *Result) noteFailures() {
	for i, name := range []string{"weir", r.Program} {
		var failed, broken int64
		for k := range r.sides[i] {
			failed, broken = failed+r.sides[i][k].Failed, broken+r.sides[i][k].Broken
		}
		if failed > 0 {
			r.note(fact.New("calibration.failed", "failed", failed, "side", name))
		}
		if broken > 0 {
			r.note(fact.New("calibration.broken_off", "operations", broken, "side", name))
		}
	}
}

// noteWaiting adds a note if the program waits for something other than the service.
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
		r.note(fact.New("calibration.waiting.service", "program", r.Program, "paced_seconds", *took.Paced, "weir_seconds", *took.Weir))
		return
	}
	r.note(fact.New("calibration.waiting.program", "program", r.Program, "program_seconds", *took.Real, "cpu_seconds", *cpu,
		"weir_seconds", *took.Weir))
	if r.Program == "curl" {
		r.note(fact.New("calibration.waiting.name_server"))
	} else {
		r.note(fact.New("calibration.waiting.names", "program", r.Program))
	}
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
		r.note(fact.New("calibration.other_clients", "rate", perSecond, "cores", cores))
	}
}

// mostOthers is the share of this machine's CPU that others may use.
const mostOthers = 0.15

// others returns the largest share of this machine's CPU that others used.
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
		r.note(fact.New("calibration.busy_machine", "share", x))
	}
}

func (r *Result) noteMachine() {
	for _, side := range r.sides {
		for i := range side {
			if side[i].Local {
				r.note(fact.New("calibration.shared_machine"))
				return
			}
		}
	}
}

// noteWork adds a note on the intended differences.
func (r *Result) noteWork() {
	switch {
	case r.Kind != "read":
	case r.Program == "xrdcp" && !r.Plain:
		r.note(fact.New("calibration.verification.pages"))
	default:
		r.note(fact.New("calibration.verification.payload", "program", r.Program))
	}
}

func (r *Result) noteWire() {
	if r.given.Encrypted {
		r.note(fact.New("calibration.relay.encrypted"))
	} else if r.given.LookError != "" {
		r.note(fact.New("calibration.relay.failed", "error", r.given.LookError))
	}
	if r.Relay == nil && r.Servers == nil && len(r.Points) > 0 {
		if f := r.last().Figure(WireByByte); f.Ratio != nil && !r.interfaces(&f) {
			r.note(fact.New("calibration.interfaces", "weir", ratio(*f.Weir), "program", ratio(*f.Real)))
		}
	}
	if r.Relay != nil && r.Relay.Redirected {
		r.note(fact.New("calibration.redirected"))
	}
	if r.Servers == nil {
		r.note(fact.New("calibration.no_statistics"))
	}
	if r.Relay.request("open" + relay.Async).Differ() {
		r.note(fact.New("calibration.asynchronous"))
	}
}
