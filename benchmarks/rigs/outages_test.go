package rigs

import (
	"fmt"
	"syscall"
	"time"

	"weir/lab"
)

// outageRigs returns the rigs about services that are unavailable for a time.
func outageRigs() []rig {
	return []rig{
		{
			name: "away-in-step", short: true, needs: []string{"lighttpd"},
			situation: "lighttpd is killed in the second of three steps of 4 s and restarted after 2.3 s.",
			truth:     "An outage of 2.3 s; the step is excluded.",
			play:      awayInStep,
		}, {
			name: "xrootd-away-in-step", needs: []string{"xrootd"},
			situation: "XRootD (root://) is killed in the second of three steps of 4 s and restarted after about 2 s.",
			truth:     "An outage of 2 s or slightly more in one step.",
			play:      xrootdAway,
		}, {
			name: "killed-in-step-2", needs: []string{"apache2"},
			situation: "Apache is killed in the second of three steps and not restarted.",
			truth:     "Only one step was served; the command fails.",
			play: func(s *stage) {
				w, d := s.apache(16, 1<<20)
				s.killed(w, 2, func() { _ = d.kill() })
			},
		}, {
			name: "killed-in-step-1", needs: []string{"nginx"},
			situation: "nginx is killed in the first of three steps and not restarted.",
			truth:     "The service ran for 1.5 s: no capacity is stated, and the command fails.",
			play: func(s *stage) {
				w, sys := s.nginx(lab.NginxConfig{}, 16, 1<<20)
				s.killed(w, 1, func() { sys.Kill() })
			},
		}, {
			name:      "server-stopped",
			situation: "nginx is stopped (SIGSTOP) for 2 s in the second of three steps of 4 s. No operation fails.",
			truth:     "An outage of 2 s; the step is excluded.",
			needs:     []string{"nginx"},
			play:      serverStopped,
		}, {
			name:      "never-answers",
			situation: "The server accepts connections and never responds; the timeout is 1 s.",
			truth:     "All operations time out.",
			play:      neverAnswers,
		}, {
			name:      "away-often",
			situation: "The server resets all connections and is down for 0.8 s, twice in each of two steps of 4 s.",
			truth:     "Each step lacks 1.6 s of service.",
			play:      awayTwice,
		},
	}
}

// during runs weir on a scenario and calls do in a step, a second after its hold began.
func (s *stage) during(scenario string, number int, do func() error) *ran {
	r := s.begin(scenario, how{})
	r.at(number, 1500*time.Millisecond)
	if err := do(); err != nil {
		_ = r.cmd.Process.Kill()
		r.wait()
		s.must(err)
	}
	return r.wait()
}

func awayInStep(s *stage) {
	away := 2300 * time.Millisecond
	w, d := s.lighttpd(16, 1<<20, "")
	files := s.list(w, true)
	leave := func() error {
		if err := d.kill(); err != nil {
			return err
		}
		begin := time.Now()
		s.sleep(away)
		defer func() { away = time.Since(begin) }() // including the start
		return d.start()
	}
	r := s.during(reads(w, files, "2, 4, 8", "4s", ""), 2, leave)
	s.totals(r)
	s.away(r, 2, away.Seconds())
	if *fullFlag {
		left := make(chan error, 1)
		time.AfterFunc(time.Second, func() { left <- leave() })
		s.ask(wrk(), w.file(), 4, 4)
		s.must(<-left)
	}
	s.expect(!r.excludes(1) && !r.excludes(3), "steps 1 and 3 must count")
	s.expect(len(r.outages()) == 1 && r.outages()[0].Class == "refused", "one outage of class refused expected")
}

func xrootdAway(s *stage) {
	w, sys := s.xrootd(16, 1<<20)
	files := s.list(w, true)
	var away time.Duration // including the start
	r := s.during(reads(w, files, "2, 4, 8", "4s", ""), 2, func() error {
		begin := time.Now()
		defer func() { away = time.Since(begin) }()
		sys.Kill()
		s.sleep(1500 * time.Millisecond)
		return sys.Restart(s.ctx)
	})
	s.totals(r)
	s.away(r, 2, away.Seconds())
}

// killed ends the server permanently, a second into the hold of a step.
func (s *stage) killed(w *site, number int, kill func()) {
	files := s.list(w, true)
	r := s.during(reads(w, files, "2, 4, 8", "3s", ""), number, func() error {
		kill()
		return nil
	})
	s.totals(r)
	s.fails(r)
	s.expect(len(r.outages()) > 0, "an outage expected")
	for n := number; n <= 3; n++ {
		s.expect(r.step(n).Step == 0 || r.excludes(n), "step %d must not count", n)
	}
	s.expect(r.status() == "invalid", "invalid expected, is %s", r.status())
	s.noCapacity(r)
}

