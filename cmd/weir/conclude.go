package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"weir/analysis"
	"weir/report"
	"weir/results"
	"weir/run"
)

// conclude analyzes the run in dir, shows the result, and returns its verdict as
// an exit code.
func conclude(dir string, asJSON bool, on failOn, s streams) error {
	r, err := run.Analyze(dir, s.console())
	if err != nil {
		return err
	}
	return errors.Join(show(r, asJSON, s), on.verdict(r.Findings))
}

// show prints a result for programs or for people.
func show(r run.Result, asJSON bool, s streams) error {
	if s.stream != nil {
		s.stream.tell(streamed{Event: "findings", Run: r.Dir, Findings: r.Findings})
		return nil
	}
	if asJSON {
		return ignoreUnread(analysis.JSON(s.out, r.Findings))
	}
	if err := report.Text(s.out, r.Findings, s.look()); err != nil {
		return ignoreUnread(err)
	}
	if r.Search != "" {
		tell(s.out, "search         ", "%s", r.Search)
	}
	_, err := fmt.Fprintf(s.out, "run directory  %s\nreport         %s\n", r.Dir, filepath.Join(r.Dir, results.ReportFile))
	return ignoreUnread(err)
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
