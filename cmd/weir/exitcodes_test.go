package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/run"
	"weir/transfer/trial"
)

// Arguments and flags that name files that do not exist, and targets without a scheme, are usage errors.
func TestMissingFilesAreUsageErrors(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{
		{"run", none + ".yaml"}, {"run", "localhost"}, {"run", "localhost:8080"}, {"run", "none"}, {"run", none, none},
		{"run", "--resume", none}, {"run", "--watch", "--watch-token-file", none}, {"find", none + ".yaml"}, {"find", "localhost"},
		{"find", "--resume", none}, {"plan", none + ".yaml"}, {"plan", "localhost"}, {"calibrate", "localhost"}, {"report", none},
		{"compare", none, none}, {"merge", none}, {"analyze", none + ".csv"}, {"export", none, "--csv", none}, {"clean", none},
		{"serve", none}, {"serve", t.TempDir(), "--token-file", none}, {"config", "check", "agent", none}, {"agent", "--config", none},
		{"agent", "--site", "A", "--root", t.TempDir(), "--token-file", none}, {"coordinator", "--cert", none, "--key", none},
		{"coordinator", "--db-file", none}, {"coordinator", "restore", none, "--passphrase-file", none},
		{"coordinator", "backup", none, "--passphrase-file", none}, {"transfer", "list", "--token-file", none},
		{"transfer", "list", "--coordinator", "localhost"}, {"dataset", "add", "/d", "--site", "A", "--csv", none},
		{"dataset", "add", "/d", "--site", "A", "--local", none}, {"transfer", "submit", "/d", "--to", "A", "--files-from", none},
		{"site", "add", "A", "--url", "https://a.example/", "--site-token-file", none}, {"site", "add", "A", "--url", "a.example"},
	} {
		if code, said := weir(t, args...); code != exitUsage {
			t.Errorf("%q: %d\n%s", args, code, said)
		}
	}
	for _, target := range []string{none + ".yaml", "localhost", "none"} {
		if _, said := weir(t, "run", target); !strings.Contains(said, "\nhint: ") {
			t.Errorf("%s: %s", target, said)
		}
	}
}

// Each command that measures exits with a signal's code if that signal ends it. It has written its
// report and keeps the measurements.
func TestSignalsAreExitCodes(t *testing.T) {
	t.Parallel()
	load := []string{"--duration", "10m", "--set", "workload.think=5ms", "--set", "load.ramp=0s", "--set", "load.warmup=0s"}
	simulated := []string{"--target", "simulated://x?servers=2&service=5ms&files=9x1KiB"}
	for name, c := range map[string]struct {
		args   []string
		run    string // directory of the run that is interrupted, below the directory in args
		signal syscall.Signal
		twice  bool
		code   exitCode
	}{
		"run, SIGINT":       {args: []string{"run", "--clients", "1,2"}, signal: syscall.SIGINT, code: exitInterrupt},
		"run, SIGTERM":      {args: []string{"run", "--clients", "1,2"}, signal: syscall.SIGTERM, code: exitTerminated},
		"run, twice":        {args: []string{"run", "--clients", "1,2"}, signal: syscall.SIGINT, twice: true, code: exitInterrupt},
		"several processes": {args: []string{"run", "--clients", "2", "--processes", "2"}, signal: syscall.SIGTERM, code: exitTerminated},
		"workers": {args: []string{"run", "--on", "local", "--workers", "2", "--clients", "2"}, signal: syscall.SIGTERM,
			code: exitTerminated},
		"find": {args: []string{"find", peaked, "--duration", "1s"}, signal: syscall.SIGTERM, code: exitTerminated},
		"campaign": {args: append([]string{"run", "--repeat", "3", "--clients", "1"}, simulated...), run: "001-a", signal: syscall.SIGTERM,
			code: exitTerminated},
		"threshold": {args: append([]string{"run", "--clients", "1,2", "--set", "thresholds=[rate > 1000000/s at 1 client]"}, simulated...),
			signal: syscall.SIGINT, code: exitInterrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "run")
			dir := filepath.Join(folder, c.run)
			if c.args[0] == "run" {
				c.args = append(c.args, load...)
			}
			p := started(t, append(c.args, "--out", folder)...)
			untilHeld(t, dir, 1)
			p.send(t, c.signal)
			if c.twice {
				p.send(t, c.signal)
			}
			code, said := p.ended()
			if code != c.code {
				t.Errorf("exit code %d, want %d\n%s", code, c.code, said)
			}
			if _, err := os.Stat(filepath.Join(dir, results.ReportFile)); err != nil {
				t.Error(err)
			}
			f := findings(t, dir)
			if f.Ending == nil || f.Ending.Outcome != measure.Interrupted || len(f.Curve) == 0 || f.Curve[0].Done == 0 {
				t.Errorf("it ended by %+v, with the curve %+v", f.Ending, f.Curve)
			}
			if want := (run.Interruption{Signal: c.signal}).SignalName(); f.Ending != nil && f.Ending.Reason != want {
				t.Errorf("it was ended by %s, want %s", f.Ending.Reason, want)
			}
		})
	}
}

