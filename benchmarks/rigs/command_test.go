package rigs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// commandRigs returns the rigs about exit codes and about the files that a run leaves behind.
func commandRigs() []rig {
	interrupt := func(sig syscall.Signal) func(s *stage) {
		return func(s *stage) { interrupted(s, sig) }
	}
	return []rig{
		{
			name: "interrupted", short: true,
			situation: "Ctrl-C (SIGINT) in the second of three steps.",
			truth:     "Exit code 130, with findings and a report of what was measured.",
			play:      interrupt(syscall.SIGINT),
		}, {
			name:      "terminated",
			situation: "SIGTERM in the second of three steps.",
			truth:     "Exit code 143, with findings and a report.",
			play:      interrupt(syscall.SIGTERM),
		}, {
			name:      "stop-rule",
			situation: "A server with 50% errors and the rule stop: {error_ratio: 20%}.",
			truth:     "The rule ended the run: neither success nor a usage error.",
			play:      stopRule,
		}, {
			name:      "gate",
			situation: "Six operations, which are too few, with and without --fail-on suspect.",
			truth:     "With the flag a suspect result has exit code 4, without it 0.",
			play:      gate,
		}, {
			name:      "latest-stays",
			situation: "A good run, then one with an unreachable target.",
			truth:     "runs/latest is still the good run, or states why not.",
			play:      latestStays,
		},
	}
}

func interrupted(s *stage, sig syscall.Signal) {
	w, files := s.faultyFiles(spec{Delay: ms(2)})
	r := s.begin(reads(w, files, "1, 2, 4", "3s", ", think: 2ms"), how{})
	r.at(2, 1500*time.Millisecond)
	_ = r.cmd.Process.Signal(sig)
	x := r.wait()
	s.totals(x)
	s.expect(x.exit == 128+int(sig), "exit code %d expected, is %d", 128+int(sig), x.exit)
	s.expect(x.findings != nil && x.step(1).Done > 0, "findings of the first step expected")
	_, err := os.Stat(filepath.Join(x.dir, "report.html"))
	s.expect(err == nil, "a report expected")
}

func stopRule(s *stage) {
	w, files := s.faultyFiles(spec{Every: 2, Delay: ms(2)})
	r := s.run(reads(w, files, "4, 8", "8s", "") + "stop: {error_ratio: 20%}\n")
	s.totals(r)
	s.expect(!slices.Contains([]int{0, 1, 2, 3}, r.exit), "an exit code of its own expected, is %d", r.exit)
	s.expect(r.findings != nil, "findings expected")
	s.notValid(r)
}

func gate(s *stage) {
	scenario := s.fewOperations("2")
	for _, h := range []how{{title: "plain"}, {title: "gate", flags: []string{"--fail-on", "suspect"}}} {
		r := s.runAs(scenario, h)
		s.totals(r)
		want := 0
		if h.flags != nil || r.status() == "invalid" {
			want = 4
		}
		s.notValid(r)
		s.expect(r.exit == want, "%s: exit code %d expected, is %d", h.title, want, r.exit)
	}
}

func latestStays(s *stage) {
	w, files := s.faultyFiles(spec{Delay: ms(2)})
	address := s.nowhere()
	dead := "http://" + address + "/data"
	latest := func() string {
		to, _ := filepath.EvalSymlinks(filepath.Join(s.dir, "runs", "latest")) // "" if it does not exist
		return to
	}
	first := s.runAs(reads(w, files, "2", "1s", ""), how{open: true, title: "first"})
	good := latest()
	if good == "" {
		s.must(fmt.Errorf("the first run left no runs/latest: exit %d, %s", first.exit, lastLine(first.text)))
	}
	// Without a list of files weir first requests a listing from the target, which fails.
	r := s.runAs("target: "+dead+"\nworkload: {kind: read}\nload: {clients: 2, duration: 1s}\n", how{open: true, title: "second"})
	s.fails(r)
	s.expect(latest() == good, "runs/latest must stay at the run that measured")
}
