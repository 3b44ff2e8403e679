package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"weir/analysis"
	"weir/report"
	"weir/results"
)

// conclude analyses the run in dir, writes what can be made again, and says
// what it showed.
func conclude(dir string, asJSON bool, on failOn, s streams) error {
	found, err := analyze(dir, s)
	if err != nil {
		return err
	}
	return show(dir, found, asJSON, on, s)
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
// is the headline. Its error has the exit code of that.
func show(dir string, found *analysis.Findings, asJSON bool, on failOn, s streams, more ...string) error {
	if s.stream != nil {
		s.stream.tell(streamed{Event: "findings", Run: dir, Findings: found})
		return on.verdict(found)
	}
	return errors.Join(ignoreUnread(printFindings(dir, found, asJSON, s, more...)), on.verdict(found))
}

// printFindings prints findings for programs or for people.
func printFindings(dir string, found *analysis.Findings, asJSON bool, s streams, more ...string) error {
	if asJSON {
		return report.JSON(s.out, found)
	}
	if err := report.Text(s.out, found, look(s.out)); err != nil {
		return err
	}
	lines := append([]string{"", "run directory  " + dir, "report         " + filepath.Join(dir, results.ReportFile)}, more...)
	_, err := fmt.Fprintln(s.out, strings.Join(append(lines, report.Final(found)), "\n"))
	return err
}

// ignoreUnread returns err unless it says that standard output is no longer read, which is
// no error of a command that has done its work.
func ignoreUnread(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) && path.Path == os.Stdout.Name() && errors.Is(path.Err, syscall.EPIPE) {
		return nil
	}
	return err
}
