package scenario

import (
	"fmt"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
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
func oneJob(j *workload.Job) string {
	t := j.Takes()
	requests := say.Plural(int(t.Requests), "request")
	text := fmt.Sprintf("reads %s in %s", unit.Bytes(float64(t.Bytes)), requests)
	if j.Access == workload.Staged {
		text = fmt.Sprintf("copies a file, reads %s of it in %s", unit.Bytes(float64(t.Bytes)), requests)
	}
	if t.Compute > 0 {
		text += ", computes for " + unit.Duration(t.Compute.Round(time.Millisecond)).String()
	}
	if j.Access == workload.Staged {
		return text
	}
	wait := unit.Duration(time.Duration(t.Requests) * time.Millisecond)
	if j.Ahead > 0 {
		return fmt.Sprintf("%s; each millisecond that an answer takes is %v more, of which computing hides what it is longer than", text, wait)
	}
	return fmt.Sprintf("%s; each millisecond that an answer takes is %v more", text, wait)
}
