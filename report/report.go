// Package report writes findings for people: as text for a terminal, as
// JSON for other programs, and as one HTML file with plots that opens
// anywhere.
package report

import (
	"io"

	"weir/analysis"
)

// JSON writes f as it stands in findings.json.
func JSON(w io.Writer, f *analysis.Findings) error { return analysis.JSON(w, f) }

// load names the axis that steps lie on and returns a step's place on it.
func load(f *analysis.Findings) (name string, of func(*analysis.Step) float64) {
	if f.Open() {
		return f.Load(), func(s *analysis.Step) float64 { return s.Rate }
	}
	return f.Load(), func(s *analysis.Step) float64 { return float64(s.Clients) }
}

// things names what is counted a second: files where whole files move, requests
// of jobs, or jobs where each is a program.
func things(f *analysis.Findings) string {
	switch {
	case f.OfJobs() && f.Measure == analysis.Rate:
		return "jobs/s"
	case f.OfJobs():
		return "requests/s"
	}
	for _, k := range f.Kinds {
		if k.Name != "read" && k.Name != "write" {
			return "ops/s"
		}
	}
	if f.Measure == analysis.Rate {
		return "ops/s"
	}
	return "files/s"
}
