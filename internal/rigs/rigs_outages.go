package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"weir/lab"
)

// outageRigs are of services that are away.
func outageRigs() []rig {
	return []rig{
		{
			name: "away-in-step", short: true, needs: []string{"lighttpd"},
			situation: "lighttpd is killed in the second of three steps of 4 s and comes back 2.3 s later.",
			truth:     "The service was away for 2.3 s of one step. That step shows nothing of its capacity.",
			play:      awayInStep,
		}, {
			name: "xrootd-away-in-step", needs: []string{"xrootd"},
			situation: "XRootD (root://) is killed in the second of three steps of 4 s and comes back about 2 s later.",
			truth:     "The service was away for 2 s or a little more of one step.",
			play:      xrootdAway,
		}, {
			name: "killed-in-step-2", needs: []string{"apache2"},
			situation: "Apache is killed for good in the second of three steps.",
			truth:     "One step alone was served. Two thirds of the run say nothing of the capacity, and the command fails.",
			play: func(ctx context.Context, s *stage) error {
				w, d, err := s.apache(ctx, 16, 1<<20)
				return s.killed(ctx, w, 2, err, func() { _ = d.kill() })
			},
		}, {
			name: "killed-in-step-1", needs: []string{"nginx"},
			situation: "nginx is killed for good in the first of three steps.",
			truth:     "The service was there for a second and a half. Nothing can be said of its capacity, and the command fails.",
			play: func(ctx context.Context, s *stage) error {
				w, sys, err := s.nginx(ctx, lab.NginxConfig{}, 16, 1<<20)
				return s.killed(ctx, w, 1, err, func() { sys.Kill() })
			},
		}, {
			name:      "server-stopped",
			situation: "nginx is stopped (SIGSTOP) for 2 s of the second of three steps of 4 s. No operation fails.",
			truth:     "For 2 s no operation succeeded though clients tried. That step shows nothing of the capacity.",
			needs:     []string{"nginx"},
			play:      serverStopped,
		}, {
			name:      "never-answers",
			situation: "The server accepts connections and never answers; the timeout is 1 s.",
			truth:     "No operation succeeds: all time out.",
			play:      neverAnswers,
		}, {
			name:      "away-often",
			situation: "The server resets all connections and is away for 0.8 s, twice in each of two steps of 4 s.",
			truth:     "Neither step was served for all of its time: 1.6 s of each are missing.",
			play:      awayTwice,
		},
	}
}

// during runs weir on a scenario and does something in a step, a second after its hold began.
func (s *stage) during(ctx context.Context, scenario string, number int, do func() error) (*ran, error) {
	r, err := s.begin(ctx, scenario, how{})
	if err != nil {
		return nil, err
	}
	r.at(ctx, number, 1500*time.Millisecond)
	if err := do(); err != nil {
		_ = r.cmd.Process.Kill()
		_, _ = r.wait()
		return nil, err
	}
	return r.wait()
}

func awayInStep(ctx context.Context, s *stage) error {
	away := 2300 * time.Millisecond
	w, d, err := s.lighttpd(ctx, 16, 1<<20, "")
	if err != nil {
		return err
	}
	files, err := s.list(w, true)
	if err != nil {
		return err
	}
	leave := func() error {
		if err := d.kill(); err != nil {
			return err
		}
		begin := time.Now()
		sleep(ctx, away)
		defer func() { away = time.Since(begin) }() // with the time that it takes to start
		return d.start(ctx)
	}
	r, err := s.during(ctx, reads(w, files, "2, 4, 8", "4s", ""), 2, leave)
	if err != nil {
		return err
	}
	s.totals(r)
	s.away(r, 2, away.Seconds())
	if !s.short {
		left := make(chan error, 1)
		time.AfterFunc(time.Second, func() { left <- leave() })
		s.ask(ctx, wrk(), w.file(), 4, 4)
		if err := <-left; err != nil {
			return err
		}
	}
	s.expect(!r.excludes(1) && !r.excludes(3), "steps 1 and 3 must count")
	s.expect(len(r.outages()) == 1 && r.outages()[0].Class == "refused", "one outage of class refused expected")
	return nil
}

func xrootdAway(ctx context.Context, s *stage) error {
	w, sys, err := s.xrootd(ctx, 16, 1<<20)
	if err != nil {
		return err
	}
	files, err := s.list(w, true)
	if err != nil {
		return err
	}
	var away time.Duration // with the time that it takes to start
	r, err := s.during(ctx, reads(w, files, "2, 4, 8", "4s", ""), 2, func() error {
		begin := time.Now()
		defer func() { away = time.Since(begin) }()
		sys.Kill()
		sleep(ctx, 1500*time.Millisecond)
		return sys.Restart(ctx)
	})
	if err != nil {
		return err
	}
	s.totals(r)
	s.away(r, 2, away.Seconds())
	return nil
}