// A resumed run that is interrupted again has the exit code of the second signal.
func TestResumedAndInterrupted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, "run", "--target", "simulated://x?servers=2&service=5ms&files=9x1KiB", "--clients", "1,2", "--duration", "10m", "--set",
		"load.ramp=0s", "--set", "load.warmup=0s", "--out", dir)
	untilHeld(t, dir, 1)
	p.send(t, syscall.SIGINT)
	if code, said := p.ended(); code != exitInterrupt {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	p = started(t, "run", "--resume", dir)
	untilHeld(t, dir, 3) // the remaining steps get new numbers
	p.send(t, syscall.SIGTERM)
	if code, said := p.ended(); code != exitTerminated {
		t.Errorf("exit code %d\n%s", code, said)
	}
	if f := findings(t, dir); f.Ending == nil || f.Ending.Reason != "SIGTERM" {
		t.Errorf("it ended by %+v", f.Ending)
	}
}

// servedUntilKilled starts weir serve as a process of its own.
func servedUntilKilled(t *testing.T) (url string, p *exec.Cmd) {
	t.Helper()
	p = exec.CommandContext(t.Context(), "weir", "serve", "--synthetic", "20x16KiB", "--listen", "127.0.0.1:0")
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(strings.TrimPrefix(line, "serving ")), p
}

// If a service is killed and stays down, the rule of the plan for this case ends the run with an
// exit code of its own, even if a threshold is not met or the result is invalid.
func TestRulesThatEndARun(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{
		"stop.error_ratio": "stop.error_ratio=0.5",
		"thresholds":       "thresholds=[error_ratio < 50% or stop]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, server := servedUntilKilled(t)
			dir := filepath.Join(t.TempDir(), "run")
			p := started(t, "run", "--target", url, "--clients", "20,20", "--duration", "10m", "--set", "load.ramp=0s", "--set", "load.warmup=0s",
				"--set", "workload.think=200ms", "--set", rule, "--out", dir)
			untilHeld(t, dir, 1)
			require.NoError(t, server.Process.Kill())
			if code, said := p.ended(); code != exitStopped {
				t.Errorf("exit code %d\n%s", code, said)
			}
			f := findings(t, dir)
			if f.Ending == nil || f.Ending.Outcome != measure.StoppedByRule || f.Ending.Reason != name {
				t.Errorf("it ended by %+v", f.Ending)
			}
			if code, _ := weir(t, "report", dir); code != exitStopped {
				t.Errorf("the report's exit code is %d", code)
			}
		})
	}
}

