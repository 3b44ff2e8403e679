package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/term"

	"weir/analysis"
	"weir/report"
	"weir/results"
)

// conclude analyses the run in dir, writes what can be made again, and says
// what it showed.
func conclude(dir string, f runFlags, s streams) error {
	found, err := analyze(dir)
	if err != nil {
		return err
	}
	if f.json {
		return errors.Join(report.JSON(s.out, found), validity(found))
	}
	if err := report.Text(s.out, found, report.Options{Color: isTerminal(s.out), Width: width(s.out)}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "\nrun directory  %s\nreport         %s\n", dir, filepath.Join(dir, results.ReportFile))
	return errors.Join(err, validity(found))
}

// analyze analyses the run in dir and writes what can be made again.
func analyze(dir string) (*analysis.Findings, error) {
	run, err := results.Open(dir)
	if err != nil {
		return nil, err
	}
	found, series, err := analysis.Write(run)
	if found == nil {
		return nil, err
	}
	return found, errors.Join(err, results.WriteFile(dir, results.ReportFile, func(w io.Writer) error { return report.HTML(w, found, series) }))
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

// progress is where the run is shown while it goes on.
func (r *session) progress() io.Writer {
	if r.flags.quiet {
		return io.Discard
	}
	return r.err
}

// width is how many columns the terminal has, 0 if it does not say.
func width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// plain replaces what a terminal would obey in text that comes from elsewhere;
// line, the ends of lines, too.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return '?'
		}
		return r
	}, text)
}

func line(text string) string { return strings.ReplaceAll(plain(text), "\n", " ") }

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}
