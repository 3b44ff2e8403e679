package rigs

import (
	"fmt"
	"strings"

	"weir/lab"
)

// brief has the phases of the steps of most rigs, except their duration.
const brief = "ramp: 200ms, warmup: 300ms, graceful_stop: 5s"

// reads returns a scenario that reads whole files in steps.
func reads(w *site, files, clients, hold, more string) string {
	return fmt.Sprintf("target: %s\n%sworkload: {kind: read%s}\nload: {clients: [%s], duration: %s, %s}\n", w.url, files, more,
		clients, hold, brief)
}

// read runs weir with the scenario of reads on the files of w, listed with their sizes.
func (s *stage) read(w *site, clients, hold, more string) *ran {
	return s.run(reads(w, s.list(w, true), clients, hold, more))
}

// faultyFiles starts a faulty server and lists its files with their sizes.
func (s *stage) faultyFiles(c spec, wrap ...string) (w *site, files string) {
	w = s.faulty(c, wrap...)
	return w, s.list(w, true)
}

// errorRigs returns the rigs about operations that fail.
func errorRigs() []rig {
	return []rig{
		{
			name: "one-error-in-500", short: true,
			situation: "A healthy server that responds to 1 of 500 GETs with 500; one client.",
			truth:     "The throughput is that of the same server without errors.",
			play:      oneErrorIn500,
		}, {
			name:      "failing-checksum-queries",
			situation: "6% of checksum requests fail; four clients make no other requests.",
			truth:     "94% of the full rate remains. Time in pauses is reported; above 2% the run is not valid.",
			play:      failingSums,
		}, {
			name: "all-refused", short: true,
			situation: "Nothing listens at the target's port.",
			truth:     "No capacity is stated, the command fails, and few connections are tried.",
			play:      allRefused,
		}, {
			name:      "all-busy",
			situation: "nginx responds with 503 to everything.",
			truth:     "No capacity is stated, the exit code is not 0, and few requests are sent.",
			needs:     []string{"nginx"},
			play:      allBusy,
		}, {
			name:      "errors-at-high-load",
			situation: "A server that responds with 503 above 16 concurrent GETs, with 4, 8 and 48 clients.",
			truth:     "No errors up to 8 clients; with 48 most responses are errors, which do not count as throughput.",
			play:      errorsAtHighLoad,
		}, {
			name:      "hidden-retries",
			situation: "1 of 5 GETs gets 503 with Retry-After: 0; weir tries up to 3 times.",
			truth:     "All reads succeed; the refusal of every fifth request is reported.",
			play:      hiddenRetries,
		},
	}
}

func oneErrorIn500(s *stage) {
	healthy := spec{Delay: ms(1)}
	sick := healthy
	sick.Every = 500
	base, bad := s.pair(healthy, sick, "1", "4s", "")
	s.totals(bad)
	s.askOn(ab(), sick, 1, 3)
	s.expect(bad.best().Errors > 0, "errors expected")
	s.expect(bad.best().Throughput >= 0.9*base.best().Throughput || bad.status() != "valid",
		"valid, though the pauses after errors took throughput from %s to %s", bits(base.best().Throughput), bits(bad.best().Throughput))
	s.expect(bad.best().PausedShare != nil, "the share of time in pauses expected")
}

// pair runs the same load on two fault servers and shows only the second run.
func (s *stage) pair(a, b spec, clients, hold, more string) (first, second *ran) {
	for _, c := range []spec{a, b} {
		w := s.faulty(c)
		first, second = second, s.read(w, clients, hold, more)
		w.stop()
	}
	s.shown = s.shown[len(s.shown)-1:]
	return first, second
}