// A run that fails before it measured does not change runs/latest, and leaves no folder.
func TestLatestIsTheLastThatMeasured(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	short := []string{"run", "--target", "simulated://x?service=1ms", "--clients", "1", "--duration", "1s", "--set", "load.ramp=0s", "--set",
		"load.warmup=0s"}
	latest := func() string {
		to, _ := os.Readlink(filepath.Join(dir, "runs", "latest")) // there may be no such link
		return to
	}
	broken := func(args ...string) {
		t.Helper()
		before := latest()
		if code, said := start(t, dir, "weir", append([]string{"run", "--target", "http://127.0.0.1:1/"},
			args...)...).ended(); code != exitError {
			t.Fatalf("exit code %d\n%s", code, said)
		}
		if now := latest(); now != before {
			t.Errorf("runs/latest went from %q to %q", before, now)
		}
	}
	broken()
	if entries, err := os.ReadDir(filepath.Join(dir, "runs")); err == nil && len(entries) > 0 {
		t.Errorf("it left %v", entries)
	}
	start(t, dir, "weir", short...).ended()
	if now := latest(); !strings.HasPrefix(now, "x-") {
		t.Errorf("runs/latest is %q after a run that measured", now)
	}
	broken()
	broken("--repeat", "2")
	start(t, dir, "weir", append(short, "--repeat", "2", "--set", "name=both")...).ended()
	if now := latest(); !strings.HasPrefix(now, "both-") {
		t.Errorf("runs/latest is %q after a campaign", now)
	}
}

// --fail-on sets the state from which on a result fails. The run "suspect" held one of two steps,
// and the run "invalid" held no step.
func TestFailOn(t *testing.T) {
	t.Parallel()
	suspect, invalid := filepath.Join(t.TempDir(), "suspect"), filepath.Join(t.TempDir(), "invalid")
	for _, dir := range []string{suspect, invalid} {
		require.NoError(t, os.CopyFS(dir, os.DirFS("../../loadtest/results/testdata/interrupted")))
	}
	require.NoError(t, os.WriteFile(filepath.Join(invalid, results.IntervalsFile), nil, 0o600))
	for _, c := range []struct {
		dir, on string
		want    exitCode
	}{
		{suspect, "", exitFine}, {suspect, "suspect", exitInvalid}, {suspect, "invalid", exitFine}, {suspect, "never", exitFine},
		{invalid, "", exitInvalid}, {invalid, "suspect", exitInvalid}, {invalid, "never", exitFine},
		{suspect, "sometimes", exitUsage},
	} {
		args := []string{"report", c.dir}
		if c.on != "" {
			args = append(args, "--fail-on", c.on)
		}
		if code, said := weir(t, args...); code != c.want {
			t.Errorf("%s --fail-on %s: exit code %d, want %d\n%s", filepath.Base(c.dir), c.on, code, c.want, said)
		}
	}
	if f := findings(t, suspect); f.Validity.Status != "suspect" || f.Ending.Outcome != measure.Interrupted {
		t.Errorf("%s, ended by %+v", f.Validity.Status, f.Ending)
	}
	for on, want := range map[string]exitCode{"suspect": exitInvalid, "invalid": exitFine} {
		if code, said := weir(t, "compare", suspect, suspect, "--fail-on", on); code != want {
			t.Errorf("compare --fail-on %s: exit code %d, want %d\n%s", on, code, want, said)
		}
	}
}

// It is not an error of a command that has measured if the reader of its output exits before the
// end, as head does.
func TestReaderThatGoesAway(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	read, write, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "weir", "run", "-q", "--fail-on", "never", "--target", "simulated://x?service=1ms", "--clients",
		"1", "--duration", "1s", "--out", dir)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = write, &said
	require.NoError(t, errors.Join(read.Close(), cmd.Start(), write.Close()))
	if err := cmd.Wait(); err != nil || said.String() != "" {
		t.Errorf("%v: %s", err, said.String())
	}
	findings(t, dir)
}

// A campaign has the exit code of its worst run, and a signal takes precedence over all other
// codes.
func TestRanksOfExitCodes(t *testing.T) {
	for _, c := range []struct{ worse, than exitCode }{
		{exitMissed, exitFine}, {exitInvalid, exitMissed}, {exitStopped, exitInvalid}, {exitError, exitStopped}, {exitInterrupt, exitError},
		{exitTerminated, exitError},
	} {
		if c.than.worse(c.worse) != c.worse || c.worse.worse(c.than) != c.worse {
			t.Errorf("%d does not count more than %d", c.worse, c.than)
		}
	}
	worst := exitFine
	for _, code := range []exitCode{exitMissed, exitStopped, exitFine, exitInvalid} {
		worst = worst.worse(code)
	}
	if worst != exitStopped {
		t.Errorf("the worst is %d", worst)
	}
}

