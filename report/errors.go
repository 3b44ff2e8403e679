package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"weir/analysis"
	"weir/internal/unit"
	"weir/measure"
	"weir/storage"
)

// Bounds of the examples of errors that are shown.
const (
	mostExamples  = 100
	openExamples  = 12 // more are folded
	mostErrorText = 500
)

// meaning says what failures of a class mean, and what to look at.
func meaning(class storage.Class) (means, look string) {
	switch class {
	case storage.Refused:
		return "Nobody listened at the address, or the network had no way there.",
			"Did the service run all the time? Was its listen queue full (listen drops of its host)? Firewalls, names and addresses."
	case storage.Timeout:
		return "Nothing happened for as long as the scenario's timeout allows.",
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
		return "The service said that it has too much to do, and turned the client away.",
			"Its limits of connections, threads and requests: this is how it protects itself, and where its capacity ends."
	case storage.Checksummed:
		return "The payload was not what it should be.",
			"This is damage of data. Read the same file by hand from each server that holds it before anything else."
	case storage.Short:
		return "Fewer bytes came than were announced.",
			"The server's log at that time, proxies in between, files that are written while they are read."
	case storage.Sized:
		return "The file does not have the size that the list or the listing of files gives.",
			"The sizes in files.list against those of the service (leave them out, and they are asked for before the run); files that were replaced meanwhile."
	case storage.Scratch:
		return "The disk of the client's machine that was to take a file is full, or broken: the service is not to blame.",
			"Space and errors of the scratch folder's disk; fewer jobs at once, smaller files, or another folder (workload.job.scratch)."
	case storage.Other:
		return "Something else; the examples tell it in the words of the service.", "The examples below and the server's log at that time."
	}
	return "", ""
}

// errorChapter says what failed: by class and step, with what it means and
// examples. It is there for every run that did anything.
func errorChapter(f *analysis.Findings, s *analysis.Series) chapter {
	if len(f.Curve) == 0 || f.Source == analysis.FromTable {
		return chapter{}
	}
	c := chapter{ID: "failures", Title: "Errors"}
	var done, failed int64
	sums := map[storage.Class]int64{}
	for i := range f.Curve {
		done, failed = done+f.Curve[i].Done, failed+f.Curve[i].Errors
		for class, n := range f.Curve[i].ErrorsBy {
			sums[class] += n
		}
	}
	if failed == 0 {
		c.Lead = fmt.Sprintf("No operation failed while load was held; %s ended well.", count(done, "operation"))
	} else {
		c.Lead = fmt.Sprintf("%s of %s failed while load was held, %s.", unit.Count(float64(failed)), count(done+failed, "operation"), unit.Percent(float64(failed)/float64(done+failed)))
	}
	var classes []storage.Class
	for class, n := range sums {
		if n > 0 {
			classes = append(classes, class)
		}
	}
	slices.SortFunc(classes, func(a, b storage.Class) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	c.Parts = filled(meaningSection(classes, sums, failed), classSection(f, classes))
	if s != nil {
		c.Parts = append(c.Parts, filled(exampleSection(f, s))...)
	}
	return c
}

func meaningSection(classes []storage.Class, sums map[storage.Class]int64, failed int64) section {
	t := section{ID: "classes", Title: "What failed, and what it means", table: table{Head: heads("<class", "failed", "share", "~what it means", "~what to look at")}}
	for _, class := range classes {
		means, look := meaning(class)
		t.row(false, class.String(), unit.Count(float64(sums[class])), unit.Percent(float64(sums[class])/float64(failed)), means, look)
	}
	return t
}

// classSection is the table of classes by step.
func classSection(f *analysis.Findings, classes []storage.Class) section {
	name, _ := load(f)
	t := section{ID: "bystep", Title: "Errors step by step", Note: "Failed operations of each class, and their share of all that ended.", table: table{Head: heads("<" + name)}}
	for i := range f.Curve {
		t.Head = append(t.Head, column{Text: loadCell(f, &f.Curve[i])})
	}
	for _, class := range classes {
		texts := []string{class.String()}
		for i := range f.Curve {
			text := "-"
			if n := f.Curve[i].ErrorsBy[class]; n > 0 {
				text = strconv.FormatInt(n, 10)
			}
			texts = append(texts, text)
		}
		t.row(false, texts...)
	}
	if len(classes) > 0 {
		texts := []string{"share of all"}
		for i := range f.Curve {
			texts = append(texts, unit.Percent(f.Curve[i].ErrorRatio))
		}
		t.row(true, texts...)
	}
	return t
}

// exampleSection lists the errors that were kept whole: the first of each class
// in each step.
func exampleSection(f *analysis.Findings, s *analysis.Series) section {
	t := section{ID: "examples", Title: "Examples", Note: "The first errors of each class in each step, as they were told.",
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
		t.row(false, e.Class.String(), with, clock(e.Time), failedOn(e), e.What, cutText(e.Text, mostErrorText))
	}
	if found > mostExamples {
		t.Note += fmt.Sprintf(" %d of %d are shown; events.jsonl has all.", mostExamples, found)
	}
	t.Folded = len(t.Rows) > openExamples
	return t
}

// failedOn names the server of an error.
func failedOn(e *measure.Event) string {
	if e.On == "" && e.What != "" {
		return "(the target itself)"
	}
	return e.On
}

// cutText keeps the first so many letters.
func cutText(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + " ..."
	}
	return text
}
