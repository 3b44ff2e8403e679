package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer/trial"
)

// A demoPlayed is a scenario with what came out.
type demoPlayed struct {
	*trial.Scenario
	results []trial.Result
	out     string // its run directory, "" if it has none
}

func demoProblems(all []demoPlayed) (n int) {
	for _, p := range all {
		for i := range p.results {
			if len(p.results[i].Problems) > 0 {
				n++
			}
		}
	}
	return n
}

// tellDemo prints one table of all cases, and below it what is not as expected.
func tellDemo(w io.Writer, all []demoPlayed, left []string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "SCENARIO\tCASE\tFILES\tEXPECTED\tOUTCOME\tTOOK\tSPEED\tSPREAD\t") // Flush tells
	n := 0
	for _, p := range all {
		for i := range p.results {
			r := &p.results[i]
			n++
			mark := "as expected"
			if len(r.Problems) > 0 {
				mark = "NOT AS EXPECTED"
			}
			_, _ = fmt.Fprintf(t, "%s\t%s\t%d x %s\t%s\t%s\t%s\t%s/s\t%s\t%s\n", p.Name, r.Case.Name, r.Case.Files, unit.Bytes(float64(r.Size)), r.Case.Expect.Text(), r.Text(),
				unit.Seconds(r.Seconds), unit.Bytes(float64(r.Bytes())/max(r.Seconds, 1e-9)), unit.Seconds(r.Spread()), mark)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, p := range all {
		for i := range p.results {
			for _, problem := range p.results[i].Problems {
				_, _ = fmt.Fprintf(w, "%s, %s: %s\n", p.Name, p.results[i].Case.Name, problem)
			}
		}
	}
	bad := demoProblems(all)
	_, err := fmt.Fprintf(w, "\n%d of %s as expected. Each file was read again where it has arrived. Spread: from the first\nfile's arrival to the last one's.\n", n-bad, say.Plural(n, "case"))
	for _, why := range left {
		_, err = fmt.Fprintf(w, "left out: %s\n", why)
	}
	for _, p := range all {
		if p.out != "" {
			_, err = fmt.Fprintf(w, "run directory  %s\n", p.out)
		}
	}
	return err
}

// demoJSON is the same for programs.
func demoJSON(all []demoPlayed, left []string) any {
	type row struct {
		Scenario string            `json:"scenario"`
		Test     string            `json:"seed_test,omitempty"`
		Case     string            `json:"case"`
		Files    int               `json:"files"`
		Size     int64             `json:"size_bytes"`
		Requests int               `json:"requests"`
		Expected string            `json:"expected"`
		Outcome  string            `json:"outcome"`
		Arrived  int               `json:"arrived"`
		Named    map[string]string `json:"named,omitempty"`
		From     map[string]int    `json:"from,omitempty"`
		Seconds  float64           `json:"duration_seconds"`
		Rate     float64           `json:"throughput_bytes_per_second"`
		Spread   float64           `json:"spread_seconds"`
		Problems []string          `json:"problems,omitempty"`
		Run      string            `json:"run,omitempty"`
	}
	rows := []row{}
	for _, p := range all {
		for i := range p.results {
			r := &p.results[i]
			rows = append(rows, row{p.Name, p.Test, r.Case.Name, r.Case.Files, r.Size, r.Requests, r.Case.Expect.Text(), r.Text(), r.Arrived, r.Named, r.From, r.Seconds,
				float64(r.Bytes()) / max(r.Seconds, 1e-9), r.Spread(), r.Problems, p.out})
		}
	}
	about := map[string]any{"cases": rows}
	if len(left) > 0 {
		about["left_out"] = left
	}
	return about
}
