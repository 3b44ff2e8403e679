package export

import (
	"encoding/json"
	"os"
	"path/filepath"

	"weir/analysis"
	"weir/results"
)

// A Finder says what a run shows.
type Finder func(*results.Run) (*analysis.Findings, error)

// Written is a Finder that takes findings.json if it was written after the
// last second of the run, and analyses the run if not.
func Written(run *results.Run) (*analysis.Findings, error) {
	found := filepath.Join(run.Dir, results.FindingsFile)
	made, err := os.Stat(found)
	if err != nil {
		return analysis.Of(run)
	}
	last, err := os.Stat(filepath.Join(run.Dir, results.IntervalsFile))
	if err != nil || made.ModTime().Before(last.ModTime()) {
		return analysis.Of(run)
	}
	text, err := os.ReadFile(found)
	var f analysis.Findings
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil || f.Version != analysis.FindingsVersion || f.Run != run.About.Run {
		return analysis.Of(run)
	}
	return &f, nil
}
