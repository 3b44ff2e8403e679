package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/results"
	"weir/loadtest/run/live"
)

// said calls weir in this process and returns its standard output and standard error.
func said(t *testing.T, args ...string) (code exitCode, out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = execute(t.Context(), args, streams{in: strings.NewReader(""), out: &stdout, err: &stderr}, nil)
	return code, stdout.String(), stderr.String()
}

// With --json, standard output is one JSON value with the keys that the pages name. Without it,
// standard output has the same contents as text.
func TestJSON(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	simulated := []string{"--target", "simulated://x?service=1ms", "--clients", "1,2", "--set", "load={ramp: 0s, warmup: 0s, duration: 1s, " +
		"clients: [1, 2]}"}
	code, out, _ := said(t, append([]string{"run", "--json", "--quiet", "--out", dir}, simulated...)...)
	if code != exitFine && code != exitInvalid || !json.Valid([]byte(out)) {
		t.Fatalf("exit code %d: %s", code, out)
	}
	table := filepath.Join(t.TempDir(), "t.csv")
	require.NoError(t, os.WriteFile(table, []byte("clients,throughput (Gbit/s)\n1,1\n5,4\n10,6\n20,7\n40,7\n"), 0o600))
	for _, c := range []struct {
		args []string
		keys []string
	}{
		{[]string{"version"}, []string{"weir", "go", "os", "arch", "formats"}},
		{[]string{"doctor"}, []string{"checks"}},
		{[]string{"lab", "list"}, []string{"services"}},
		{append([]string{"plan"}, simulated...), []string{"steps", "target"}},
		{append([]string{"plan", "--repeat", "2"}, simulated...), []string{"campaign", "plans"}},
		{[]string{"report", dir}, []string{"curve", "validity", "verdict"}},
		{[]string{"analyze", table}, []string{"curve", "optimum"}},
		{[]string{"compare", dir, dir}, []string{"pairs"}},
		{[]string{"clean", dir}, []string{"runs"}},
	} {
		_, out, _ := said(t, append(c.args, "--json")...)
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Errorf("%v: %v:\n%s", c.args, err, out)
		}
		for _, key := range c.keys {
			if _, ok := got[key]; !ok {
				t.Errorf("%v has no %q:\n%s", c.args, key, out)
			}
		}
		if _, text, _ := said(t, c.args...); json.Valid([]byte(text)) || text == "" {
			t.Errorf("%v without --json: %q", c.args, text)
		}
	}
}

// --json-stream prints a line for each of the run's start, its steps and its findings.
func TestJSONStream(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	code, out, _ := said(t, "run", "--json-stream", "--out", dir, "--target", "simulated://x?service=1ms",
		"--set", "load={ramp: 0s, warmup: 0s, duration: 1s, clients: [1, 2]}", "--repeat", "2")
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d: %s", code, out)
	}
	var events []string
	for l := range strings.Lines(out) {
		var s live.Line
		if err := json.Unmarshal([]byte(l), &s); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		if s.Event == "warning" || s.Event == "error" {
			continue // of a busy machine
		}
		events = append(events, s.Event)
		if !strings.HasPrefix(s.Run, dir) || s.Time.IsZero() {
			t.Errorf("run %q, time %v", s.Run, s.Time)
		}
		switch s.Event {
		case "start":
			if s.Start.Steps != 2 || s.Start.Planned != 2 || s.Start.Processes != 1 {
				t.Errorf("start %+v", s.Start)
			}
		case "step":
			if s.Step.Done == 0 || s.Step.Latency == nil || s.Step.Duration < .5 || math.Round(s.Step.Clients) != float64(s.Step.Step) {
				t.Errorf("step %+v", s.Step)
			}
		case "findings":
			if len(s.Findings.Curve) != 2 {
				t.Errorf("%d points", len(s.Findings.Curve))
			}
		case "repetitions":
			if !bytes.Contains(s.Repetitions, []byte(`"throughput`)) {
				t.Errorf("%s", s.Repetitions)
			}
		}
	}
	one := []string{"start", "begin", "step", "begin", "step", "end", "findings"}
	slices.Sort(events)
	want := append(slices.Concat(one, one), "repetitions")
	slices.Sort(want) // the last step of a run is written after its end
	if !slices.Equal(events, want) {
		t.Errorf("%q, want %q", events, want)
	}
}

// The loss of its reader does not end a run, but changes the exit code.
func TestJSONStreamLost(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	var say bytes.Buffer
	code := execute(t.Context(), []string{
		"run", "--json-stream", "--out", dir, "--target", "simulated://x?service=1ms",
		"--set", "load={ramp: 0s, warmup: 0s, duration: 1s, clients: 1}",
	}, streams{in: strings.NewReader(""), out: lostPipe{}, err: &say}, nil)
	if f := findings(t, dir); len(f.Curve) != 1 || f.Curve[0].Done == 0 {
		t.Errorf("%d points", len(f.Curve))
	}
	if code == exitError && !strings.Contains(say.String(), "no reader") || code == exitFine {
		t.Errorf("exit code %d: %s", code, say.String())
	}
}

type lostPipe struct{}

func (lostPipe) Write([]byte) (int, error) { return 0, errors.New("no reader") }

// The output that docs/seeing.md pipes into jq is JSON.
func TestSeeingPageJSON(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/seeing.md")
	require.NoError(t, err)
	commands := regexp.MustCompile(`(?m)^\$ weir (run .*--json.*) \| jq`).FindAllStringSubmatch(string(page), -1)
	if len(commands) < 2 {
		t.Fatal("the commands are not there")
	}
	for _, c := range commands {
		dir := t.TempDir()
		const scenario = "target: simulated://x?service=1ms\nload: {clients: 1, ramp: 0s, warmup: 0s, duration: 1s}\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "scenario.yaml"), []byte(scenario), 0o600))
		code, said := start(t, dir, "weir", strings.Fields(c[1])...).ended()
		if code != exitFine && code != exitInvalid {
			t.Errorf("weir %s: exit code %d: %s", c[1], code, said)
		}
		for d := json.NewDecoder(strings.NewReader(said)); ; {
			var v any
			if err := d.Decode(&v); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("weir %s: %v: %s", c[1], err, said)
			}
		}
	}
}

// Hanging readers of standard output and standard error do not delay a run. It is measured and
// reported, and then all output is written.
func TestHangingReaders(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	readOut, out := io.Pipe()
	readErr, said := io.Pipe()
	ended := make(chan exitCode, 1)
	go func() {
		ended <- execute(t.Context(), []string{
			"run", "--json-stream", "--out", dir, "--target", "simulated://x?service=1ms", "--set", "load={ramp: 0s, warmup: 0s, duration: 1s, " +
				"clients: [1, 2]}",
		}, streams{in: strings.NewReader(""), out: out, err: said}, nil)
		_, _ = out.Close(), said.Close()
	}()
	require.Eventually(t, "the end of the run", func() bool { return contains(filepath.Join(dir, results.EventsFile), `"event":"end"`) })
	var told, spoken bytes.Buffer
	var readers sync.WaitGroup
	readers.Go(func() { _, _ = io.Copy(&told, readOut) })
	readers.Go(func() { _, _ = io.Copy(&spoken, readErr) })
	if code := <-ended; code != exitFine && code != exitInvalid {
		t.Errorf("exit code %d", code)
	}
	readers.Wait()
	if !strings.Contains(told.String(), `"event":"findings"`) || !strings.Contains(spoken.String(), "\n    2       2 ") {
		t.Errorf("not all was told:\n%s\n%s", told.String(), spoken.String())
	}
}
