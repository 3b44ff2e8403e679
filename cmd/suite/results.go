package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// slowestShown is the number of tests in the list of the slowest.
const slowestShown = 10

// results are the results of a run.
type results struct {
	Records  []record
	Tests    []testTime // the slowest first, without subtests
	Passed   int
	Skipped  []string
	Repeated string
	Untested []string
	Wall     time.Duration
}

// A testTime is the duration of a test.
type testTime struct {
	Name    string
	Seconds float64
}

// readResults reads the records and the output of go test -json in a folder.
func readResults(dir string) (results, error) {
	var r results
	err := eachLine(filepath.Join(dir, "records"), func(line []byte) error {
		var one record
		err := json.Unmarshal(line, &one)
		r.Records = append(r.Records, one)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // all results may come from the cache
		return r, err
	}
	outputs, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return r, err
	}
	for _, path := range outputs {
		if err := eachLine(path, r.addEvent); err != nil {
			return r, err
		}
	}
	repeated, err := filepath.Glob(filepath.Join(dir, "*.repeated"))
	if err != nil {
		return r, err
	}
	for _, path := range repeated {
		text, err := os.ReadFile(path)
		if err != nil {
			return r, err
		}
		r.Repeated += string(text)
	}
	slices.SortFunc(r.Records, func(a, b record) int { return cmp.Compare(b.CPUSeconds, a.CPUSeconds) })
	slices.SortFunc(r.Tests, func(a, b testTime) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return r, nil
}

func eachLine(path string, do func([]byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for err == nil && lines.Scan() {
		err = do(lines.Bytes())
	}
	return errors.Join(err, lines.Err(), f.Close())
}

// addEvent counts a line of go test -json.
func (r *results) addEvent(line []byte) error {
	var e struct {
		Action, Package, Test string
		Elapsed               float64
	}
	if json.Unmarshal(line, &e) != nil || e.Test == "" { // a run that was stopped ends in the middle of a line
		return nil
	}
	name := strings.TrimPrefix(e.Package, "weir/") + " " + e.Test
	switch e.Action {
	case "pass":
		r.Passed++
	case "skip":
		r.Skipped = append(r.Skipped, name)
	case "fail":
	default:
		return nil
	}
	if !strings.Contains(e.Test, "/") {
		r.Tests = append(r.Tests, testTime{Name: name, Seconds: e.Elapsed})
	}
	return nil
}

// text returns the summary that a run prints.
func (r *results) text() string {
	var b strings.Builder
	root, _ := os.Getwd()
	var total float64
	b.WriteString("\nCPU time by package, with the processes that its tests start:\n")
	for _, one := range r.Records {
		total += one.CPUSeconds
		if one.CPUSeconds >= 1 {
			name, err := filepath.Rel(root, one.Dir)
			if err != nil {
				name = one.Dir
			}
			_, _ = fmt.Fprintf(&b, "%8.1f s in %6.1f s  %s\n", one.CPUSeconds, one.WallSeconds, name)
		}
	}
	_, _ = fmt.Fprintf(&b, "%8.1f s in %6.1f s  all %d packages that ran\n", total, r.Wall.Seconds(), len(r.Records))
	_, _ = fmt.Fprintf(&b, "\nThe %d slowest tests:\n", min(slowestShown, len(r.Tests)))
	for _, t := range r.Tests[:min(slowestShown, len(r.Tests))] {
		_, _ = fmt.Fprintf(&b, "%8.1f s  %s\n", t.Seconds, t.Name)
	}
	for _, one := range r.Records {
		for _, name := range one.Left {
			_, _ = fmt.Fprintf(&b, "left running by %s, killed: %s\n", one.Dir, name)
		}
	}
	if r.Repeated != "" {
		_, _ = fmt.Fprintf(&b, "\nThese tests failed and were repeated:\n%s", r.Repeated)
	}
	if len(r.Untested) > 0 {
		_, _ = fmt.Fprintf(&b, "\nNot tested within the time limit: %s\n", strings.Join(r.Untested, " "))
	}
	_, _ = fmt.Fprintf(&b, "\n%d tests passed, %d were skipped\n", r.Passed, len(r.Skipped))
	return b.String()
}