func failingSums(s *stage) {
	const clients, think = 4, 0.005
	w, files := s.faultyFiles(spec{EverySum: 16})
	r := s.run(fmt.Sprintf("target: %s\n%sworkload: {kind: mix, mix: {checksum: 1}, think: 5ms}\nload: {clients: %d, duration: 4s, %s}\n",
		w.url, files, clients, brief))
	s.totals(r)
	x := r.best()
	s.between("error ratio", x.ErrorRatio, 0.04, 0.09)
	s.notValid(r)
	if x.PausedShare == nil || x.Latency == nil {
		s.expect(false, "the share of time in pauses, and latencies, expected")
		return
	}
	// N = X (R + Z): the time of the clients that is neither operations nor thinking is pauses.
	lost := 1 - (x.Operations/(1-x.ErrorRatio))*(x.Latency.Mean+think)/clients
	s.expect(lost < *x.PausedShare+0.1 || x.Excluded != "" || r.check("Little's law") != "ok",
		"%.0f%% of the clients' time is neither operations nor thinking, but only %.1f%% is said to be pauses", 100*lost, 100**x.PausedShare)
}

// hammered is the largest number of requests per second of a client if a service refuses
// everything.
const hammered = 50

func allRefused(s *stage) {
	address := s.nowhere()
	w := &site{url: "http://" + address + "/data", files: 4, size: 1 << 20}
	s.ask(wrk(), w.file(), 8, 2)
	r := s.read(w, "2, 8", "2s", "")
	s.fails(r)
	s.noCapacity(r)
	s.expect(r.status() == "none" || r.status() == "invalid", "invalid expected, is %s", r.status())
	s.expect(float64(r.sum.failed) <= hammered*5*max(1, r.sum.seconds), "%d attempts in %.0f s: the service is hammered", r.sum.failed,
		r.sum.seconds)
}

func allBusy(s *stage) {
	w, sys := s.nginx(lab.NginxConfig{}, 4, 64<<10)
	w.url = sys.URLs["code"] + "/503"
	s.ask(wrk(), w.file(), 8, 2)
	r := s.read(w, "2, 8", "2s", "")
	s.invalid(r)
	s.noCapacity(r)
	s.expect(float64(r.sum.failed) <= hammered*5*max(1, r.sum.seconds), "%d attempts in %.0f s: the service is hammered", r.sum.failed,
		r.sum.seconds)
}

func errorsAtHighLoad(s *stage) {
	c := spec{Above: 16, Delay: ms(5)}
	w := s.faulty(c)
	r := s.read(w, "4, 8, 48", "3s", "")
	s.askOn(wrk(), c, 48, 3)
	s.between("error ratio of 48 clients", r.step(3).ErrorRatio, 0.05, 1)
	s.between("error ratio of 8 clients", r.step(2).ErrorRatio, 0, 0.01)
	s.notValid(r)
	s.expect(r.findings != nil && (r.Optimum == nil || r.Optimum.TestedClients <= 8), "the best load must be one without errors")
	if r.findings != nil {
		for _, b := range r.Boundaries {
			s.expect(!strings.HasPrefix(b.Condition, "error_ratio") || b.To != nil && *b.To == 8, "few errors up to 8 clients expected")
		}
	}
}

func hiddenRetries(s *stage) {
	c := spec{EveryBusy: 5, Delay: ms(5)}
	w := s.faulty(c)
	r := s.read(w, "4", "4s", ", retries: 3")
	st := s.stats(w)
	s.askOn(curlRetry(), c, 1, 5)
	x := r.best()
	s.near("retries of each read", float64(x.Retried+x.Waits)/max(1, float64(x.Done)), float64(st.Busy)/max(1, float64(st.Gets)), 0.2)
}

// curlRetry returns curl with retries, as scripts use it: it does not report the retries.
func curlRetry() peer {
	p := curl()
	p.argv = func(url string, _, seconds int) []string {
		return []string{"curl", "-sS", "-m", fmt.Sprint(seconds), "--retry", "3", "-o", "/dev/null", "-w", "code %{http_code}\n", url, "-o",
			"/dev/null", url, "-o", "/dev/null", url, "-o", "/dev/null", url, "-o", "/dev/null", url}
	}
	return p
}
