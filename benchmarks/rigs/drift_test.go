package rigs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"weir/lab"
)

// driftRigs returns the rigs about services, and about runs, that change during the measurement.
func driftRigs() []rig {
	unsteady := func(c spec) func(s *stage) {
		return func(s *stage) { drifts(s, c) }
	}
	return []rig{
		{
			name:      "throttled-after-burst",
			situation: "After 100 MB, in the middle of a step of 8 s, the rate is limited to 5 MB/s.",
			truth:     "The sustained rate is 5 MB/s, not the mean of the step.",
			play:      unsteady(spec{Total: 5e6, Burst: 100e6, PerConn: 6e6}),
		}, {
			name:      "half-speed",
			situation: "The service slows to half its rate in the middle of a step of 8 s.",
			truth:     "The mean of the step is neither of the two rates.",
			play:      unsteady(spec{Total: 40e6, Half: ms(4500)}),
		}, {
			name:      "slow-start",
			situation: "The service takes 5 s of a step of 8 s to reach its full rate.",
			truth:     "The mean of the step is below the rate of the warm service.",
			play:      unsteady(spec{Total: 40e6, Slow: ms(5500)}),
		}, {
			name:      "leak",
			situation: "Each GET makes the next one 20 us slower.",
			truth:     "The service keeps slowing down: the mean depends on the measurement time.",
			play:      unsteady(spec{Delay: ms(2), Grow: ms(0.02)}),
		}, {
			name:      "cold-cache",
			situation: "The first read of each of 4000 files takes 10 ms, later ones 0.5 ms; random order.",
			truth:     "The cache warms up during the step: the mean represents no state of the service.",
			play:      unsteady(spec{Files: 4000, Size: 4096, Delay: ms(0.5), Cold: ms(10)}),
		}, {
			name:      "cold-first-load",
			situation: "The first read of each of 400 files takes 50 ms, later ones 0.5 ms; random order; 1, 8 and 32 clients for 4 s each.",
			truth:     "The cache fills between the loads: 8 clients get more than 8 times the throughput of one. The run is not valid.",
			play:      coldFirstLoad,
		}, {
			name:      "ages",
			situation: "The response time grows by 1% of 10 ms each second; 2, 4, 6 and 8 clients for 8 s each.",
			truth:     "No step changes by 10%, the service loses a quarter of its rate from the first to the last: the run is not valid.",
			play:      ages,
		}, {
			name: "too-short", short: true,
			situation: "Two steps of 0.3 s.",
			truth:     "Too short to be valid.",
			play:      tooShort,
		}, {
			name: "six-operations", short: true,
			situation: "A server with a response time of 0.9 s; one client for 3 s, twice.",
			truth:     "Six operations are too few to be valid.",
			play:      sixOperations,
		}, {
			name: "weir-stopped", needs: []string{"nginx"},
			situation: "weir is stopped (SIGSTOP) for 2 s of a step of 5 s.",
			truth:     "That time does not count, or the run is not valid.",
			play:      weirStopped,
		}, {
			name: "stepped-clock", short: true,
			situation: "The wall clock jumps an hour ahead during a run (edited into a run directory).",
			truth:     "The run is not valid; its throughput is unchanged.",
			play:      steppedClock,
		},
	}
}

// drifts holds one step of 8 s and expects that it is not reported as steady.
func drifts(s *stage, c spec) {
	w := s.faulty(c)
	r := s.read(w, "8", "8s", ", verify: 0%")
	s.totals(r)
	s.askOn(wrk(), c, 8, 8)
	x := r.best()
	s.expect(x.Steady == nil || !*x.Steady || r.check("steadiness") == "warn" || r.check("steadiness") == "fail",
		"a step that is not called steady expected")
	s.notValid(r)
}

func ages(s *stage) {
	r := s.read(s.faulty(spec{Delay: ms(10), Ages: 0.01}), "2, 4, 6, 8", "8s", ", verify: 0%")
	s.totals(r)
	s.expect(r.check("steadiness") == "warn", "a warning of the steadiness expected")
	s.notValid(r)
}