// killed ends the server for good a second into the hold of a step.
func (s *stage) killed(ctx context.Context, w *site, number int, err error, kill func()) error {
	if err != nil {
		return err
	}
	files, err := s.list(w, true)
	if err != nil {
		return err
	}
	r, err := s.during(ctx, reads(w, files, "2, 4, 8", "3s", ""), number, func() error {
		kill()
		return nil
	})
	if err != nil {
		return err
	}
	s.totals(r)
	s.fails(r)
	s.expect(len(r.outages()) > 0, "an outage expected")
	for n := number; n <= 3; n++ {
		s.expect(r.step(n).Step == 0 || r.excludes(n), "step %d must not count", n)
	}
	s.expect(r.status() == "invalid", "invalid expected, is %s", r.status())
	s.noCapacity(r)
	return nil
}

func serverStopped(ctx context.Context, s *stage) error {
	w, sys, err := s.nginx(ctx, lab.NginxConfig{}, 16, 1<<20)
	if err != nil {
		return err
	}
	files, err := s.list(w, true)
	if err != nil {
		return err
	}
	stop := func() error {
		if err := sys.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		sleep(ctx, 2*time.Second)
		return sys.Signal(syscall.SIGCONT)
	}
	r, err := s.during(ctx, reads(w, files, "2, 4, 8", "4s", ""), 2, stop)
	if err != nil {
		return err
	}
	if !s.short {
		left := make(chan error, 1)
		time.AfterFunc(time.Second, func() { left <- stop() })
		s.ask(ctx, wrk(), w.file(), 4, 4)
		if err := <-left; err != nil {
			return err
		}
	}
	s.away(r, 2, 2)
	return nil
}

func neverAnswers(ctx context.Context, s *stage) error {
	w, err := s.faulty(spec{Mute: true})
	if err != nil {
		return err
	}
	s.ask(ctx, wrk(), w.file(), 4, 3)
	r, err := s.read(ctx, w, "2, 4", "3s", ", timeout: 1s")
	if err != nil {
		return err
	}
	s.invalid(r)
	s.noCapacity(r)
	s.expect(r.findings == nil || r.errors("timeout") > 0, "errors of class timeout expected")
	return nil
}

func awayTwice(ctx context.Context, s *stage) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	// A step is 4.5 s; its hold begins after 0.5 s.
	w, err := s.faulty(spec{Address: "127.0.0.1:" + port, Delay: ms(5), Away: []window{span(1.2, 0.8), span(3.2, 0.8), span(5.7, 0.8), span(7.5, 0.8)}})
	if err != nil {
		return err
	}
	r, err := s.read(ctx, w, "4, 8", "4s", "")
	if err != nil {
		return err
	}
	s.totals(r)
	for n := 1; n <= 2; n++ {
		s.away(r, n, 1.6)
	}
	s.noCapacity(r)
	return nil
}

// stallRigs are of coordinated omission: a stall delays few requests of a closed load and many of
// those that an open load would have sent.
func stallRigs() []rig {
	return []rig{
		{
			name:      "stall-closed",
			situation: "A server that needs 10 ms for each answer stalls for 2 s of 8; ten clients, closed load.",
			truth:     "Of some 5000 operations ten took 2 s: p99 is near 10 ms, p99.9 is 2 s.",
			play:      stallClosed,
		}, {
			name:      "stall-open",
			situation: "The same stall under open load, 50 arrivals/s.",
			truth:     "A quarter of the arrivals met the stall, and waited 0 to 2 s: p99 is 1.92 s, p99.9 2 s.",
			play:      stallOpen,
		},
	}
}

// stalls is a server that stalls for 2 s.
func stalls() spec { return spec{Delay: ms(10), Size: 4096, Stalls: []window{span(3, 2)}} }

func stallClosed(ctx context.Context, s *stage) error {
	w, err := s.faulty(stalls())
	if err != nil {
		return err
	}
	r, err := s.read(ctx, w, "10", "8s", "")
	if err != nil {
		return err
	}
	if err := s.askOn(ctx, wrk(), stalls(), 10, 8); err != nil {
		return err
	}
	return s.quantiles(r, 0.01, 0.4, 1.7, 2.4)
}

func stallOpen(ctx context.Context, s *stage) error {
	w, files, err := s.faultyFiles(stalls())
	if err != nil {
		return err
	}
	r, err := s.run(ctx, fmt.Sprintf("target: %s\n%sworkload: {kind: read}\nload: {rate: 50/s, hold: 8s, %s}\n", w.url, files, brief))
	if err != nil {
		return err
	}
	if err := s.askOn(ctx, hey(50), stalls(), 10, 8); err != nil {
		return err
	}
	return s.quantiles(r, 1.7, 2.15, 1.8, 2.4)
}

// quantiles expects p99 and p99.9 of the only step in ranges.
func (s *stage) quantiles(r *ran, p99from, p99to, p999from, p999to float64) error {
	if err := fit(r); err != nil {
		return err
	}
	q := r.best().Latency
	if q == nil {
		s.expect(false, "latencies expected")
		return nil
	}
	s.between("p99 in s", q.P99, p99from, p99to)
	s.between("p99.9 in s", q.P999, p999from, p999to)
	s.notValid(r)
	if !s.short && len(s.shown) > 0 {
		r.title = fmt.Sprintf("p99 %.3g s, p99.9 %.3g s", q.P99, q.P999)
	}
	return nil
}
