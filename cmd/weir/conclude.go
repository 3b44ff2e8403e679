package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

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
		return ignoreUnread(report.JSON(s.out, r.Findings))
	}
	if err := report.Text(s.out, r.Findings, look(s.out)); err != nil {
		return ignoreUnread(err)
	}
	lines := []string{"", "run directory  " + r.Dir, "report         " + filepath.Join(r.Dir, results.ReportFile)}
	if r.Search != "" {
		lines = append(lines, "search         "+r.Search)
	}
	_, err := fmt.Fprintln(s.out, strings.Join(append(lines, report.Final(r.Findings)), "\n"))
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
