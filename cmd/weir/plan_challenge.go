package main

import (
	"errors"
	"io"
	"os"
	"time"

	"weir/internal/document"
	"weir/loadtest/challenge"
	"weir/loadtest/run"
)

// isChallenge reports whether args name the file of a data challenge.
func isChallenge(args []string) bool {
	return len(args) == 1 && hasKey(args[0], "sites")
}

// isLoadTest reports whether path is the file of a load test.
func isLoadTest(path string) bool { return !hasKey(path, "sites") && hasKey(path, "target") }

// hasKey reports whether path is a YAML file with a key at its top level.
func hasKey(path, key string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false
	}
	data, err := io.ReadAll(io.LimitReader(f, document.MaxBytes))
	return err == nil && challenge.Has(data, key)
}

// challenge reads the data challenge in the file at path with the --var and --set options.
func (f *scenarioFlags) challenge(path string) (*challenge.Challenge, error) {
	if f.Target != "" {
		return nil, &run.UsageError{Err: errors.New("--target: a data challenge has sites; change them with --set sites.0.url=URL")}
	}
	c, err := challenge.Read(path, f.Vars, f.selection().Sets)
	if err != nil {
		return nil, &run.UsageError{Err: err}
	}
	return c, nil
}

// planChallenge prints the plan of a data challenge that begins now.
func (s streams) planChallenge(c *challenge.Challenge, asJSON bool) error {
	warnings, err := c.Credentials(time.Now(), false)
	if err != nil {
		return &run.UsageError{Err: err}
	}
	if asJSON {
		return writeJSON(s.out, map[string]any{"challenge": c, "estimate": c.Estimate(), "warnings": append(c.Warnings(), warnings...)})
	}
	if err := c.WriteText(s.out); err != nil {
		return err
	}
	for _, text := range warnings {
		s.printErr("warning: %s\n", text)
	}
	return nil
}
