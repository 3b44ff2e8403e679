package report

import (
	"fmt"
	"strings"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/measure"
)

// workerChapter tells what became of the workers of a run on many machines.
func workerChapter(f *analysis.Findings) chapter {
	if len(f.Workers) == 0 {
		return chapter{}
	}
	c := chapter{ID: "workers", Title: "Workers", Lead: workerWords(f)}
	t := section{ID: "workers", Title: "Each worker", Note: "Times since the load began. A clock's offset is how far it was ahead of the controller's when the worker came; what it measured is told in the controller's time.",
		table: table{Head: heads("<worker", "<machine", "<job", "came", "left", "clock ahead", "clients", "seconds told", "<")}}
	for i := range f.Workers {
		w := &f.Workers[i]
		t.row(false, w.Name, w.Host, w.Job, moment(w.Came), moment(w.Gone), offsetText(w), fmt.Sprint(w.Clients), fmt.Sprint(w.Told), workerRemark(w))
	}
	t.Folded = len(t.Rows) > mostOpenRows
	c.Parts = filled(t)
	return c
}

// workerWords says how many there were, on how many machines, and what the check
// of them says.
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

// moment is a time since the load began.
func moment(at *float64) string {
	switch {
	case at == nil:
		return "-"
	case *at <= 0:
		return "before"
	}
	return unit.Seconds(*at)
}

// offsetText is an offset with its doubt.
func offsetText(w *analysis.WorkerFigure) string {
	if w.Offset == nil || w.Doubt == nil {
		return "not compared"
	}
	text := unit.Seconds(max(*w.Offset, -*w.Offset))
	if *w.Offset < 0 {
		text = "-" + text
	}
	return text + " ± " + unit.Seconds(*w.Doubt)
}

// workerRemark is what is to be known of a worker that did not do all it should.
func workerRemark(w *analysis.WorkerFigure) string {
	if w.State == measure.Came || w.State == measure.Left {
		return ""
	}
	if w.Why == "" {
		return w.State
	}
	return w.Why
}

// mostWorkers is how many workers a terminal shows one by one.
const mostWorkers = 20

// workers writes a line about the workers, and those that something is to be
// known of.
func (p printer) workers(f *analysis.Findings) {
	if len(f.Workers) == 0 {
		return
	}
	p.hanging("workers  ", workerWords(f))
	shown := 0
	for i := range f.Workers {
		w := &f.Workers[i]
		text := workerRemark(w)
		if text == "" {
			continue
		}
		if shown++; shown > mostWorkers {
			p.line("  ...")
			break
		}
		if !strings.HasPrefix(text, "worker ") {
			text = "worker " + w.Name + ": " + text
		}
		p.hanging("  - ", say.Plain(text))
	}
	p.line("")
}
