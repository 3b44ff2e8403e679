package report

import (
	"cmp"
	"fmt"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
)

// workerChapter describes the outcome of the workers of a run on many machines.
func workerChapter(f *analysis.Findings) chapter {
	if len(f.Workers) == 0 {
		return chapter{}
	}
	c := chapter{ID: "workers", Title: "Workers", Lead: workerWords(f)}
	t := section{ID: "workers", Title: "Each worker",
		Note: "Times since the load began. A clock's offset is how far it was ahead of the controller's when the worker registered; " +
			"its measurements are in the controller's time.",
		table:    table{Head: heads("<worker", "<machine", "<job", "came", "left", "clock ahead", "clients", "seconds reported")},
		PageOnly: true}
	staged := len(scratches(f)) > 0
	if staged {
		t.Head = append(t.Head, heads("<copies files to")...)
	}
	t.Head = append(t.Head, heads("<note")...)
	for i := range f.Workers {
		w := &f.Workers[i]
		remark := ""
		if w.State != measure.Came && w.State != measure.Left {
			remark = cmp.Or(w.Why, w.State)
			point := "worker " + w.Name + ": " + remark
			if strings.HasPrefix(remark, "worker ") {
				point = remark
			}
			c.Points = append(c.Points, say.Plain(point))
		}
		cells := []string{w.Name, w.Host, w.Job, moment(w.Came), moment(w.Gone), offsetText(w), fmt.Sprint(w.Clients), fmt.Sprint(w.Reported)}
		if staged {
			cells = append(cells, scratchText(w.Scratch))
		}
		t.row(false, append(cells, remark)...)
	}
	const most = 20
	if n := len(c.Points) - most; n > 0 {
		c.Points = append(c.Points[:most], fmt.Sprintf("and %d more", n))
	}
	c.Parts = filled(t)
	return c
}

// scratchText names a worker's scratch disk: "/tmp on vda1".
func scratchText(s *measure.Scratch) string {
	if s == nil {
		return "-"
	}
	return say.Plain(s.Folder) + " on " + say.Plain(cmp.Or(s.Device, s.Filesystem, "an unknown disk"))
}

// workerWords returns the number of workers, the number of machines, and the result of the check of
// the workers.
func workerWords(f *analysis.Findings) string {
	hosts := map[string]bool{}
	for i := range f.Workers {
		if w := &f.Workers[i]; w.Came != nil && w.Host != "" {
			hosts[w.Host] = true
		}
	}
	text := say.Plural(len(f.Workers), "worker")
	if len(hosts) > 0 {
		text += " on " + say.Plural(len(hosts), "machine")
	}
	for _, c := range f.Validity.Checks {
		if c.Name == "workers" {
			text += ": " + say.Plain(c.Detail)
		}
	}
	return text + "."
}

// moment formats a time since the load began.
func moment(at *float64) string {
	if at != nil && *at <= 0 {
		return "before"
	}
	return orDash(at, unit.Seconds)
}

// offsetText formats an offset with its uncertainty.
func offsetText(w *analysis.WorkerFigure) string {
	if w.Offset == nil || w.Doubt == nil {
		return "not compared"
	}
	sign := ""
	if *w.Offset < 0 {
		sign = "-"
	}
	return sign + unit.Seconds(max(*w.Offset, -*w.Offset)) + " ± " + unit.Seconds(*w.Doubt)
}
