package rigs

import (
	"time"

	"weir/internal/unit"
	"weir/link"
)

// A challengeRig is a data challenge whose limit is known. Links are named after their sites: AB is
// from A to B. Each of the four sites sends to the next two, so that C receives AC and BC and sends CD
// and CA.
type challengeRig struct {
	rig
	specs   map[string]siteSpec
	lines   []gridLine
	plan    gridPlan
	limited string   // links that are held back
	answers string   // that are right: "kind site detail" with * for any, separated by |
	free    []string // links that may be held back or not
	control bool     // nothing limits: control is measured
	keeps   bool     // files are left at a site that was away or full
	heldOut bool     // the rules were not adjusted by it
	before  func(g *grid)
	during  func(g *grid, r *running) // while the challenge runs
	after   func(g *grid, r *ran)     // further expectations
}

// bits per second in bytes
func bps(rate float64) int64 { return int64(rate / 8) }

// challengeRigs returns the rigs of data challenges, in the order of the page.
func challengeRigs() []challengeRig {
	var all []challengeRig
	for _, part := range [][]challengeRig{
		healthyChallenges(), storageRigs(), lineRigs(), awayRigs(), costRigs(), serviceRigs(), xrootdRigs(), ownRigs(), heldOutRigs(),
	} {
		all = append(all, part...)
	}
	return all
}

func ms2(n int) unit.Duration { return unit.Duration(time.Duration(n) * time.Millisecond) }

const steps = "[{for: 70s, at: 25%}, {for: 70s, at: 50%}, {for: 100s, at: 100%}]"

// healthyChallenges returns challenges that nothing limits.
func healthyChallenges() []challengeRig {
	return []challengeRig{
		{rig: rig{name: "healthy-steps", situation: "Four sites; 25, 50 and 100% of 1 Mbit/s on eight links.",
			truth: "Nothing limits."}, plan: gridPlan{profile: steps}, control: true},
		{rig: rig{name: "healthy-push", situation: "The sources push; one link has 2 Mbit/s, one 0.5 Mbit/s.",
			truth: "Nothing limits."}, plan: gridPlan{mode: "push", rates: map[string]float64{"AB": 2e6, "CD": 0.5e6}}, control: true},
		{rig: rig{name: "healthy-far", situation: "All pairs of sites have a round trip of 80 ms and lines of 20 Mbit/s.",
			truth: "Nothing limits."}, lines: farLines(), control: true},
		{rig: rig{name: "healthy-slow-connections", situation: "Each connection of each site carries 0.5 Mbit/s.",
			truth: "Nothing limits: more copies at once bring the rate."}, specs: slowSites(0.5e6), plan: gridPlan{profile: steps}, control: true},
		{rig: rig{name: "healthy-down", situation: "100%, then 25%, then 75% of the targets.", truth: "Nothing limits."},
			plan: gridPlan{profile: "[{for: 80s, at: 100%}, {for: 70s, at: 25%}, {for: 80s, at: 75%}]"}, control: true},
	}
}

func farLines() (all []gridLine) {
	for _, pair := range []string{"AB", "AC", "BC", "BD", "CD", "AD"} {
		all = append(all, gridLine{pair, link.Spec{Rate: 20e6, RTT: ms2(80)}})
	}
	return all
}

