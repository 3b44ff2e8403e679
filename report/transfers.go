package report

import (
	"fmt"
	"time"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
)

// transferChapter tells of a record of transfers: what each case gave, what it cost
// both ends, and what became of each file. The columns are those of the tests of
// Transfer2Go of 2017.
func transferChapter(f *analysis.Findings) chapter {
	t := f.Transfers
	if t == nil {
		return chapter{}
	}
	c := chapter{ID: "transfers", Title: "Transfers between sites", Lead: t.Text()}
	cases := section{ID: "cases", Title: "Each case", Note: "A case takes from the first submission to the last end: waiting, verifying and what the coordinator does are in it. " +
		"At once is how many copies there were at most; spread is the time from the first file's arrival to the last one's."}
	cases.fill(caseTable(t))
	ends := section{ID: "ends", Title: "Source and destination", Note: "Of each site's agent: 100% CPU is one core; the mean is over the case, the maximum over its seconds; " +
		"CPU time is minutes:seconds.hundredths from a second on. Agents that do nothing use less than a hundredth of a core."}
	ends.fill(endTable(t))
	files := section{ID: "files", Title: "Each file", Note: "Times of the attempt that decided, by the coordinator's clock. Throughput is of that attempt alone: those of files that were copied one after the other add up to more than the network carries."}
	files.fill(fileTable(t))
	if t.Left > 0 {
		files.Note += fmt.Sprintf(" %s more are in transfers.jsonl.", say.Plural(t.Left, "file"))
	}
	files.Folded = len(files.Rows) > mostOpenRows
	c.Parts = filled(cases, ends, missingSection(t), files)
	return c
}

func caseTable(t *analysis.TransferFigures) table {
	out := table{head: []string{"files", "arrived", "size", "in sum", "at once", "start", "end", "took", "MB/s", "Mbit/s", "spread", "failed", "case"}}
	for i := range t.Cases {
		c := &t.Cases[i]
		size := unit.Bytes(float64(c.Largest))
		if c.Smallest != c.Largest {
			size = unit.Bytes(float64(c.Smallest)) + " to " + size
		}
		out.rows = append(out.rows, []string{
			fmt.Sprint(c.Files), fmt.Sprint(c.Arrived), size, unit.Bytes(float64(c.Bytes)), fmt.Sprint(c.AtOnce), ofDay(c.Begin), ofDay(c.End), unit.Seconds(c.Seconds),
			megabytes(c.Throughput), megabits(c.Throughput), unit.Seconds(c.Spread), fmt.Sprint(c.Failures), say.Plain(c.Case),
		})
	}
	return out
}

func endTable(t *analysis.TransferFigures) table {
	out := table{head: []string{"site", "is", "size", "moved", "CPU max", "CPU mean", "memory", "memory %", "CPU time", "s/GB", "case"}}
	for i := range t.Cases {
		c := &t.Cases[i]
		for k := range c.Ends {
			e := &c.Ends[k]
			resident := "-"
			if e.Resident != nil {
				resident = unit.Bytes(float64(*e.Resident))
			}
			perGB := func(cpu float64) string {
				if e.Moved == 0 {
					return "-"
				}
				return unit.Significant(cpu / float64(e.Moved) * 1e9)
			}
			out.rows = append(out.rows, []string{
				say.Plain(e.Site), e.Role, unit.Bytes(float64(c.Largest)), unit.Bytes(float64(e.Moved)), orDash(e.CPUMax, unit.Percent), orDash(e.CPUMean, unit.Percent),
				resident, orDash(e.Memory, unit.Percent), orDash(e.CPU, cpuTime), orDash(e.CPU, perGB), say.Plain(c.Case),
			})
		}
	}
	return out
}

func fileTable(t *analysis.TransferFigures) table {
	out := table{head: []string{"step", "size", "start", "end", "took", "MB/s", "Mbit/s", "tries", "way", "file"}}
	sum := func(step int) {
		for i := range t.Cases {
			if c := &t.Cases[i]; c.Step == step && c.Files > 1 {
				out.rows = append(out.rows, []string{
					fmt.Sprint(step), unit.Bytes(float64(c.Bytes)), ofDay(c.Begin), ofDay(c.End), unit.Seconds(c.Seconds), megabytes(c.Throughput), megabits(c.Throughput),
					fmt.Sprint(c.Attempts), "", fmt.Sprintf("all %d (their own throughputs, summed: %s MB/s)", c.Files, megabytes(c.SumOfFiles)),
				})
			}
		}
	}
	for i := range t.Files {
		x := &t.Files[i]
		way := x.Source + " -> " + x.Dest
		if x.Mode != "" {
			way += ", " + x.Mode
		}
		row := []string{fmt.Sprint(x.Step), unit.Bytes(float64(x.Size)), ofDay(x.Begin), ofDay(x.End), "-", "-", "-", fmt.Sprint(x.Tries), way, x.File}
		if !x.Begin.IsZero() {
			row[4] = unit.Seconds(x.Seconds)
		}
		switch {
		case !x.Done:
			row[9] += ": has not arrived"
		case x.Begin.IsZero():
			row[9] += ": was there"
		default:
			row[5], row[6] = megabytes(x.Throughput), megabits(x.Throughput)
		}
		out.rows = append(out.rows, row)
		if i == len(t.Files)-1 || t.Files[i+1].Step != x.Step {
			sum(x.Step)
		}
	}
	return out
}

func missingSection(t *analysis.TransferFigures) section {
	s := section{ID: "missing", Title: "Files that have not arrived", Head: heads("step", "<file", "tries", "<why")}
	for i := range t.Missing {
		x := &t.Missing[i]
		s.row(false, fmt.Sprint(x.Step), x.File, fmt.Sprint(x.Tries), x.Reason)
		s.Rows[len(s.Rows)-1].Cells[3].Class = "w"
	}
	return s
}

// ofDay is a time of the day, to the millisecond.
func ofDay(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.Format("15:04:05.000")
}

func megabytes(bytesPerSecond float64) string { return unit.Significant(bytesPerSecond / 1e6) }

func megabits(bytesPerSecond float64) string { return unit.Significant(bytesPerSecond * 8 / 1e6) }

// cpuTime is as top writes it, and the seed: minutes:seconds.hundredths. What is less
// than a second would be lost in that.
func cpuTime(seconds float64) string {
	if seconds < 1 {
		return unit.Seconds(seconds)
	}
	hundredths := int64(seconds*100 + 0.5)
	return fmt.Sprintf("%d:%02d.%02d", hundredths/6000, hundredths/100%60, hundredths%100)
}

// transfers writes what a record of transfers shows.
func (p printer) transfers(f *analysis.Findings) {
	t := f.Transfers
	if t == nil {
		return
	}
	p.title(f, "Transfers between sites")
	p.table(caseTable(t))
	p.line("")
	p.title(f, "Source and destination")
	p.table(endTable(t))
	p.line("")
	p.hanging("", t.Text())
	for i := range t.Missing {
		if i == mostWorkers {
			p.line("  ...")
			break
		}
		p.hanging("  - ", say.Plain(t.Missing[i].File+": "+t.Missing[i].Reason))
	}
	p.line("")
}
