package queue

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/digest"
	"weir/internal/say"
	"weir/transfer"
)

// A state is the state of a file in the database. Five states are transfer.Queued: ready files wait
// for a lease, resting files for the end of a pause, others for tape systems or another file.
type state int64

const (
	ready state = iota + 1
	resting
	leased
	done
	skipped
	failed
	dropped
	staging   // its source is being brought online
	archiving // it has arrived, and waits to be on tape
	held      // it waits for another file of its job
)

// shown returns the state in the API. A ready file is shown as NoSource while no site that has it
// is up.
func (s state) shown() transfer.State {
	return [...]transfer.State{"", transfer.Queued, transfer.Queued, transfer.Leased, transfer.Done, transfer.Skipped, transfer.FileFailed,
		transfer.FileCancelled, transfer.Queued, transfer.Queued, transfer.Queued}[s]
}

// A file is a file of a request.
type file struct {
	id, request    int64
	in             int64 // the catalog's id; 0: no longer in the catalog; less than 0: a hash of the destination of a URL pair
	name           string
	size           int64 // -1: unknown until it has arrived
	adler          string
	state          state
	sourceGroup    int64
	epoch          int64 // of the latest lease
	tries          int   // attempts that count against the request's limit
	pauses         int   // attempts that do not count
	due            time.Time
	source         string
	mode           transfer.Mode
	fault          transfer.ErrorClass
	reason         string
	ended          time.Time
	moved          int64
	sourceFailures sourceFailures // the failures of its sources
	again          bool           // bad replicas are tried once more: there is no other, or a user requested it
}

// fail ends a file that is not at its destination. Every such file has a reason.
func (f *file) fail(s state, fault transfer.ErrorClass, reason string, now time.Time) {
	if reason == "" {
		reason = "the reason is not known (" + string(fault) + ")"
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
	if f.size < 0 {
		f.size = o.Size
	}
}

// terms are the conditions of a request for its files.
type terms struct {
	stopped   string // the reason why the request was cancelled or has expired: no file may begin any more; "": not stopped
	tries     int
	unchecked bool
	delay     time.Duration // between tries; 0: computed by pause
}

// pauseFactor bounds the number of attempts that do not count as tries: pauses because of throttled
// servers, unreachable servers, full destinations and stopped movers, and bad sources.
const pauseFactor = 20

// applyOutcome returns a leased file after an attempt, and the outcome to be stored. others is true
// if there is another source for the file that is not known to be bad, random is in [0, 1).
func applyOutcome(f file, o transfer.Outcome, t terms, others bool, now time.Time, random float64) (file, transfer.Outcome) {
	o = validated(f, o, t)
	f.fault, f.reason, f.moved, f.due = o.Fault, o.Reason, o.Moved, time.Time{}
	switch {
	case o.Fault == "":
		f.arrive(o, now)
		return f, o
	case t.stopped != "":
		reason := t.stopped // the only reason for an attempt that ended because of the stop
		if o.Fault != transfer.RequestCancelled {
			reason = o.Reason + "; " + t.stopped
		}
		f.fail(dropped, o.Fault, reason, now)
		return f, o
	}
	if o.Fault != transfer.MoverStopped && o.Fault != transfer.SiteRefuses { // otherwise the source has not failed
		f.sourceFailures = f.sourceFailures.add(f.source, 1, false)
	}
	final, before := false, f.tries
	switch o.Fault {
	case transfer.Permanent, transfer.Occupied, transfer.Unverified:
		f.tries++
		final = true
	case transfer.SourceBad, transfer.ModeUnsupported: // sources are used up, not tries; of the latter only for this mode
		f.pauses++
		f.sourceFailures = f.sourceFailures.add(f.source, 0, true)
		final = !others
	case transfer.SiteRefuses:
	case transfer.Throttled, transfer.DestFull, transfer.RequestCancelled, transfer.MoverStopped, transfer.Unreachable:
		f.pauses++
	default:
		f.tries++ // the source with the fewest failures is next, but this source stays: there may be no other
	}
	switch {
	case final || f.tries >= t.tries || f.pauses >= t.tries*pauseFactor:
		f.fail(failed, o.Fault, o.Reason, now)
	case o.Fault == transfer.SourceBad, o.Fault == transfer.ModeUnsupported, o.Fault == transfer.MoverStopped:
		f.state = ready // the next source, or mover, is not to blame
	case t.delay > 0 && f.tries > before:
		f.state, f.due = resting, now.Add(t.delay)
	default:
		f.state, f.due = resting, now.Add(pause(o, max(f.tries, f.pauses), random))
	}
	return f, o
}

// validated checks a reported success.
func validated(f file, o transfer.Outcome, t terms) transfer.Outcome {
	o.Adler = adler(o.Adler)
	if o.Fault != "" {
		if o.Reason == "" {
			o.Reason = "no reason was given (" + string(o.Fault) + ")"
		}
		return o
	}
	switch {
	case f.size >= 0 && o.Size != f.size:
		o.Fault, o.Reason = transfer.Checksum, "reported as done with "+sized(o.Size)+" instead of "+sized(f.size)
	case o.Adler != "" && f.adler != "" && o.Adler != adler(f.adler):
		o.Fault, o.Reason = transfer.Checksum, "reported as done with "+digest.Words(o.Adler)+" instead of "+digest.Words(adler(f.adler))
	case !t.unchecked && (!o.Verified || o.Adler == "" && f.adler != ""):
		o.Fault, o.Reason = transfer.Unverified, "reported as done, but its checksum was not read back from the destination"
	}
	return o
}

// adler normalizes an adler32: some servers drop leading zeros or write capitals.
func adler(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" || len(text) >= 8 {
		return text
	}
	return strings.Repeat("0", 8-len(text)) + text
}