// storageRigs returns challenges with slow storage.
func storageRigs() []challengeRig {
	return []challengeRig{
		{rig: rig{name: "slow-disk-source", situation: "C reads 1.2 Mbit/s; its two outgoing links have targets of 2.",
			truth: "The storage of C limits CD and CA."}, specs: map[string]siteSpec{"C": {Total: bps(1.2e6)}},
			plan: gridPlan{without: []string{"BC"}}, limited: "CD CA", answers: "source C -|source C disk"},
		{rig: rig{name: "slow-disk-destination", situation: "C writes 1.2 Mbit/s; its two incoming links have targets of 2.",
			truth: "The storage of C limits AC and BC."}, specs: map[string]siteSpec{"C": {Total: bps(1.2e6)}},
			plan: gridPlan{without: []string{"CA", "CD"}}, limited: "AC BC", answers: "destination C -|destination C disk"},
		{rig: rig{name: "checksum", situation: "C computes one checksum at a time, in 0.8 s, longer than a copy takes.",
			truth: "Checksums limit CD and CA, whose destinations compare them in the copy; weir compares those of AC and BC after it."},
			specs:   map[string]siteSpec{"C": {Sum: 800 * time.Millisecond}},
			limited: "CD CA", answers: "source C checksum"},
		{rig: rig{name: "door-refuses", situation: "C makes two copies at once and refuses more; a copy takes 1.8 s.",
			truth: "The limit of copies at C limits AC, BC or both."}, specs: map[string]siteSpec{"C": {Most: 2}, "A": {Rate: bps(0.6e6)},
			"B": {Rate: bps(0.6e6)}}, free: []string{"AC", "BC"}, after: refusedAtC},
		{rig: rig{name: "door-queues", situation: "C makes two copies at once and lets others wait; a copy takes 1.8 s.",
			truth: "The limit of copies at C limits AC and BC."}, specs: map[string]siteSpec{"C": {Doors: 2}, "A": {Rate: bps(0.6e6)},
			"B": {Rate: bps(0.6e6)}}, limited: "AC BC", answers: "destination C door"},
		{rig: rig{name: "full-site", needs: []string{"root"}, situation: "C has a file system of 12 MB; copies stay for ten minutes.",
			truth: "C is full after 80 s: AC and BC stop."}, before: smallDisk, keeps: true,
			plan: gridPlan{linger: "10m"}, limited: "AC BC", answers: "destination C full"},
	}
}

// lineRigs returns challenges with full lines.
func lineRigs() []challengeRig {
	trunk := link.Spec{Rate: 2e6, RTT: ms2(10), Trunk: "wan"}
	return []challengeRig{
		{rig: rig{name: "full-line", situation: "The line between B and D carries 0.7 Mbit/s; the target of BD is 1.",
			truth: "The line limits BD."}, lines: []gridLine{{"BD", link.Spec{Rate: 0.7e6, RTT: ms2(10)}}},
			plan: gridPlan{without: []string{"DB"}}, limited: "BD", answers: "line"},
		{rig: rig{name: "full-trunk", situation: "AB, CD and DA share a trunk of 2 Mbit/s; their targets are 3 together.",
			truth: "The trunk limits AB, CD and DA."}, lines: []gridLine{{"AB", trunk}, {"CD", trunk}, {"AD", trunk}},
			plan: gridPlan{profile: "[{for: 1m, at: 50%}, {for: 4m, at: 100%}]"}, limited: "AB CD DA", answers: "line"},
		{rig: rig{name: "loss", situation: "1% of the packets between B and D are lost, at a round trip of 500 ms; one copy at a time.",
			truth: "Loss makes copies slow, and the limit of copies allows no more."},
			lines: []gridLine{{"BD", link.Spec{Rate: 20e6, RTT: ms2(500), Loss: 0.01}}},
			plan:  gridPlan{without: []string{"DB"}, limits: map[string]int{"BD": 1}}, limited: "BD", answers: "line|injection * in_flight"},
	}
}

// awayRigs returns challenges with sites that do not respond or refuse.
func awayRigs() []challengeRig {
	return []challengeRig{
		{rig: rig{name: "refuses-a-tenth", situation: "C refuses every tenth GET and COPY with 403.",
			truth: "The other copies suffice, or C limits its links. Failures belong to C."}, specs: map[string]siteSpec{"C": {Every: 10}},
			free: []string{"AC", "BC", "CD", "CA"}, after: failuresOfC},
		{rig: rig{name: "away", situation: "C is killed for 1 minute.", truth: "C is away: its links have nothing for 1 minute."},
			limited: "AC BC CD CA", answers: "* C away", during: away, keeps: true},
		{rig: rig{name: "hangs", situation: "C is stopped (SIGSTOP) for 1 minute.", truth: "C does not answer for 1 minute."},
			limited: "AC BC CD CA", answers: "* C away", during: hang("C", 40*time.Second, time.Minute), keeps: true},
		{rig: rig{name: "tokens", situation: "Tokens live for 20 s; the issuer is slow after 1 minute and down after 2.5 minutes.",
			truth: "All links stop when their tokens have ended."}, specs: tokenSites(), before: firstToken, during: issue, keeps: true,
			limited: "AB AC BC BD CD CA DA DB", answers: "credentials"},
	}
}

