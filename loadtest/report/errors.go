package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/storage"
)

// Bounds of the examples of errors that are shown.
const (
	mostExamples  = 100
	mostErrorText = 500
)

// meaning returns the meaning of failures of a class, and possible causes to look at.
func meaning(class storage.Class) (means, look string) {
	switch class {
	case storage.Refused:
		return "No process listened at the address, or the network had no route to it.",
			"Did the service run all the time? Was its listen queue full (listen drops of its host)? Firewalls, names and addresses."
	case storage.Timeout:
		return "The operation made no progress within the scenario's timeout.",
			"Threads and queues of the service, its disks at that time, lost packets (retransmits). If such times are usual, raise workload.timeout."
	case storage.Reset:
		return "The connection broke in the middle of the operation.",
			"The server's log at that time: a crash, a restart, a limit on connections; also what lies between, such as balancers."
	case storage.Denied:
		return "Credentials were missing, wrong or not enough.",
			"How long proxies, tokens and tickets were valid, how users are mapped, and the permissions of the paths."
	case storage.NotFound:
		return "There was no such file.",
			"The list of files against what is there; files that were removed meanwhile; data servers whose disks were lost."
	case storage.Busy:
		return "The service answered that it is overloaded, and turned the client away.",
			"Its limits of connections, threads and requests: this is how it protects itself, and where its capacity ends."
	case storage.ServerFailed:
		return "The service answered that it failed: an error of its own, or a full or broken disk.",
			"The server's log at that time, its disks (space, quotas, errors), and the services behind it."
	case storage.Checksummed:
		return "The payload was not what it should be.",
			"This is damage of data. Read the same file by hand from each server that holds it before anything else."
	case storage.Short:
		return "Fewer bytes came than were announced.",
			"The server's log at that time, proxies in between, files that are written while they are read."
	case storage.Sized:
		return "The file does not have the size that the list or the listing of files gives.",
			"The sizes in files.list against those of the service (leave them out, and they are asked for before the run); " +
				"files that were replaced meanwhile."
	case storage.Scratch:
		return "The disk of the client's machine that was to take a file is full, or broken: the service is not to blame.",
			"Space and errors of the scratch folder's disk; fewer jobs at once, smaller files, or another folder (workload.job.scratch)."
	case storage.Other:
		return "Another error; the examples have the words of the service.", "The examples below and the server's log at that time."
	}
	return "", ""
}

// errorChapter describes the failures: by class and step, with their meaning and examples. Every
// run with at least one step has this chapter.
func errorChapter(f *analysis.Findings, s *analysis.Series) chapter {
	if len(f.Curve) == 0 || f.Source == analysis.FromTable {
		return chapter{}
	}
	c := chapter{ID: "failures", Title: "Errors"}
	ended, failed := sums(f)
	by := map[storage.Class]int64{}
	for _, x := range steps(f) {
		for class, n := range x.BadBy() {
			by[class] += n
		}
	}
	c.Brief = "none"
	if failed > 0 {
		c.Brief = unit.Percent(float64(failed)/float64(ended)) + " failed"
	}
	c.Lead = fmt.Sprintf("Failed while load was held: %s of %s", whole(failed), counted(ended, "operation"))
	order := slices.SortedFunc(maps.Keys(by), func(a, b storage.Class) int { return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b)) })
	order = slices.DeleteFunc(order, func(class storage.Class) bool { return by[class] <= 0 })
	c.Parts = filled(meaningSection(order, by, failed), classSection(f, order))
	if s != nil {
		c.Parts = append(c.Parts, filled(exampleSection(f, s))...)
	}
	return c
}

func meaningSection(order []storage.Class, by map[storage.Class]int64, failed int64) section {
	t := section{ID: "classes", Title: "What failed, and what it means", Open: true,
		table: table{Head: heads("<class", "failed", "share", "~what it means", ".~what to look at")}}
	for _, class := range order {
		means, look := meaning(class)
		t.row(false, class.String(), whole(by[class]), unit.Percent(float64(by[class])/float64(failed)), means, look)
	}
	return t
}

// classSection is the table of classes by step.
func classSection(f *analysis.Findings, order []storage.Class) section {
	t := section{ID: "bystep", Title: "Errors step by step", Note: "Failed operations of each class, and their share of all that ended.",
		table: table{Head: heads("<" + f.Load())}, PageOnly: len(f.Curve) > mostTextSteps}
	for _, s := range steps(f) {
		t.Head = append(t.Head, column{Text: loadCell(f, s), detail: inText})
	}
	row := func(best bool, name string, cell func(s *analysis.Step) string) {
		texts := []string{name}
		for _, s := range steps(f) {
			texts = append(texts, cell(s))
		}
		t.row(best, texts...)
	}
	for _, class := range order {
		row(false, class.String(), func(s *analysis.Step) string {
			if n := s.BadBy()[class]; n > 0 {
				return strconv.FormatInt(n, 10)
			}
			return "-"
		})
	}
	if len(order) > 0 {
		row(true, "share of all", func(s *analysis.Step) string { return unit.Percent(s.ErrorRatio) })
	}
	return t
}

// classes lists failures by class, "busy 12, reset 1".
func classes(by map[storage.Class]int64) string {
	var all []string
	for _, class := range slices.Sorted(maps.Keys(by)) {
		all = append(all, fmt.Sprintf("%s %d", class, by[class]))
	}
	return strings.Join(all, ", ")
}

// exampleSection lists the errors whose full text was kept: the first error of each class in each
// step.
func exampleSection(f *analysis.Findings, s *analysis.Series) section {
	t := section{ID: "examples", Title: "Examples", Note: "The first errors of each class in each step, as they were reported.",
		table: table{Head: heads("<class", "<with", "<time", "<server", "<operation", "~text")}}
	found := 0
	for i := range s.Events {
		e := &s.Events[i]
		if e.Class == storage.None {
			continue
		}
		if found++; found > mostExamples {
			continue
		}
		with := fmt.Sprintf("step %d", e.Step)
		if step := stepOf(f, e.Step); step != nil {
			with = at(f, step)
		}
		on := e.On
		if on == "" && e.What != "" {
			on = serverName("")
		}
		t.row(false, e.Class.String(), with, clock(e.Time), on, e.What, cutText(e.Text, mostErrorText))
	}
	if found > mostExamples {
		t.Note += fmt.Sprintf(" %d of %d are shown; events.jsonl has all.", mostExamples, found)
	}
	return t
}

// cutText keeps the first so many characters.
func cutText(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + " ..."
	}
	return text
}
