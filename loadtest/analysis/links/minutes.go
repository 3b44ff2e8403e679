package links

import (
	"slices"
	"time"

	"weir/internal/stats"
	"weir/loadtest/challenge"
	"weir/storage"
)

// Limits of the analysis of a minute.
const (
	leastRatio = 0.95 // of the target's bytes: a minute below it is explained
	mostRatio  = 1.05
	leastSpan  = 0.5 // of a minute that must be measured for the minute to be judged
	parts      = 6   // of a minute, for the scatter within it

	// mostMinutes bounds the memory: minutes of more links and longer challenges are joined.
	mostMinutes = 500_000
)

// minuteOf returns the length of the minutes of a challenge: one minute; in rehearsals of less than
// ten minutes a tenth of the profile, in steps of 12 s; doubled until the profile has at most
// mostMinutes minutes of all links.
func minuteOf(c *challenge.Challenge) time.Duration {
	const least = 2 * parts * time.Second // so that a part is whole
	total := time.Duration(0)
	for _, s := range c.Profile {
		total += time.Duration(s.For)
	}
	minute := min(max(total/10/least*least, least), time.Minute)
	for int64(len(c.Links))*int64(total/minute) > mostMinutes {
		minute *= 2
	}
	return minute
}

// reasons returns the controller's reasons. Their order is that of minute.reasons.
func reasons() [reasonCount]challenge.Reason {
	return [...]challenge.Reason{challenge.Paced, challenge.Raised, challenge.Saturated, challenge.Copies, challenge.Ceiling,
		challenge.Failing, challenge.LargeFile, challenge.Queued, challenge.Idle, challenge.Stopped}
}

// Indexes of reasons in minute.reasons.
const (
	paced = iota
	raised
	saturated
	inFlight
	ceiling
	failing
	largeFile
	queued
	idle
	stopped
	reasonCount
)

// A minute sums the records of one link. Pauses are not in it: the sums are of the time with a
// target above 0. Sums over time are in seconds times the quantity.
type minute struct {
	seconds                 float32
	stage                   int32   // of the profile, at its end
	wanted, moved           float64 // bytes
	wrong                   float64 // bytes of complete copies that failed their verification; not in moved
	low, high               float32 // smallest and largest target, bytes/s
	flight, queued, allowed float32
	runs                    float32 // copies in flight that the service had begun; with injection by weir itself all of them
	started, done, failed   int32
	reasons                 [reasonCount]float32 // seconds
	part                    [parts]partSum
	moving                  float32          // seconds between first and last byte of copies, where they lie in the minute
	ended                   int32            // copies that arrived and whose phases are known, by their end
	queue, transfer, verify float32          // sums of their seconds
	arrived                 int32            // copies that arrived, by their end
	whole                   float32          // sum of their seconds, by weir's clock
	at                      [ends]int32      // failed copies by end, by records of transfers
	expired, denied         int32            // failed copies
	classes                 [3]storage.Class // last class of failure by end
	lost                    int32            // copies that failed since the site did not answer
	unproven                int32            // copies that failed after their last byte, before they were verified
	full                    int32            // copies that failed at the destination's disk
}

// A partSum sums a part of a minute.
type partSum struct{ seconds, moved, running float32 }

// Indexes of ends in minute.at.
const (
	atSource = iota
	atDest
	atUnknown
	ends
)

// leastHeld is the share of the time of a minute from which the other reasons than paced explain it.
const leastHeld = 0.1

// share returns the share of the time in which the controller had a reason, of the time in which
// the link was not paced: while it was, it had its target. If it was nearly always, paced has the
// whole time.
func (m *minute) share(reason int) float64 {
	held := m.seconds - m.reasons[paced]
	switch {
	case held < leastHeld*m.seconds && reason == paced:
		return stats.Ratio(float64(m.reasons[paced]), float64(m.seconds))
	case held < leastHeld*m.seconds || reason == paced:
		return 0
	}
	return stats.Ratio(float64(m.reasons[reason]), float64(held))
}

// ratio returns achieved over target.
func (m *minute) ratio() float64 { return stats.Ratio(m.moved, m.wanted) }

// missing returns the bytes that the link is short of its target.
func (m *minute) missing() float64 { return max(0, m.wanted-m.moved) }

// judged reports whether the minute was measured long enough to be judged.
func (m *minute) judged(length float64) bool {
	return float64(m.seconds) >= leastSpan*length && m.wanted > 0 && m.share(stopped) < 0.5
}

// below reports whether the minute has too few bytes.
func (m *minute) below() bool { return m.moved < leastRatio*m.wanted }

func (m *minute) mean(sum float32) float64 { return stats.Ratio(float64(sum), float64(m.seconds)) }

// running returns the mean number of copies that the service had begun.
func (m *minute) running() float64 { return m.mean(m.runs) }

// perCopy returns the rate of a running copy in bytes/s, 0 if hardly any copy runs.
func (m *minute) perCopy() float64 {
	if m.running() < 0.3 {
		return 0
	}
	return stats.Ratio(m.moved, float64(m.seconds)*m.running())
}

// waiting returns the share of the time of copies that passed before their first byte.
func (m *minute) waiting() float64 { return m.phase(m.queue) }

// verifying returns the share of the time of copies that passed after their last byte.
func (m *minute) verifying() float64 { return m.phase(m.verify) }

func (m *minute) phase(sum float32) float64 {
	return stats.Ratio(float64(sum), float64(m.queue)+float64(m.transfer)+float64(m.verify))
}

// failures returns the number of failed copies by records of transfers.
func (m *minute) failures() int32 { return m.at[atSource] + m.at[atDest] + m.at[atUnknown] }

// failedShare returns the share of failed copies in those that ended.
func (m *minute) failedShare() float64 {
	n := max(m.failures(), m.failed)
	return stats.Ratio(float64(n), float64(n+m.done))
}

// add adds the part of a line that lies in the minute: share of it, in the part with that index.
func (m *minute) add(l *line, share float64, part int) {
	seconds := share * l.Seconds
	if m.seconds == 0 {
		m.low, m.high = float32(l.Target), float32(l.Target)
	}
	m.low, m.high = min(m.low, float32(l.Target)), max(m.high, float32(l.Target))
	m.seconds += float32(seconds)
	m.stage = int32(l.Stage)
	m.wanted += l.Target * seconds
	m.moved += float64(l.Moved) * share
	m.flight += float32(l.Flight * seconds)
	m.queued += float32(l.Queued * seconds)
	m.runs += float32(l.running * seconds)
	m.allowed += float32(float64(l.Allowed) * seconds)
	m.reasons[l.reason] += float32(seconds)
	p := &m.part[part]
	p.seconds += float32(seconds)
	p.moved += float32(float64(l.Moved) * share)
	p.running += float32(l.running * seconds)
}

// reasonIndex returns the index of a reason, and that of paced for an unknown one.
func reasonIndex(r challenge.Reason) int {
	all := reasons()
	return max(0, slices.Index(all[:], r))
}