// conclude returns the status of a request whose files have all ended. why is the status set by a
// user or by the expiry, or empty.
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

// sourceFailures encodes the number of failures of each source of a file: "A++,B+!"; a source with
// an exclamation mark is not used again.
type sourceFailures string

// A sourceFailure is the entry of one source in sourceFailures.
type sourceFailure struct {
	site     string
	failures int
	avoid    bool
}

func (t sourceFailures) steps() []sourceFailure {
	var all []sourceFailure
	for one := range strings.SplitSeq(string(t), ",") {
		if site := strings.TrimRight(one, "+!"); site != "" {
			all = append(all, sourceFailure{site, strings.Count(one, "+"), strings.HasSuffix(one, "!")})
		}
	}
	return all
}

// counts returns the failures of each source.
func (t sourceFailures) counts() map[string]int {
	m := map[string]int{}
	for _, s := range t.steps() {
		m[s.site] = s.failures
	}
	return m
}

// avoids reports whether a source is not to be used again.
func (t sourceFailures) avoids(site string) bool {
	return slices.ContainsFunc(t.steps(), func(s sourceFailure) bool { return s.avoid && s.site == site })
}

// add adds failures of a site; with avoid the site is not used again.
func (t sourceFailures) add(site string, failures int, avoid bool) sourceFailures {
	if site == "" || strings.ContainsAny(site, ",+!") {
		return t
	}
	all := t.steps()
	i, found := slices.BinarySearchFunc(all, site, func(s sourceFailure, site string) int { return strings.Compare(s.site, site) })
	if !found {
		all = slices.Insert(all, i, sourceFailure{site: site})
	}
	all[i].failures = min(all[i].failures+failures, 9)
	all[i].avoid = all[i].avoid || avoid
	var text []string
	for _, s := range all {
		mark := strings.Repeat("+", s.failures)
		if s.avoid {
			mark += "!"
		}
		text = append(text, s.site+mark)
	}
	return sourceFailures(strings.Join(text, ","))
}

// pause returns the waiting time of a file after a failed attempt, its n-th: a random part of a
// bound that doubles, so that files that failed together are not retried together ("full jitter",
// aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter). If a server sent a
// Retry-After, the file is not retried before that time, and not all files at once.
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
	case transfer.Unreachable: // it may be back soon, and a retry costs little
		bound = time.Minute
	case transfer.SiteRefuses: // the dispatcher decides when the site is tried again
		return 2*time.Second + time.Duration(random*float64(time.Second))
	case transfer.LeaseLost, transfer.Checksum, transfer.RequestCancelled:
		base, bound = time.Second, time.Minute
	}
	for range min(max(n-1, 0), 16) {
		base = min(2*base, bound)
	}
	return time.Duration(random * float64(base))
}

// sized formats a size in bytes.
func sized(n int64) string {
	return strconv.FormatInt(n, 10) + " " + say.Either(int(n), "byte", "bytes")
}