// costRigs returns challenges in which each copy has a cost.
func costRigs() []challengeRig {
	return []challengeRig{
		{rig: rig{name: "small-files", situation: "Files of 16 to 48 KiB, 0.3 Mbit/s; C needs 0.6 s for each login of a reader, one by one.",
			truth: "Logins at C limit CD and CA."}, specs: map[string]siteSpec{"C": {Login: 600 * time.Millisecond}},
			plan:    gridPlan{rate: 0.3e6, size: "{uniform: [16KiB, 48KiB]}"},
			limited: "CD CA", answers: "source C -|source C disk|source C login"},
	}
}

// slowSites returns all sites, with the same rate of each connection.
func slowSites(rate float64) map[string]siteSpec {
	all := map[string]siteSpec{}
	for i := range gridSites {
		all[siteName(i)] = siteSpec{Rate: bps(rate)}
	}
	return all
}

// serviceRigs returns challenges whose transfer service has a limit.
func serviceRigs() []challengeRig {
	return []challengeRig{
		{rig: rig{name: "coordinator", situation: "A coordinator makes one copy at once for each link; a copy takes 1.6 s: 5 files/s together.",
			truth: "The transfer service limits all links."}, before: oneAtOnce, specs: slowSites(0.65e6),
			limited: "AB AC BC BD CD CA DA DB", answers: "service"},
	}
}

// throttled is the configuration of an XRootD whose storage carries 150 kB/s: 1.2 Mbit/s.
const throttled = "xrootd.fslib throttle default\nthrottle.throttle data 150k\n"

// xrootdRigs returns challenges in which a site is XRootD.
func xrootdRigs() []challengeRig {
	x := map[string]siteSpec{"C": {XRootD: true}}
	return []challengeRig{
		{rig: rig{name: "xrootd-slow-storage", situation: "C is XRootD with a throttle of 1.2 Mbit/s; its two outgoing links have targets of 2.",
			truth: "The storage of C limits CD and CA."}, specs: map[string]siteSpec{"C": {XRootD: true, Extra: throttled}},
			plan: gridPlan{without: []string{"BC", "AC"}}, limited: "CD CA", answers: "source C -|source C disk"},
		{rig: rig{name: "xrootd-full-line", situation: "C is XRootD; the line between C and D carries 0.7 Mbit/s; the target of CD is 1.",
			truth: "The line limits CD."}, specs: x, lines: []gridLine{{"CD", link.Spec{Rate: 0.7e6, RTT: ms2(10)}}},
			limited: "CD", answers: "line"},
		{rig: rig{name: "xrootd-away", situation: "C is XRootD and accepts no connections for 1 minute.",
			truth: "C is away: its links have nothing for 1 minute."}, specs: x,
			limited: "AC BC CD CA", answers: "* C away", during: away, keeps: true},
	}
}

// ownRigs returns challenges that weir itself limits, or whose records are odd.
func ownRigs() []challengeRig {
	return []challengeRig{
		{rig: rig{name: "in-flight", situation: "Each connection carries 0.25 Mbit/s; BD may have 2 copies at once.",
			truth: "The limit of copies limits BD."}, specs: map[string]siteSpec{"B": {Rate: bps(0.25e6)}},
			plan:    gridPlan{limits: map[string]int{"BD": 2}, profile: "[{for: 1m, at: 40%}, {for: 3m, at: 100%}]"},
			limited: "BD", answers: "injection * in_flight"},
		{rig: rig{name: "ceiling", situation: "A ceiling of 5 Mbit/s for all links, whose targets are 8 together.",
			truth: "The ceiling limits all links."}, plan: gridPlan{more: "ceiling: 5Mbit/s\n"},
			limited: "AB AC BC BD CD CA DA DB", answers: "injection * ceiling"},
		{rig: rig{name: "starved", needs: []string{"root"}, situation: "weir gets 0.3% of a core after 80 s (control group).",
			truth: "weir itself limits all links."}, during: starve(20*time.Second, 3000),
			limited: "AB AC BC BD CD CA DA DB", answers: "injection * late|injection * control"},
		{rig: rig{name: "clock", situation: "As slow-disk-source; then the times of copies are moved back by 90 s (in the records).",
			truth: "The storage of C limits CD and CA."}, specs: map[string]siteSpec{"C": {Total: bps(1.2e6)}},
			plan: gridPlan{without: []string{"BC"}}, limited: "CD CA", answers: "source C -|source C disk", after: moveClock},
	}
}

