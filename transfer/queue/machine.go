package queue

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/say"
	"weir/transfer"
)

// A state is what a file's state is called in the database. Two of them are
// transfer.Queued: ready files wait for their turn, resting ones for their time.
type state int64

const (
	ready state = iota + 1
	resting
	leased
	done
	skipped
	failed
	dropped
)

// shown is what the states are called elsewhere. A ready file is shown as
// NoSource while no site that has it is up.
func (s state) shown() transfer.State {
	switch s {
	case leased:
		return transfer.Leased
	case done:
		return transfer.Done
	case skipped:
		return transfer.Skipped
	case failed:
		return transfer.FileFailed
	case dropped:
		return transfer.FileCancelled
	default:
		return transfer.Queued
	}
}

// A file is a file of a request.
type file struct {
	id, request    int64
	in             int64 // the catalog's id; 0: the catalog has none
	name           string
	size           int64
	adler          string
	state          state
	sourceGroup    int64
	epoch          int64 // of the latest lease
	tries          int   // that count against the request's limit
	pauses         int   // attempts that do not
	due            time.Time
	source         string
	mode           transfer.Mode
	fault          transfer.ErrorClass
	reason         string
	ended          time.Time
	moved          int64
	sourceFailures sourceFailures // what its sources did wrong
	again          bool           // replicas that are known to be bad are asked once more: nothing else is left, or somebody asked for it
}

// lose ends a file that is not at its destination; every such end is this one, so
// that none is without a reason.
func (f *file) lose(s state, fault transfer.ErrorClass, reason string, now time.Time) {
	if reason == "" {
		reason = "it is not known why (" + string(fault) + ")"
	}
	f.state, f.ended, f.due, f.fault, f.reason = s, now, time.Time{}, fault, reason
}

// arrive ends a file that is at its destination.
func (f *file) arrive(o transfer.Outcome, now time.Time) {
	f.state, f.ended, f.reason = done, now, ""
	if o.Existed {
		f.state, f.reason = skipped, "it was there already"
	}
	if f.adler == "" {
		f.adler = o.Adler
	}
}

// Terms are what a request demands of its files.
type terms struct {
	stopped   string // cancelled or expired, in words: nothing is begun any more; "": neither
	tries     int
	unchecked bool
}

// pauseFactor bounds attempts that do not count as tries: waits for throttled
// servers, absent ones, full destinations and movers that were stopped, and bad
// sources.
const pauseFactor = 20

// applyOutcome is what an attempt makes of a leased file, and what is to be kept of the
// attempt's outcome. others tells whether there is another source for the file
// that is not known to be bad, random is in [0, 1).
func applyOutcome(f file, o transfer.Outcome, t terms, others bool, now time.Time, random float64) (file, transfer.Outcome) {
	o = judged(f, o, t)
	f.fault, f.reason, f.moved, f.due = o.Fault, o.Reason, o.Moved, time.Time{}
	switch {
	case o.Fault == "":
		f.arrive(o, now)
		return f, o
	case t.stopped != "":
		reason := t.stopped // which is all that there is to say of an attempt that ended for it
		if o.Fault != transfer.RequestCancelled {
			reason = o.Reason + "; " + t.stopped
		}
		f.lose(dropped, o.Fault, reason, now)
		return f, o
	}
	if o.Fault != transfer.MoverStopped && o.Fault != transfer.SiteRefuses { // else nobody has failed this file
		f.sourceFailures = f.sourceFailures.add(f.source, 1, false)
	}
	final := false
	switch o.Fault {
	case transfer.Permanent, transfer.Occupied, transfer.Unverified:
		f.tries++
		final = true
	case transfer.SourceBad: // sources are used up, not tries
		f.pauses++
		f.sourceFailures = f.sourceFailures.add(f.source, 0, true)
		final = !others
	case transfer.ModeUnsupported: // this source, this way: the source is good
		f.pauses++
		f.sourceFailures = f.sourceFailures.add(f.source, 0, true)
		final = !others
	case transfer.SiteRefuses:
	case transfer.Throttled, transfer.DestFull, transfer.RequestCancelled, transfer.MoverStopped, transfer.Unreachable:
		f.pauses++
	default:
		f.tries++ // the source that failed this file least is next, but this one is not given up: it may be all there is
	}
	switch {
	case final || f.tries >= t.tries || f.pauses >= t.tries*pauseFactor:
		f.lose(failed, o.Fault, o.Reason, now)
	case o.Fault == transfer.SourceBad, o.Fault == transfer.ModeUnsupported, o.Fault == transfer.MoverStopped:
		f.state = ready // the next source, or mover, has done nothing wrong
	default:
		f.state, f.due = resting, now.Add(pause(o, max(f.tries, f.pauses), random))
	}
	return f, o
}

