// Package monitor samples hosts and processes during a run: this machine through /proc, others
// through a Prometheus page, XRootD servers through their own statistics. It also measures its own
// cost.
//
// A [Watch] takes one look at each host at every whole second of the wall clock, as the clients'
// intervals are cut. The hosts do not wait for each other; if a host fails or hangs, its samples
// have an error until it is back, and the first sample after that spans the whole gap, so that no
// byte and no CPU second is missing from the sums.
//
// # Limits of the counters of processes
//
// CPU time of a process that ended stays in its group's sum: the samples before, and the usage that
// the kernel adds to a parent in the group that waits for it. Lost are the last moments, at most
// one second, of processes whose parent does not wait for them or lies outside the group, and
// processes that lived between two looks only with such a parent. Processes outside a group's rules
// whose parent ended before the first look cannot be connected to it. CPU time of processes other
// than this process is counted in steps of 10 ms.
//
// Read and Written are rchar and wchar of /proc/PID/io: the bytes moved by read, write, readv,
// writev, sendfile and splice, on files and sockets alike; recv, send, mmap and io_uring are not in
// it.
//
// # Statistics of XRootD servers
//
// A [Reporter] requests the statistics of each server once a second, over one session a server that
// stays open; servers may also send them by themselves (xrd.report), and then no requests are sent.
// The statistics contain CPU time, threads, connections, bytes, logins, redirects and requests
// since they were started. A counter that falls, a late or repeated report and a restart make no
// wrong rates; a server that does not respond is reported once and polled ever less often.
//
// XRootD 5 and 6 add the bytes, reads and writes of a connection to their counters only when it
// ends, or when a report with the option sync is due. Service.Late is set if no such report
// contains it: sums over a whole run are right then, but the figures of a second are not. Logins,
// redirects, opens, errors and CPU time are counted at once.
//
// One request costs the server 7 us of CPU time and weir 14 us, including the reading of the
// response (BenchmarkAsk, XRootD 5.5.3, consecutive requests).
//
// Without root's rights on the server's machine no more of the server is visible. Servers on this
// machine are found in /proc as well, by the port they listen at; their processes are then reported
// once.
package monitor

import (
	"time"
)

// A moment is a point in time by the wall clock, which may jump, and by a clock that does not.
type moment struct {
	wall time.Time
	mono time.Duration
}

// newClock returns a clock that starts now.
func newClock() func() moment {
	start := time.Now()
	return func() moment {
		now := time.Now()
		return moment{wall: now.Round(0), mono: now.Sub(start)}
	}
}

// tooSoon is the shortest wait that is worth a sample: a timer that fires a little before the whole second must not
// give two samples for one second.
const tooSoon = 50 * time.Millisecond

// untilNext returns the time to the next whole second of the wall clock. It is never longer than a
// second and a bit, wherever the clock jumps to meanwhile.
func untilNext(now time.Time) time.Duration {
	wait := now.Truncate(time.Second).Add(time.Second).Sub(now.Round(0))
	if wait < tooSoon {
		wait += time.Second
	}
	return wait
}
