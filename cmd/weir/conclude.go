package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"weir/analysis"
	"weir/report"
	"weir/results"
)

// conclude analyses the run in dir, writes what can be made again, and says
// what it showed.
func conclude(dir string, asJSON bool, s streams) error {
	found, err := analyze(dir, s)
	if err != nil {
		return err
	}
	return show(dir, found, asJSON, s)
}

// analyze analyses the run in dir and writes what can be made again.
func analyze(dir string, s streams) (*analysis.Findings, error) {
	found, _, err := analyzeBoth(dir, s)
	return found, err
}

// analyzeBoth is analyze, and returns the run's seconds, too.
func analyzeBoth(dir string, s streams) (*analysis.Findings, *analysis.Series, error) {
	defer s.working("analyzing " + dir).done()
	run, err := results.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	found, series, err := analysis.Write(run)
	if found == nil {
		return nil, nil, err
	}
	return found, series, errors.Join(err, results.WriteFile(dir, results.ReportFile, func(w io.Writer) error { return report.HTML(w, found, series) }))
}

// show says what the run in dir showed, with further lines before the last, which
// is the headline. Its error is that of validity, too.
func show(dir string, found *analysis.Findings, asJSON bool, s streams, more ...string) error {
	if s.stream != nil {
		s.stream.tell(streamed{Event: "findings", Run: dir, Findings: found})
		return validity(found)
	}
	if asJSON {
		return errors.Join(report.JSON(s.out, found), validity(found))
	}
	if err := report.Text(s.out, found, look(s.out)); err != nil {
		return err
	}
	lines := append([]string{"", "run directory  " + dir, "report         " + filepath.Join(dir, results.ReportFile)}, more...)
	_, err := fmt.Fprintln(s.out, strings.Join(append(lines, report.Final(found)), "\n"))
	return errors.Join(err, validity(found))
}

// validity turns an invalid result, or a threshold that was not met, into its
// exit code; both were told already.
func validity(f *analysis.Findings) error {
	if f.Validity.Status == analysis.Invalid {
		return exit{code: exitInvalid}
	}
	if f.Missed() {
		return exit{code: exitMissed}
	}
	return nil
}
