package validity

import (
	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/links"
	"weir/loadtest/analysis/steps"
)

// Shares of the time of a data challenge in which weir itself was late: from the first one the
// result is suspect, from the second one it is invalid.
const (
	someLateTime = 0.01
	mostLateTime = 0.05
)

// Challenge runs the checks of a data challenge. Copies that fail, and links below their targets, are
// its result; the copies bypass weir's machine.
func (d *Evidence) Challenge(c *links.Challenge) Validity {
	return Judged(Valid, []Check{d.checkData(d.Curve), d.checkClock(), checkControl(c), checkLong(c), checkCopies(c), checkPhases(c),
		checkAgree(c),
		d.checkMachines(), d.checkCost()})
}

// checkLong checks whether the challenge was measured at its highest level for long enough to judge a
// minute.
func checkLong(c *links.Challenge) Check {
	check := Check{Name: "enough data", Status: OK}
	if c.Seconds == 0 {
		return check.Skip(fact.New("check.control.nothing"))
	}
	check.addFact("check.long.level", "seconds", c.LevelSeconds, "level", c.Level)
	if c.LevelSeconds == 0 {
		check.worsen(Warn, fact.New("effect.too_short"))
	}
	return check
}

// checkCopies checks whether any copy arrived. Failures of some copies are the result of a challenge;
// a challenge without one copy measured no link.
func checkCopies(c *links.Challenge) Check {
	check := Check{Name: "copies", Status: OK}
	t := &c.Total
	switch {
	case c.Seconds == 0:
		return check.Skip(fact.New("check.copies.none"))
	case t.Files > 0:
		check.addFact("check.copies.arrived", "files", t.Files, "ended", t.Files+t.Failed)
	case t.Failed > 0:
		check.addFact("check.copies.failed", "failed", t.Failed)
		check.worsen(Fail, fact.New("effect.no_copy"))
	case t.Achieved > 0:
		check.addFact("check.copies.unended")
		check.worsen(Warn, fact.New("effect.unended_copies"))
	default:
		check.addFact("check.copies.none")
		check.worsen(Fail, fact.New("effect.no_copy"))
	}
	return check
}

// checkControl checks whether weir itself was in time: its controller, and its machine.
func checkControl(c *links.Challenge) Check {
	check := Check{Name: "control", Status: OK}
	if c.Seconds == 0 {
		check.addFact("check.control.nothing")
		check.worsen(Fail, fact.New("effect.no_result"))
		return check
	}
	v := &c.Control
	starved := stats.Ratio(float64(v.Starved)*c.Minute, c.Seconds)
	check.addFact("check.control.late", "share", v.Missing, "seconds", v.Gap)
	if v.Starved > 0 {
		check.addFact("check.control.starved", "minutes", v.Starved)
	}
	if v.CPU == nil {
		check.Note(fact.New("check.control.unwatched"), fact.New("remedy.watch_clients"))
	} else {
		check.addFact("check.control.cpu", "share", v.CPU)
	}
	switch most := max(v.Missing, starved); {
	case most >= mostLateTime:
		check.worsen(Fail, fact.New("effect.control_late"))
	case most >= someLateTime:
		check.worsen(Warn, fact.New("effect.control_late"))
	}
	return check
}

// checkAgree compares the bytes of the copies with the counters of the sites' hosts. More bytes at the
// hosts are foreign traffic, which is no defect of the result.
func checkAgree(c *links.Challenge) Check {
	check := Check{Name: "both ends agree", Status: Skipped}
	for i := range c.Sites {
		s := &c.Sites[i]
		for _, side := range []struct {
			way string
			of  *links.Counted
		}{{"received", s.HostIn}, {"sent", s.HostOut}} {
			if side.of == nil {
				continue
			}
			if check.Status == Skipped {
				check.Status = OK
			}
			if off := side.of.Off; off < -bytesOK || off > bytesOK {
				check.addFact("check.agree.differs", "site", s.Site, "way", side.way, "hosts", side.of.Hosts, "copies", side.of.Moved,
					"difference", off)
			}
			if side.of.Off < -bytesWarn {
				check.worsen(Warn, fact.New("effect.bytes_missing", "site", s.Site))
			}
		}
	}
	switch check.Status {
	case Skipped:
		return check.Skip(fact.New("check.agree.unwatched"))
	case OK:
		check.addFact("check.agree.compared")
	}
	return check
}

// checkMachines checks whether others took CPU from the machines that were monitored, as checkQuiet
// does. A challenge has stages, and no throughput that more CPU would raise by a known factor.
func (d *Evidence) checkMachines() Check {
	return checkOthers(d.Curve, func(s *steps.Working, host string, _ float64) (most, effect fact.Fact) {
		return fact.New("check.quiet.most_stage", "host", host, "stage", s.Step), fact.New("effect.machines_slowed")
	})
}

// checkPhases checks whether the phases of copies are known.
func checkPhases(c *links.Challenge) Check {
	check := Check{Name: "phases", Status: OK}
	whole, queue := int64(0), int64(0)
	for i := range c.Links {
		if l := &c.Links[i]; l.Whole != nil {
			whole += l.Whole.Count
			if l.Queue != nil {
				queue += l.Queue.Count
			}
		}
	}
	switch {
	case whole == 0:
		return check.Skip(fact.New("check.phases.none"))
	case c.Clock != nil:
		check.addFact("check.phases.clock", "copies", whole-queue, "of", whole, "seconds", c.Clock)
		check.worsen(Warn, fact.New("effect.phases"))
	default:
		check.addFact("check.phases.known", "copies", queue, "of", whole)
	}
	return check
}