func coldFirstLoad(s *stage) {
	r := s.read(s.faulty(spec{Files: 400, Size: 4096, Delay: ms(0.5), Cold: ms(50)}), "1, 8, 32", "4s", ", verify: 0%")
	s.totals(r)
	s.expect(r.check("steadiness") == "warn", "a warning of the steadiness expected")
	s.notValid(r)
}

func tooShort(s *stage) {
	w := s.faulty(spec{Delay: ms(5)})
	r := s.read(w, "2, 4", "300ms", "")
	s.totals(r)
	s.notValid(r)
}

// fewOperations returns a scenario with six operations in total.
func (s *stage) fewOperations(clients string) string {
	w, files := s.faultyFiles(spec{Delay: ms(900)})
	return fmt.Sprintf("target: %s\n%sworkload: {kind: read}\nload: {clients: %s, duration: 3s, ramp: 0s, warmup: 0s, graceful_stop: 2s}\n",
		w.url, files, clients)
}

func sixOperations(s *stage) {
	scenario := s.fewOperations("[1, 1]")
	r := s.run(scenario)
	s.totals(r)
	s.expect(r.sum.done <= 8, "%d operations: the rig is wrong", r.sum.done)
	s.notValid(r)
}

func weirStopped(s *stage) {
	w, _ := s.nginx(lab.NginxConfig{SlowRate: 2 << 20}, 16, 64<<10)
	files := s.list(w, true)
	scenario := fmt.Sprintf("target: %s\n%sworkload: {kind: read, think: 5ms}\nload: {clients: [4], duration: 5s, %s}\n", w.url, files, brief)
	base := s.run(scenario)
	base.title = "without"
	r := s.begin(scenario, how{title: "stopped"})
	r.at(1, 2*time.Second)
	_ = r.cmd.Process.Signal(syscall.SIGSTOP)
	s.sleep(2 * time.Second)
	_ = r.cmd.Process.Signal(syscall.SIGCONT)
	x := r.wait()
	s.totals(x)
	ratio := x.best().Throughput / max(1, base.best().Throughput)
	s.expect(x.status() != "valid" || ratio > 0.9, "valid, with %.0f%% of the throughput that is there", 100*ratio)
	s.expect(len(x.outages()) == 0, "no outage expected: the service was there")
}

func steppedClock(s *stage) {
	w := s.faulty(spec{Delay: ms(2)})
	base := s.read(w, "2, 4", "3s", ", think: 2ms")
	base.title = "before"
	s.must(stepClock(base.dir, 3500*time.Millisecond, time.Hour))
	cmd := s.begin("", how{title: "after", verb: "report", args: []string{base.dir}, open: true})
	cmd.dir = base.dir
	r := cmd.wait()
	s.totals(r)
	s.notValid(r)
	s.expect(r.check("clock") == "warn" || r.check("clock") == "fail", "the check of the clock must not pass")
	if r.exit == 0 {
		s.near("throughput in B/s", r.best().Throughput, base.best().Throughput, 0.05)
	}
}

// stepClock shifts times in the lines of a run directory by a span: all times that are at least
// after later than the first time of their file.
func stepClock(dir string, after, by time.Duration) error {
	for _, name := range []string{"intervals.jsonl", "hosts.jsonl", "events.jsonl"} {
		var first time.Time
		var out bytes.Buffer
		err := readLines(filepath.Join(dir, name), func(line []byte) error {
			var x map[string]json.RawMessage
			if err := json.Unmarshal(line, &x); err != nil {
				return err
			}
			for _, key := range []string{"start", "time"} {
				var t time.Time
				if x[key] == nil || json.Unmarshal(x[key], &t) != nil {
					continue
				}
				if first.IsZero() {
					first = t
				}
				if t.Sub(first) >= after {
					x[key], _ = json.Marshal(t.Add(by))
				}
			}
			b, err := json.Marshal(x)
			out.Write(append(b, '\n'))
			return err
		})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