// heldOutRigs returns challenges with the faults of others, at other sites and with other figures.
func heldOutRigs() []challengeRig {
	trunk := link.Spec{Rate: 1.2e6, RTT: ms2(20), Trunk: "wan"}
	all := []challengeRig{
		{rig: rig{name: "other-slow-source", situation: "B reads 0.9 Mbit/s; its two outgoing links have targets of 3, and it has no others.",
			truth: "The storage of B limits BC and BD."}, specs: map[string]siteSpec{"B": {Total: bps(0.9e6)}},
			plan:    gridPlan{without: []string{"AB", "DB"}, rates: map[string]float64{"BC": 1.5e6, "BD": 1.5e6}},
			limited: "BC BD", answers: "source B -|source B disk"},
		{rig: rig{name: "other-slow-destination", situation: "D writes 0.9 Mbit/s; its two incoming links have targets of 2.",
			truth: "The storage of D limits BD and CD."}, specs: map[string]siteSpec{"D": {Total: bps(0.9e6)}},
			plan: gridPlan{without: []string{"DA", "DB"}}, limited: "BD CD", answers: "destination D -|destination D disk"},
		{rig: rig{name: "other-checksum", situation: "A computes one checksum at a time, in 1.5 s.",
			truth: "Checksums limit AB and AC."}, specs: map[string]siteSpec{"A": {Sum: 1500 * time.Millisecond}},
			free: []string{"CA", "DA"}, limited: "AB AC", answers: "source A checksum"},
		{rig: rig{name: "other-hang", situation: "B is stopped (SIGSTOP) for 45 s.", truth: "B does not answer for 45 s."},
			limited: "AB DB BC BD", answers: "* B away", during: hang("B", 70*time.Second, 45*time.Second), keeps: true},
		{rig: rig{name: "other-line", situation: "The line between A and C carries 0.4 Mbit/s; the target of AC is 1.",
			truth: "The line limits AC."}, lines: []gridLine{{"AC", link.Spec{Rate: 0.4e6, RTT: ms2(40)}}},
			plan: gridPlan{without: []string{"CA"}}, limited: "AC", answers: "line"},
		{rig: rig{name: "other-trunk", situation: "AC and BD share a trunk of 1.2 Mbit/s; their targets are 2 together.",
			truth: "The trunk limits AC and BD."}, lines: []gridLine{{"AC", trunk}, {"BD", trunk}},
			plan: gridPlan{without: []string{"CA", "DB"}}, limited: "AC BD", answers: "line"},
		{rig: rig{name: "other-small-files", situation: "Files of 8 to 64 KiB, 0.3 Mbit/s; A needs 0.9 s for each login of a reader, one by one.",
			truth: "Logins at A limit AB and AC."}, specs: map[string]siteSpec{"A": {Login: 900 * time.Millisecond}},
			plan:    gridPlan{rate: 0.3e6, size: "{uniform: [8KiB, 64KiB]}"},
			limited: "AB AC", answers: "source A -|source A disk|source A login"},
		{rig: rig{name: "other-starved", needs: []string{"root"}, situation: "weir gets 0.2% of a core after 100 s (control group).",
			truth: "weir itself limits all links."}, during: starve(40*time.Second, 2000),
			limited: "AB AC BC BD CD CA DA DB", answers: "injection * late|injection * control"},
	}
	for i := range all {
		all[i].heldOut = true
	}
	return all
}
