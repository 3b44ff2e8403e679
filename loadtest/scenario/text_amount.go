package scenario

import (
	"fmt"
	"math"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/link"
	"weir/loadtest/workload"
)

// filesText describes the source of the files, and returns the average number of bytes of one read,
// 0 if it cannot be computed.
func (p *Plan) filesText() (string, float64) {
	f := p.Files
	switch {
	case f.Make != nil:
		mean := f.Make.Size.Mean()
		keep := "removed after the run"
		if f.Make.Keep {
			keep = "kept"
		}
		return fmt.Sprintf("%s of %s made before the run (%s in all), %s", say.Plural(f.Make.Count, "file"), f.Make.Size.Text(),
			unit.Bytes(mean*float64(f.Make.Count)), keep), mean
	case f.List != "":
		l, err := ReadList(f.List, p.FilesAt())
		if err != nil {
			return "listed in " + f.List + ", which cannot be read now", 0
		}
		files, err := f.Select(l.Files, p.Seed)
		if err != nil {
			return err.Error(), 0
		}
		text := say.Plural(len(l.Files), "file") + " listed in " + f.List + f.selectionText()
		if len(files) < len(l.Files) {
			text += fmt.Sprintf(" (%s)", say.Plural(len(files), "file"))
		}
		if l.Repeated > 0 {
			text += fmt.Sprintf(" (%s left out as repeated)", say.Plural(l.Repeated, "line"))
		}
		return text, listMean(files)
	case f.Listing:
		return "whatever a listing of the target shows, or the target itself if it is a file" + f.selectionText(), 0
	}
	return "none needed", 0
}

func listMean(files []workload.File) float64 {
	sum := 0.0
	for _, f := range files {
		if f.Size < 0 {
			return 0
		}
		sum += float64(f.Size)
	}
	return sum / float64(len(files))
}

// amountText estimates operations and bytes: for open load from its rates, for closed load per
// operation, because the number of operations is a result of the run.
func (p *Plan) amountText(mean float64) string {
	if p.Work.Kind == workload.WriteWork {
		mean = p.Work.Size.Mean()
	}
	if part := p.Work.Part; part != nil {
		mean = float64(part.Size) * float64(part.Count)
	}
	if len(p.Populations) > 0 {
		return "what the run finds out"
	}
	moves := p.Work.Kind == workload.ReadWork || p.Work.Kind == workload.WriteWork || p.Work.Kind == workload.CopyWork
	if p.Work.Kind == workload.JobWork {
		return p.jobsAmount(mean)
	}
	if p.Model == OpenModel {
		n := p.arrivals()
		text := "about " + unit.Count(math.Round(n)) + " operations"
		if moves && mean > 0 {
			text += ", " + unit.Bytes(n*mean)
		}
		return text
	}
	if moves && mean > 0 {
		return unit.Bytes(mean) + " each operation; how many there will be is what the run finds out"
	}
	return "what the run finds out"
}

// jobsAmount estimates the bytes that all jobs transfer, if the number of jobs is known.
func (p *Plan) jobsAmount(mean float64) string {
	each := float64(p.Work.Job.Takes().Bytes)
	if p.Work.Job.Access == workload.Staged {
		each = max(mean, each)
	}
	n := math.Round(p.arrivals()) + float64(p.Jobs())
	switch {
	case n == 0:
		return unit.Bytes(each) + " each job; how many there will be is what the run finds out"
	case p.Model == OpenModel:
		return fmt.Sprintf("about %s jobs, %s", unit.Count(n), unit.Bytes(n*each))
	}
	return fmt.Sprintf("%s jobs, %s", unit.Count(n), unit.Bytes(n*each))
}

// arrivals returns the number of operations that an open plan starts.
func (p *Plan) arrivals() float64 {
	n, last := 0.0, unit.Rate(0)
	for _, s := range p.Steps {
		n += float64(s.Rate+last) / 2 * time.Duration(s.Ramp).Seconds()
		n += float64(s.Rate) * time.Duration(s.Warmup+s.Duration).Seconds()
		last = s.Rate
	}
	return n
}

func (p *Plan) stopText() string {
	var out []string
	s := p.Stop
	if s.Time > 0 {
		out = append(out, "after "+s.Time.String())
	}
	if s.Count > 0 {
		out = append(out, "after "+say.Plural(int(s.Count), "operation"))
	}
	if s.Bytes > 0 {
		out = append(out, "after "+s.Bytes.String())
	}
	if s.ErrorRatio > 0 {
		out = append(out, "when "+s.ErrorRatio.String()+" of the last operations failed")
	}
	return strings.Join(out, ", or ")
}

func spanText(s workload.Span) string {
	switch {
	case len(s.Uniform) == 2:
		return fmt.Sprintf("%v to %v", s.Uniform[0], s.Uniform[1])
	case s.Exponential > 0:
		return "exponential with mean " + s.Exponential.String()
	}
	return s.Fixed.String()
}

// jobText describes the work of a job.
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

// oneJob describes the reads and the duration of a single job, as far as they can be computed
// before the run.
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
	if files, bytes := j.Output(t.Bytes); files > 0 {
		text += fmt.Sprintf(", writes %s in %s", unit.Bytes(float64(bytes)), say.Plural(files, "file"))
	}
	if j.Access != workload.Staged {
		text += fmt.Sprintf("; each millisecond that an answer takes is %s more", lasting(float64(t.Requests)/1000))
		if j.Ahead > 0 {
			text += ", of which computing hides what it is longer than"
		}
	}
	for _, l := range link.Sites(links) {
		path := link.Path(links, l)
		text += fmt.Sprintf("; over %s it takes at least %s", strings.TrimSpace("link "+l.Name), lasting(overLink(j, &path)))
	}
	return text
}

// overLink returns the seconds that a job takes over a link without other traffic, to a service
// that responds at once.
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

// lasting formats a time that may be longer than the maximum of a Duration.
func lasting(seconds float64) string {
	const century = 100 * 365 * 24 * 3600
	if seconds >= century {
		return "a century or longer"
	}
	return unit.Duration(time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)).String()
}
