package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// commandRigs are of exit codes and of what a run leaves behind.
func commandRigs() []rig {
	interrupt := func(sig syscall.Signal) func(ctx context.Context, s *stage) error {
		return func(ctx context.Context, s *stage) error { return interrupted(ctx, s, sig) }
	}
	return []rig{
		{
			name: "interrupted", short: true,
			situation: "Ctrl-C (SIGINT) in the second of three steps.",
			truth:     "The run did not end as planned: exit code 130, with findings and a report of what was measured.",
			play:      interrupt(syscall.SIGINT),
		}, {
			name:      "terminated",
			situation: "SIGTERM in the second of three steps.",
			truth:     "Exit code 143, with findings and a report.",
			play:      interrupt(syscall.SIGTERM),
		}, {
			name:      "stop-rule",
			situation: "A server with 50% errors and the rule stop: {error_ratio: 20%}.",
			truth:     "The run ended by its rule: neither success nor a usage error.",
			play:      stopRule,
		}, {
			name:      "gate",
			situation: "Six operations, which are too few, with --fail-on suspect and without it.",
			truth:     "A gate for suspect results ends with 4; without it only an invalid one does.",
			play:      gate,
		}, {
			name:      "latest-stays",
			situation: "A good run, then one whose target does not answer at all.",
			truth:     "runs/latest is still the good run, or says why it is not.",
			play:      latestStays,
		},
	}
}

func interrupted(ctx context.Context, s *stage, sig syscall.Signal) error {
	w, files, err := s.faultyFiles(spec{Delay: ms(2)})
	if err != nil {
		return err
	}
	r, err := s.begin(ctx, reads(w, files, "1, 2, 4", "3s", ", think: 2ms"), how{})
	if err != nil {
		return err
	}
	r.at(ctx, 2, 1500*time.Millisecond)
	_ = r.cmd.Process.Signal(sig)
	x, err := r.wait()
	if err != nil {
		return err
	}
	s.totals(x)
	s.expect(x.exit == 128+int(sig), "exit code %d expected, is %d", 128+int(sig), x.exit)
	s.expect(x.findings != nil && x.step(1).Done > 0, "findings of the first step expected")
	_, err = os.Stat(filepath.Join(x.dir, "report.html"))
	s.expect(err == nil, "a report expected")
	return nil
}

func stopRule(ctx context.Context, s *stage) error {
	w, files, err := s.faultyFiles(spec{Every: 2, Delay: ms(2)})
	if err != nil {
		return err
	}
	r, err := s.run(ctx, reads(w, files, "4, 8", "8s", "")+"stop: {error_ratio: 20%}\n")
	if err != nil {
		return err
	}
	s.totals(r)
	s.expect(!slices.Contains([]int{0, 1, 2, 3}, r.exit), "an exit code of its own expected, is %d", r.exit)
	s.expect(r.findings != nil, "findings expected")
	s.notValid(r)
	return nil
}

func gate(ctx context.Context, s *stage) error {
	scenario, err := s.fewOperations("2")
	if err != nil {
		return err
	}
	for _, h := range []how{{title: "plain"}, {title: "gate", flags: []string{"--fail-on", "suspect"}}} {
		r, err := s.runAs(ctx, scenario, h)
		if err != nil {
			return err
		}
		s.totals(r)
		want := 0
		if h.flags != nil || r.status() == "invalid" {
			want = 4
		}
		s.notValid(r)
		s.expect(r.exit == want, "%s: exit code %d expected, is %d", h.title, want, r.exit)
	}
	return nil
}

func latestStays(ctx context.Context, s *stage) error {
	w, files, err := s.faultyFiles(spec{Delay: ms(2)})
	if err != nil {
		return err
	}
	address, err := s.nowhere()
	if err != nil {
		return err
	}
	dead := "http://" + address + "/data"
	latest := func() string {
		to, _ := filepath.EvalSymlinks(filepath.Join(s.dir, "runs", "latest")) // "" where there is none
		return to
	}
	first, err := s.runAs(ctx, reads(w, files, "2", "1s", ""), how{open: true, title: "first"})
	if err != nil {
		return err
	}
	good := latest()
	if good == "" {
		return fmt.Errorf("the first run left no runs/latest: exit %d, %s", first.exit, lastLine(first.text))
	}
	// Without a list the target is asked for its files first, which fails.
	r, err := s.runAs(ctx, "target: "+dead+"\nworkload: {kind: read}\nload: {clients: 2, hold: 1s}\n", how{open: true, title: "second"})
	if err != nil {
		return err
	}
	s.fails(r)
	s.expect(latest() == good, "runs/latest must stay at the run that measured")
	return nil
}
