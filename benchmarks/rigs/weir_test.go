package rigs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A ran is a run of weir that has ended.
type ran struct {
	*findings
	title string // if a rig has several runs
	dir   string
	exit  int
	text  string // its output
	sum   totals
	// shares of the CPU that programs other than weir and the rig's servers used meanwhile, and that
	// other guests of the hypervisor used
	foreign, stolen float64
}

// crowded reports whether other programs used so much of the CPU that a warning by the check of
// quiet machines is correct.
func (r *ran) crowded() bool { return r.foreign > 0.15 || r.stolen > 0.03 }

// tooCrowded reports whether other programs used so much of the CPU that the machine causes the
// measured delays.
func (r *ran) tooCrowded() bool { return r.foreign > 0.3 || r.stolen > 0.06 }

// others returns a text with the shares of other programs and guests.
func (r *ran) others() string {
	return fmt.Sprintf("other programs used %.0f%% of the CPU, other guests %.0f%%", 100*r.foreign, 100*r.stolen)
}

// totals are the raw sums of the measurement times of a run, from which a naive tool computes its
// result.
type totals struct {
	moved, done, failed int64
	seconds             float64
}

// how has the settings of a run of weir in addition to its scenario.
type how struct {
	title string
	verb  string   // of the command; default run
	args  []string // instead of the scenario
	flags []string
	wrap  []string // words before the command, such as taskset -c 0
	open  bool     // let weir choose the run directory
}

// A running is a run of weir that has not ended.
type running struct {
	*ran
	cmd   *exec.Cmd
	out   bytes.Buffer
	stage *stage
	watch *others
}

// begin starts a run of weir on a scenario.
func (s *stage) begin(scenario string, h how) *running {
	s.count++
	path := filepath.Join(s.dir, fmt.Sprintf("scenario-%d.yaml", s.count))
	s.must(os.WriteFile(path, []byte("name: rig\n"+scenario), 0o644))
	r := &running{stage: s, ran: &ran{title: h.title, dir: filepath.Join(s.dir, fmt.Sprintf("run-%d", s.count))}}
	argv := append(slices.Clone(h.wrap), s.weir, cmp.Or(h.verb, "run"))
	if h.args == nil {
		h.args = []string{path}
	}
	argv = append(append(argv, h.args...), h.flags...)
	if !h.open {
		argv = append(argv, "--quiet", "--out", r.dir)
	}
	r.cmd = exec.CommandContext(s.ctx, argv[0], argv[1:]...)
	r.cmd.WaitDelay = 5 * time.Second
	r.cmd.Dir = s.dir
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	if h.verb != challengeVerb { // threads end with emulated lines, at which the signal is sent
		r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	}
	r.watch = watchOthers(s.pids...)
	s.must(r.cmd.Start())
	return r
}

// wait returns the run when it has ended.
func (r *running) wait() *ran {
	err := r.cmd.Wait()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		r.stage.must(err)
	}
	r.exit, r.text = r.cmd.ProcessState.ExitCode(), r.out.String()
	if status, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.exit = 128 + int(status.Signal())
	}
	r.foreign, r.stolen = r.watch.shares(r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime())
	r.findings, err = readFindings(r.dir)
	r.stage.must(err)
	r.sum, err = readTotals(r.dir)
	r.stage.must(err)
	r.stage.shown = append(r.stage.shown, r.ran)
	return r.ran
}

// run runs weir on a scenario to its end.
func (s *stage) run(scenario string) *ran { return s.runAs(scenario, how{}) }

func (s *stage) runAs(scenario string, h how) *ran { return s.begin(scenario, h).wait() }

// at waits until the given time has passed since a step began, by the events of the run. It returns
// early if the run ends.
func (r *running) at(number int, after time.Duration) {
	ended := func() bool { return r.cmd.Process.Signal(syscall.Signal(0)) != nil }
	for r.stage.ctx.Err() == nil && !ended() {
		if t := r.began(number); !t.IsZero() {
			r.stage.sleep(time.Until(t.Add(after)))
			return
		}
		r.stage.sleep(5 * time.Millisecond)
	}
}