// judged takes nobody's word for a success that is none.
func judged(f file, o transfer.Outcome, t terms) transfer.Outcome {
	o.Adler = adler(o.Adler)
	if o.Fault != "" {
		if o.Reason == "" {
			o.Reason = "no reason was given (" + string(o.Fault) + ")"
		}
		return o
	}
	switch {
	case o.Size != f.size:
		o.Fault, o.Reason = transfer.Checksum, "reported as done with "+sized(o.Size)+" instead of "+sized(f.size)
	case o.Adler != "" && f.adler != "" && o.Adler != adler(f.adler):
		o.Fault, o.Reason = transfer.Checksum, "reported as done with adler32 "+o.Adler+" instead of "+adler(f.adler)
	case !t.unchecked && (!o.Verified || o.Adler == "" && f.adler != ""):
		o.Fault, o.Reason = transfer.Unverified, "reported as done, but its checksum was not read back from the destination"
	}
	return o
}

// adler makes texts of the same checksum the same: some servers drop leading
// zeros or write capitals.
func adler(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" || len(text) >= 8 {
		return text
	}
	return strings.Repeat("0", 8-len(text)) + text
}

// conclude is what a request comes to when none of its files can change any
// more, and why is who ended it, if somebody did.
func conclude(files, there int64, why transfer.Status) transfer.Status {
	switch {
	case files > 0 && there == files:
		return transfer.Completed
	case why != "":
		return why
	case there == 0:
		return transfer.Failed
	default:
		return transfer.Partial
	}
}

// sourceFailures says how often each source has failed a file: "A++,B+!"; the latter is
// not asked again.
type sourceFailures string

// A step is what a sourceFailures says of one source.
type step struct {
	site     string
	failures int
	avoid    bool
}

func (t sourceFailures) steps() []step {
	var all []step
	for one := range strings.SplitSeq(string(t), ",") {
		if site := strings.TrimRight(one, "+!"); site != "" {
			all = append(all, step{site, strings.Count(one, "+"), strings.HasSuffix(one, "!")})
		}
	}
	return all
}

// counts are the failures of each source.
func (t sourceFailures) counts() map[string]int {
	m := map[string]int{}
	for _, s := range t.steps() {
		m[s.site] = s.failures
	}
	return m
}

// avoided are the sources that are not asked again.
func (t sourceFailures) avoided() []string {
	var all []string
	for _, s := range t.steps() {
		if s.avoid {
			all = append(all, s.site)
		}
	}
	return all
}

// add counts a failure of a site, and with avoid has it not asked again.
func (t sourceFailures) add(site string, failures int, avoid bool) sourceFailures {
	if site == "" || strings.ContainsAny(site, ",+!") {
		return t
	}
	steps := t.steps()
	i := slices.IndexFunc(steps, func(s step) bool { return s.site == site })
	if i < 0 {
		i = len(steps)
		steps = append(steps, step{site: site})
	}
	steps[i].failures = min(steps[i].failures+failures, 9)
	steps[i].avoid = steps[i].avoid || avoid
	slices.SortFunc(steps, func(a, b step) int { return strings.Compare(a.site, b.site) })
	var all []string
	for _, s := range steps {
		one := s.site + strings.Repeat("+", s.failures)
		if s.avoid {
			one += "!"
		}
		all = append(all, one)
	}
	return sourceFailures(strings.Join(all, ","))
}

// pause is how long a file waits after a failed attempt, its n-th: a random part
// of a bound that doubles, so that files that failed together do not come again
// together ("full jitter", aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter).
// A server that said when to come is not asked before, and not by all at once.
func pause(o transfer.Outcome, n int, random float64) time.Duration {
	base, bound := 2*time.Second, 5*time.Minute
	switch o.Fault {
	case transfer.Throttled:
		if o.After > 0 {
			after := min(o.After, 24*time.Hour)
			return after + time.Duration(random*float64(after/10+time.Second))
		}
		base, bound = 10*time.Second, 15*time.Minute
	case transfer.DestFull:
		base, bound = 30*time.Second, 30*time.Minute
	case transfer.Denied:
		base, bound = 10*time.Second, 10*time.Minute
	case transfer.Unreachable: // it may be back soon, and asking costs little
		bound = time.Minute
	case transfer.SiteRefuses: // who gives out files knows when the site is tried again
		return 2*time.Second + time.Duration(random*float64(time.Second))
	case transfer.LeaseLost, transfer.Checksum, transfer.RequestCancelled:
		base, bound = time.Second, time.Minute
	}
	for range min(max(n-1, 0), 16) {
		base = min(2*base, bound)
	}
	return time.Duration(random * float64(base))
}

// sized is a size for people, to the byte.
func sized(n int64) string {
	return strconv.FormatInt(n, 10) + " " + say.Either(int(n), "byte", "bytes")
}