// The tables in the docs and in the help are the same as the table in the code.
func TestExitCodesAreDocumented(t *testing.T) {
	page := require.File(t, "../../docs/seeing.md")
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (.*) \|$`).FindAllStringSubmatch(string(page), -1)
	code, help := weir(t, "help", "exit-codes")
	if code != exitFine || len(rows) != len(exitCodes()) {
		t.Fatalf("exit code %d, %d rows", code, len(rows))
	}
	for i, c := range exitCodes() {
		number := strconv.Itoa(int(c.code))
		if rows[i][1] != number || strings.ReplaceAll(rows[i][2], "`", "") != c.means {
			t.Errorf("docs/seeing.md: %q, want %s: %s", rows[i][0], number, c.means)
		}
		if c.code != exitFine && exitFine.worse(c.code) != c.code || !regexp.MustCompile(`(?m)^ +`+number+`  `).MatchString(help) {
			t.Errorf("%d has no rank, or is not in the help:\n%s", c.code, help)
		}
	}
}

// Calibrate and commands that wait have the same exit codes as runs.
func TestCalibrateTerminated(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "curl")
	s := labtest.Start(t, lab.NginxConfig{})
	dir := filepath.Join(t.TempDir(), "out")
	p := started(t, "calibrate", s.URL, "--rounds", "90", "--clients", "1", "--duration", "300ms", "--set", "load.warmup=100ms", "--out", dir)
	untilHeld(t, filepath.Join(dir, "curl"), 1)
	p.send(t, syscall.SIGTERM)
	ended := time.Now()
	if code, said := p.ended(); code != exitTerminated {
		t.Errorf("exit code %d after %v\n%s", code, time.Since(ended), said)
	}
	if _, err := os.Stat(filepath.Join(dir, "calibration.json")); err != nil {
		t.Error(err)
	}
}

// Services exit with 0 when a service manager ends them, even if the coordinator is unreachable or
// waits as a standby.
func TestServicesEndWithZero(t *testing.T) {
	t.Parallel()
	url, served := servedUntilKilled(t)
	require.NoError(t, served.Process.Signal(syscall.SIGTERM))
	if err := served.Wait(); err != nil {
		t.Errorf("weir serve %s: %v", url, err)
	}
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "a"}, {Name: "b"}}})
	require.NoError(t, r.Site("a").Stop())
	require.NoError(t, r.Coordinator().Kill())
	require.NoError(t, r.Site("b").Stop())
	require.NoError(t, r.Coordinator().Start(t.Context()))
	require.NoError(t, r.Coordinator().Stop())
}

// A standby that waits ends in the same way.
func TestAStandbyEndsWithZero(t *testing.T) {
	t.Parallel()
	db := labtest.Start(t, lab.PostgreSQLConfig{Careless: true}).URL
	dir := t.TempDir()
	state := filepath.Join(dir, "active")
	const command = "exec weir coordinator --listen 127.0.0.1:0 "
	active := start(t, dir, "sh", "-c", command+"--state active --db "+db)
	require.Eventually(t, "the coordinator has made its keys", func() bool {
		_, err := os.Stat(filepath.Join(state, "admin.token"))
		return err == nil
	})
	require.NoError(t, os.CopyFS(filepath.Join(dir, "other"), os.DirFS(state)))
	standby := start(t, dir, "sh", "-c", command+"--state other --standby --db "+db+" 2>log")
	require.Eventually(t, "the standby waits", func() bool {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		return strings.Contains(string(log), "standby: waiting for the database")
	})
	for _, p := range []*process{standby, active} {
		p.send(t, syscall.SIGTERM)
		if code, said := p.ended(); code != exitFine {
			t.Errorf("%s: exit code %d\n%s", p.Args, code, said)
		}
	}
}