// began returns the time at which a step began, or the zero time if it has not begun.
func (r *running) began(number int) (at time.Time) {
	_ = readLines(filepath.Join(r.dir, "events.jsonl"), func(line []byte) error { // it may not be there yet
		var e struct {
			Time  time.Time `json:"time"`
			Event string    `json:"event"`
			Step  int       `json:"step"`
		}
		if json.Unmarshal(line, &e) == nil && e.Event == "step" && e.Step == number {
			at = e.Time
		}
		return nil
	})
	return at
}

// readTotals sums up the measurement times of a run directory.
func readTotals(dir string) (t totals, err error) {
	seen := map[time.Time]bool{}
	err = readLines(filepath.Join(dir, "intervals.jsonl"), func(line []byte) error {
		var x struct {
			Start    time.Time        `json:"start"`
			Duration float64          `json:"duration_seconds"`
			Phase    string           `json:"phase"`
			Moved    int64            `json:"moved_bytes"`
			Done     int64            `json:"done"`
			Failed   map[string]int64 `json:"failed"`
		}
		if err := json.Unmarshal(line, &x); err != nil || x.Phase != "measure" {
			return err
		}
		t.moved, t.done = t.moved+x.Moved, t.done+x.Done
		for class, n := range x.Failed {
			if class != "canceled" {
				t.failed += n
			}
		}
		if !seen[x.Start] {
			t.seconds += x.Duration
		}
		seen[x.Start] = true
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		return t, nil
	}
	return t, err
}

// line returns the result of a naive tool for the totals.
func (t totals) line() string {
	if t.seconds == 0 {
		return "totals: nothing"
	}
	text := fmt.Sprintf("totals: %s, %s/s", bits(float64(t.moved)/t.seconds), count(float64(t.done)/t.seconds))
	if t.failed > 0 {
		text += fmt.Sprintf(", %d failed", t.failed)
	}
	return text
}

// reports returns weir's reports of the runs on the page.
func (s *stage) reports() (all []string) {
	for _, r := range s.shown {
		all = append(all, r.reports())
	}
	return all
}

// reports returns the headline and its context: validity, limit, outages and exit code. It omits a
// limit of "none" and the exit code 0.
func (r *ran) reports() string {
	var all []string
	if f := r.findings; f != nil {
		all = append(all, fmt.Sprintf("\u201c%s\u201d", f.sentence()), f.status())
		if names := f.troubles(); len(names) > 0 {
			all[1] += " (" + strings.Join(names, ", ") + ")"
		}
		if l := f.limit(); l.Resource != "" && l.Resource != "none" {
			all = append(all, "limit: "+strings.TrimSpace(l.Resource+" "+l.Side))
		}
		all = append(all, f.away()...)
	} else {
		all = append(all, "no findings: "+lastLine(r.text))
	}
	if r.exit != 0 {
		all = append(all, fmt.Sprintf("exit %d", r.exit))
	}
	if r.crowded() {
		all = append(all, "("+r.others()+")")
	}
	text := strings.Join(all, "; ")
	if r.title != "" {
		text = r.title + ": " + text
	}
	return text
}

// away lists the outages, at most three of them with their durations, and the excluded steps.
func (f *findings) away() (all []string) {
	var outages, steps []string
	for i, o := range f.Outages {
		if i == 3 {
			outages[2] += fmt.Sprintf(" and %d more", len(f.Outages)-i)
			break
		}
		outages = append(outages, fmt.Sprintf("%.1f s (%s)", o.Seconds, cmp.Or(o.Class, string(o.Kind))))
	}
	if len(outages) > 0 {
		all = append(all, "outage of "+strings.Join(outages, ", "))
	}
	for _, s := range f.Curve {
		if s.Excluded != "" {
			steps = append(steps, strconv.Itoa(s.Step))
		}
	}
	if len(steps) > 0 {
		all = append(all, "excluded: step "+strings.Join(steps, ", "))
	}
	return all
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
