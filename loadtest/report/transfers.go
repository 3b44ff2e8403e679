package report

import (
	"fmt"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
)

// transferChapter reports on a record of transfers: the results of each case, its cost for the
// source and the destination, and the outcome of each file. The columns are the columns of the
// tests of Transfer2Go of 2017.
func transferChapter(f *analysis.Findings) chapter {
	t := f.Transfers
	if t == nil {
		return chapter{}
	}
	files := fileSection(t)
	files.PageOnly = true
	return chapter{ID: "transfers", Title: "Transfers between sites", Lead: t.Text(), Open: true,
		Parts: filled(caseSection(t), endSection(t), missingSection(t), files)}
}

func caseSection(t *analysis.TransferFigures) section {
	s := section{ID: "cases", Title: "Each case", Open: true,
		Note: "A case takes from the first submission to the last end: waiting, verifying and what the coordinator does are in it. " +
			"At once is how many copies there were at most; spread is the time from the first file's arrival to the last one's.",
		table: table{Head: heads("!files", "!arrived", "size", "!in sum", "at once", "start", "end", "!took", "!MB/s", "!Mbit/s", "spread",
			"!failed", "!<case")}}
	for i := range t.Cases {
		c := &t.Cases[i]
		size := amount(c.Largest)
		if c.Smallest != c.Largest {
			size = amount(c.Smallest) + " to " + size
		}
		s.row(false, fmt.Sprint(c.Files), fmt.Sprint(c.Arrived), size, amount(c.Bytes), fmt.Sprint(c.AtOnce), ofDay(c.Begin), ofDay(c.End),
			unit.Seconds(c.Seconds), megabytes(c.Throughput), megabits(c.Throughput), unit.Seconds(c.Spread), fmt.Sprint(c.Failures), c.Case)
	}
	return s
}

func endSection(t *analysis.TransferFigures) section {
	s := section{ID: "ends", Title: "Source and destination",
		Note: "Of each site's agent: 100% CPU is one core; the mean is over the case, the maximum over its seconds; " +
			"CPU time is minutes:seconds.hundredths from a second on. Idle agents use less than a hundredth of a core.",
		table: table{Head: heads("site", "is", "size", "moved", "CPU max", "CPU mean", "memory", "memory %", "CPU time", "s/GB", "<case")}}
	for i := range t.Cases {
		c := &t.Cases[i]
		for k := range c.Ends {
			e := &c.Ends[k]
			resident := "-"
			if e.Resident != nil {
				resident = amount(*e.Resident)
			}
			perGB := func(cpu float64) string {
				if e.Moved == 0 {
					return "-"
				}
				return unit.Significant(cpu / float64(e.Moved) * 1e9)
			}
			s.row(false, e.Site, e.Role, amount(c.Largest), amount(e.Moved), orDash(e.CPUMax, unit.Percent), orDash(e.CPUMean, unit.Percent),
				resident, orDash(e.Memory, unit.Percent), orDash(e.CPU, cpuTime), orDash(e.CPU, perGB), c.Case)
		}
	}
	return s
}

func fileSection(t *analysis.TransferFigures) section {
	s := section{ID: "files", Title: "Each file",
		Note: "Times of the attempt that decided, by the coordinator's clock. Throughput is of that attempt alone: " +
			"those of files that were copied one after the other add up to more than the network carries.",
		table: table{Head: heads("step", "size", "start", "end", "took", "MB/s", "Mbit/s", "tries", "way", "<file")}}
	for i := range t.Files {
		x := &t.Files[i]
		way := x.Source + " -> " + x.Dest
		if x.Mode != "" {
			way += ", " + x.Mode
		}
		took, rate, bits, file := "-", "-", "-", x.File
		if !x.Begin.IsZero() {
			took = unit.Seconds(x.Seconds)
		}
		switch {
		case !x.Done:
			file += ": has not arrived"
		case x.Begin.IsZero():
			file += ": was there"
		default:
			rate, bits = megabytes(x.Throughput), megabits(x.Throughput)
		}
		s.row(false, fmt.Sprint(x.Step), amount(x.Size), ofDay(x.Begin), ofDay(x.End), took, rate, bits, fmt.Sprint(x.Tries), way, file)
		if i < len(t.Files)-1 && t.Files[i+1].Step == x.Step {
			continue
		}
		for k := range t.Cases {
			if c := &t.Cases[k]; c.Step == x.Step && c.Files > 1 {
				s.row(false, fmt.Sprint(c.Step), amount(c.Bytes), ofDay(c.Begin), ofDay(c.End), unit.Seconds(c.Seconds),
					megabytes(c.Throughput), megabits(c.Throughput), fmt.Sprint(c.Attempts), "",
					fmt.Sprintf("all %d (their own throughputs, summed: %s MB/s)", c.Files, megabytes(c.SumOfFiles)))
			}
		}
	}
	if t.Left > 0 {
		s.Note += fmt.Sprintf(" %s more are in transfers.jsonl.", say.Plural(t.Left, "file"))
	}
	return s
}

func missingSection(t *analysis.TransferFigures) section {
	s := section{ID: "missing", Title: "Files that have not arrived", Open: true, table: table{Head: heads("step", "<file", "tries", "~why")}}
	for i := range t.Missing {
		x := &t.Missing[i]
		s.row(false, fmt.Sprint(x.Step), x.File, fmt.Sprint(x.Tries), x.Reason)
	}
	return s
}

// ofDay formats a time of the day, to the millisecond.
func ofDay(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.Format("15:04:05.000")
}

func megabytes(bytesPerSecond float64) string { return unit.Significant(bytesPerSecond / 1e6) }

func megabits(bytesPerSecond float64) string { return unit.Significant(bytesPerSecond * 8 / 1e6) }

// cpuTime formats a CPU time in the way of top: minutes:seconds.hundredths. Times below one second
// have a unit instead, because they would be lost in that format.
func cpuTime(seconds float64) string {
	if seconds < 1 {
		return unit.Seconds(seconds)
	}
	hundredths := int64(seconds*100 + 0.5)
	return fmt.Sprintf("%d:%02d.%02d", hundredths/6000, hundredths/100%60, hundredths%100)
}