func serverStopped(s *stage) {
	w, sys := s.nginx(lab.NginxConfig{}, 16, 1<<20)
	files := s.list(w, true)
	stop := func() error {
		if err := sys.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		s.sleep(2 * time.Second)
		return sys.Signal(syscall.SIGCONT)
	}
	r := s.during(reads(w, files, "2, 4, 8", "4s", ""), 2, stop)
	if *fullFlag {
		left := make(chan error, 1)
		time.AfterFunc(time.Second, func() { left <- stop() })
		s.ask(wrk(), w.file(), 4, 4)
		s.must(<-left)
	}
	s.away(r, 2, 2)
}

func neverAnswers(s *stage) {
	w := s.faulty(spec{Mute: true})
	s.ask(wrk(), w.file(), 4, 3)
	r := s.read(w, "2, 4", "3s", ", timeout: 1s")
	s.invalid(r)
	s.noCapacity(r)
	s.expect(r.findings == nil || r.errors("timeout") > 0, "errors of class timeout expected")
}

func awayTwice(s *stage) {
	port := s.freePort()
	// A step is 4.5 s; its hold begins after 0.5 s.
	w := s.faulty(spec{Address: "127.0.0.1:" + port, Delay: ms(5), Away: []window{span(1.2, 0.8), span(3.2, 0.8), span(5.7, 0.8),
		span(7.5, 0.8)}})
	r := s.read(w, "4, 8", "4s", "")
	s.totals(r)
	for n := 1; n <= 2; n++ {
		s.away(r, n, 1.6)
	}
	s.noCapacity(r)
}

// stallRigs returns the rigs about coordinated omission: a stall delays few requests of a closed
// load, and many of the requests that an open load would have sent.
func stallRigs() []rig {
	return []rig{
		{
			name:      "stall-closed",
			situation: "A server with a response time of 10 ms stalls for 2 s of 8 s; ten clients, closed load.",
			truth:     "Ten of about 5000 operations took 2 s: p99 is near 10 ms, p99.9 is 2 s.",
			play:      stallClosed,
		}, {
			name:      "stall-open",
			situation: "The same stall under open load, 50 arrivals/s.",
			truth:     "A quarter of the arrivals waited 0 to 2 s: p99 is 1.92 s, p99.9 is 2 s.",
			play:      stallOpen,
		}, {
			name: "hung-request", short: true,
			situation: "A server with a response time of 10 ms never answers one request of four clients, a second into a step of 4 s.",
			truth:     "Three clients go on. The load generator is not to blame.",
			play:      hungRequest,
		},
	}
}

// stalls returns the spec of a server that stalls for 2 s.
func stalls() spec { return spec{Delay: ms(10), Size: 4096, Stalls: []window{span(3, 2)}} }

func stallClosed(s *stage) {
	w := s.faulty(stalls())
	r := s.read(w, "10", "8s", "")
	s.askOn(wrk(), stalls(), 10, 8)
	s.quantiles(r, 0.01, 0.4, 1.7, 2.4)
}

func hungRequest(s *stage) {
	w := s.faulty(spec{Delay: ms(10), Size: 4096, HangAt: 500})
	r := s.read(w, "4", "4s", "")
	s.totals(r)
	s.expect(r.check("Little's law") == "ok", "no doubt of Little's law expected, is %q", r.check("Little's law"))
	s.expect(len(r.outages()) == 0, "no outage expected: three clients were served")
	s.between("files/s", r.best().Operations, 250, 390)
}

func stallOpen(s *stage) {
	w, files := s.faultyFiles(stalls())
	r := s.run(fmt.Sprintf("target: %s\n%sworkload: {kind: read}\nload: {rate: 50/s, duration: 8s, %s}\n", w.url, files, brief))
	s.askOn(hey(50), stalls(), 10, 8)
	s.quantiles(r, 1.7, 2.15, 1.8, 2.4)
}

// quantiles expects p99 and p99.9 of the only step in ranges.
func (s *stage) quantiles(r *ran, p99from, p99to, p999from, p999to float64) {
	s.fit(r)
	q := r.best().Latency
	if q == nil {
		s.expect(false, "latencies expected")
		return
	}
	s.between("p99 in s", q.P99, p99from, p99to)
	s.between("p99.9 in s", q.P999, p999from, p999to)
	s.notValid(r)
	if *fullFlag && len(s.shown) > 0 {
		r.title = fmt.Sprintf("p99 %.3g s, p99.9 %.3g s", q.P99, q.P999)
	}
}
