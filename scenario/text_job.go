package scenario

import (
	"fmt"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/link"
	"weir/workload"
)

// jobText says in words what a job does.
func jobText(j *workload.Job) string {
	parts := []string{j.Access}
	events := fmt.Sprintf("%s of %v", say.Plural(j.Events, "event"), j.Event)
	if j.Skim < 1 {
		events = fmt.Sprintf("%v of %s", j.Skim, events)
	}
	if j.Slim < 1 {
		events += fmt.Sprintf(", %v of each", j.Slim)
	}
	how := fmt.Sprintf("pages of %v", j.Page)
	if j.Vector > 1 {
		how = fmt.Sprintf("vectors of %d %s", j.Vector, how)
	} else if j.Ahead > 0 {
		how = fmt.Sprintf("requests of up to %v", j.Ahead)
	}
	parts = append(parts, events, how)
	if j.Ahead > 0 {
		parts = append(parts, "one request ahead")
	}
	switch {
	case j.Burn:
		parts = append(parts, spanText(j.Compute)+" of CPU time burned on each event")
	case j.Compute.Mean() > 0:
		parts = append(parts, spanText(j.Compute)+" of computing slept on each event")
	default:
		parts = append(parts, "no computing")
	}
	return strings.Join(parts, ", ")
}

// oneJob says what a single job reads and takes, as far as that can be known
// before.
func oneJob(j *workload.Job, links []link.Named) string {
	t := j.Takes()
	requests := say.Plural(int(t.Requests), "request")
	text := fmt.Sprintf("reads %s in %s", unit.Bytes(float64(t.Bytes)), requests)
	if j.Access == workload.Staged {
		text = fmt.Sprintf("copies a file, reads %s of it in %s", unit.Bytes(float64(t.Bytes)), requests)
	}
	if t.Compute > 0 {
		text += ", computes for " + lasting(t.Compute.Seconds())
	}
	if j.Access != workload.Staged {
		text += fmt.Sprintf("; each millisecond that an answer takes is %s more", lasting(float64(t.Requests)/1000))
		if j.Ahead > 0 {
			text += ", of which computing hides what it is longer than"
		}
	}
	for _, l := range links {
		text += fmt.Sprintf("; over %s it takes at least %s", strings.TrimSpace("link "+l.Name), lasting(overLink(j, &l.Spec)))
	}
	return text
}

// overLink returns the seconds that a job takes over a link that it has for
// itself, to a service that takes no time.
func overLink(j *workload.Job, s *link.Spec) float64 {
	t := j.Takes()
	trips, bytes := float64(t.Requests), float64(t.Bytes)
	if j.Access == workload.Staged {
		trips, bytes = 1, float64(j.Events)*float64(j.Event)
	}
	waits := trips * time.Duration(s.RTT).Seconds()
	if s.Rate > 0 {
		waits += 8 * bytes / float64(s.Rate)
	}
	if j.Ahead > 0 && j.Access != workload.Staged {
		return max(waits, t.Compute.Seconds())
	}
	return waits + t.Compute.Seconds()
}

// lasting writes a time that may be longer than a Duration can be.
func lasting(seconds float64) string {
	const century = 100 * 365 * 24 * 3600
	if seconds >= century {
		return "a century or longer"
	}
	return unit.Duration(time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)).String()
}
