package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"weir/analysis"
	"weir/report"
	"weir/results"
)

// conclude analyses the run in dir, writes what can be made again, and says
// what it showed.
func conclude(dir string, f runFlags, s streams) error {
	run, err := results.Open(dir)
	if err != nil {
		return err
	}
	found, series, err := analysis.Both(run)
	if err != nil {
		return err
	}
	err = errors.Join(analysis.WriteFindings(dir, found), analysis.WriteTables(run, found),
		results.WriteFile(dir, results.ReportFile, func(w io.Writer) error { return report.HTML(w, found, series) }))
	if err != nil {
		return err
	}
	if f.json {
		return errors.Join(report.JSON(s.out, found), validity(found))
	}
	if err := report.Text(s.out, found, report.Options{Color: isTerminal(s.out)}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "\nrun directory  %s\nreport         %s\n", dir, filepath.Join(dir, results.ReportFile))
	return errors.Join(err, validity(found))
}

// validity turns an invalid result into its exit code; it was told already.
func validity(f *analysis.Findings) error {
	if f.Validity.Status == analysis.Invalid {
		return exit{code: exitInvalid}
	}
	return nil
}

// progress is where the run is shown while it goes on.
func (r *session) progress() io.Writer {
	if r.flags.quiet {
		return io.Discard
	}
	return r.err
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}
