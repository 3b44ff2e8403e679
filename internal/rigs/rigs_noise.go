package main

import (
	"context"
	"fmt"
	"time"
)

// noiseRigs are of noise, and of others on the machine.
func noiseRigs() []rig {
	all := []rig{
		{
			name:      "flat-noise",
			situation: "A server that gives 30 MB/s in all, by chance 15% more or less each half second; 2 to 32 clients.",
			truth:     "The curve is flat: no peak and no knee; two clients are enough.",
			play:      func(ctx context.Context, s *stage) error { return flatNoise(ctx, s, 1) },
		}, {
			name:      "flat-noise-again",
			situation: "The same with other chance.",
			truth:     "The same.",
			play:      func(ctx context.Context, s *stage) error { return flatNoise(ctx, s, 2) },
		}, {
			name:      "flat-noise-find",
			situation: "weir find on such a server.",
			truth:     "There is no optimum inside the tested range; the fewest clients are enough.",
			play:      flatFind,
		}, {
			name:      "two-runs-at-once",
			situation: "Two runs of weir at the same time, each with a server of its own that shares the machine.",
			truth:     "Each run has what the other leaves: neither may be valid.",
			play:      twoRuns,
		},
	}
	for _, share := range []float64{0.2, 0.5, 0.9} {
		all = append(all, rig{
			name:      fmt.Sprintf("neighbor-%.0f", 100*share),
			situation: fmt.Sprintf("Another program wants %.0f%% of every core while weir reads from the built-in server.", 100*share),
			truth:     "The result is what the neighbor left: if it certainly cost more than 15%, the run is not valid.",
			play:      func(ctx context.Context, s *stage) error { return neighbors(ctx, s, share) },
		})
	}
	return all
}

func flatNoise(ctx context.Context, s *stage, seed uint64) error {
	w, err := s.faulty(spec{Total: 30e6, Noise: 0.15, Seed: seed})
	if err != nil {
		return err
	}
	r, err := s.read(ctx, w, "2, 4, 8, 16, 32", "3s", "")
	if err != nil {
		return err
	}
	s.naive = append(s.naive, "largest mean: "+bits(r.best().Throughput)+fmt.Sprintf(" with %d clients", r.best().Clients))
	if err := fit(r); err != nil {
		return err
	}
	s.flat(r, 2)
	return s.limited(r, "inside the server", "unknown")
}

func flatFind(ctx context.Context, s *stage) error {
	w, files, err := s.faultyFiles(spec{Total: 30e6, Noise: 0.1, Seed: 3})
	if err != nil {
		return err
	}
	r, err := s.runAs(ctx, fmt.Sprintf("target: %s\n%sworkload: {kind: read}\n", w.url, files),
		how{verb: "find", flags: []string{"--time", "60s", "--hold", "2s", "--min", "2", "--max", "64"}})
	if err != nil {
		return err
	}
	s.naive = append(s.naive, "largest mean: "+bits(r.best().Throughput)+fmt.Sprintf(" with %d clients", r.best().Clients))
	s.flat(r, 2)
	return nil
}

// builtIn reads from the built-in server with four clients, as fast as it goes.
func builtIn(hold string) string {
	return fmt.Sprintf("target: built-in\nworkload: {kind: read}\nload: {clients: [4], hold: %s, %s}\n", hold, brief)
}

func neighbors(ctx context.Context, s *stage, share float64) error {
	alone, err := s.run(ctx, builtIn("3s"))
	if err != nil {
		return err
	}
	if err := s.neighbor(share); err != nil {
		return err
	}
	r, err := s.run(ctx, builtIn("3s"))
	if err != nil {
		return err
	}
	alone.title, r.title = "alone", "with it"
	s.totals(r)
	lost := 1 - r.best().Throughput/max(1, alone.best().Throughput)
	if lost > 0.15 && r.best().High < alone.best().Low || share >= 0.5 {
		s.notValid(r)
		s.expect(r.check("quiet machines") != "ok", "the check of quiet machines must not pass: %.0f%% of the throughput is lost", 100*lost)
	}
	return nil
}

func twoRuns(ctx context.Context, s *stage) error {
	first, err := s.begin(ctx, builtIn("5s"), how{title: "first"})
	if err != nil {
		return err
	}
	second, err := s.begin(ctx, builtIn("5s"), how{title: "second"})
	if err != nil {
		_ = first.cmd.Process.Kill()
		_, _ = first.wait()
		return err
	}
	for _, x := range []*running{first, second} {
		r, err := x.wait()
		if err != nil {
			return err
		}
		s.totals(r)
		s.notValid(r)
		s.expect(r.check("quiet machines") != "ok", "the check of quiet machines must not pass")
	}
	sleep(ctx, 100*time.Millisecond) // their servers end
	return nil
}
