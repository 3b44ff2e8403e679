package rigs

import (
	"fmt"
	"time"
)

// noiseRigs returns the rigs about noise, and about other programs on the machine.
func noiseRigs() []rig {
	all := []rig{
		{
			name:      "flat-noise",
			situation: "A server with 30 MB/s in total, varied randomly by 15% each half second; 2 to 32 clients.",
			truth:     "The curve is flat: no peak and no knee; two clients suffice.",
			play:      func(s *stage) { flatNoise(s, 1) },
		}, {
			name:      "flat-noise-again",
			situation: "The same with another seed.",
			truth:     "The same.",
			play:      func(s *stage) { flatNoise(s, 2) },
		}, {
			name:      "flat-noise-find",
			situation: "weir find on such a server.",
			truth:     "No optimum inside the tested range; the fewest clients suffice.",
			play:      flatFind,
		}, {
			name:      "two-runs-at-once",
			situation: "Two simultaneous runs, each with its own server on this machine.",
			truth:     "They disturb each other: neither is valid.",
			play:      twoRuns,
		},
	}
	for _, share := range []float64{0.2, 0.5, 0.9} {
		all = append(all, rig{
			name:      fmt.Sprintf("neighbor-%.0f", 100*share),
			situation: fmt.Sprintf("Another program requests %.0f%% of every core while weir reads from the built-in server.", 100*share),
			truth:     "If the neighbor certainly cost more than 15%, the run is not valid.",
			play:      func(s *stage) { neighbors(s, share) },
		})
	}
	return all
}

func flatNoise(s *stage, seed uint64) {
	w := s.faulty(spec{Total: 30e6, Noise: 0.15, Seed: seed})
	r := s.read(w, "2, 4, 8, 16, 32", "3s", "")
	s.naive = append(s.naive, "largest mean: "+bits(r.best().Throughput)+fmt.Sprintf(" with %d clients", r.best().Clients))
	s.fit(r)
	s.flat(r, 2)
	s.limited(r, "inside the server", "unknown")
}

func flatFind(s *stage) {
	w, files := s.faultyFiles(spec{Total: 30e6, Noise: 0.1, Seed: 3})
	r := s.runAs(fmt.Sprintf("target: %s\n%sworkload: {kind: read}\n", w.url, files),
		how{verb: "find", flags: []string{"--time", "60s", "--duration", "2s", "--min", "2", "--max", "64"}})
	s.naive = append(s.naive, "largest mean: "+bits(r.best().Throughput)+fmt.Sprintf(" with %d clients", r.best().Clients))
	s.flat(r, 2)
}

// builtIn returns a scenario in which four clients read from the built-in server as fast as
// possible.
func builtIn(hold string) string {
	return fmt.Sprintf("target: built-in\nworkload: {kind: read}\nload: {clients: [4], duration: %s, %s}\n", hold, brief)
}

func neighbors(s *stage, share float64) {
	alone := s.run(builtIn("3s"))
	s.neighbor(share)
	r := s.run(builtIn("3s"))
	alone.title, r.title = "alone", "with it"
	s.totals(r)
	lost := 1 - r.best().Throughput/max(1, alone.best().Throughput)
	if lost > 0.15 && r.best().High < alone.best().Low || share >= 0.5 {
		s.notValid(r)
		s.expect(r.check("quiet machines") != "ok", "the check of quiet machines must not pass: %.0f%% of the throughput is lost", 100*lost)
	}
}

func twoRuns(s *stage) {
	first := s.begin(builtIn("5s"), how{title: "first"})
	second := s.begin(builtIn("5s"), how{title: "second"})
	for _, x := range []*running{first, second} {
		r := x.wait()
		s.totals(r)
		s.notValid(r)
		s.expect(r.check("quiet machines") != "ok", "the check of quiet machines must not pass")
	}
	s.sleep(100 * time.Millisecond) // the servers of the runs end meanwhile
}
