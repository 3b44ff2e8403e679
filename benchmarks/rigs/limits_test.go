package rigs

import (
	"fmt"
	"time"

	"weir/lab"
)

// limitRigs returns the rigs about services whose bottleneck is known.
func limitRigs() []rig {
	return []rig{
		{
			name: "one-core-by-affinity", needs: []string{"taskset"},
			situation: "A multithreaded server with 3 ms of CPU per GET is pinned to one core; weir has the other.",
			truth:     "One core of the server is the limit.",
			play: func(s *stage) {
				w := s.faulty(spec{Burn: ms(3)}, "taskset", "-c", "0")
				s.bottleneck(w, "1, 2, 4, 8", 333, how{wrap: []string{"taskset", "-c", "1"}}, "core")
			},
		}, {
			name: "single-thread", needs: []string{"python3"},
			situation: "Python's http.server without threads, 3 ms of CPU per GET.",
			truth:     "The server's only thread is the limit.",
			play: func(s *stage) {
				w, _ := s.python(16, 64<<10, false, 3*time.Millisecond)
				s.bottleneck(w, "1, 2, 4, 8", 250, how{}, "core", "threads")
			},
		}, {
			name:      "cpu-shared",
			situation: "Clients without think time and the built-in server share all cores.",
			truth:     "The shared CPU is the limit.",
			play:      cpuShared,
		}, {
			name:      "lock",
			situation: "A server that holds a lock for 4 ms in each GET.",
			truth:     "The lock is the limit, not CPU, disk or network.",
			play: func(s *stage) {
				w := s.faulty(spec{Lock: ms(4)})
				s.bottleneck(w, "1, 2, 4, 8", 230, how{}, "inside the server")
			},
		}, {
			name: "connection-limit", needs: []string{"haproxy"},
			situation: "HAProxy passes four concurrent requests to a server with a response time of 20 ms.",
			truth:     "The connection limit is the bottleneck: 200 requests/s from 4 clients on.",
			play:      connectionLimit,
		}, {
			name: "link", needs: []string{"nginx"},
			situation: "An emulated link of 40 Mbit/s between the clients and nginx.",
			truth:     "The link is the limit, from the first client on or soon after.",
			play:      slowLink,
		}, {
			name: "throttled-address", needs: []string{"lighttpd"},
			situation: "lighttpd limits all clients of an address to 20 MB/s together.",
			truth: "All loads give 20 MB/s, in one burst per second, which is not an outage; two clients suffice. The bursts may hide that " +
				"throughput does not grow.",
			play: throttledAddress,
		},
	}
}

// moreLimitRigs returns the rigs about limits of connections, slots and disks.
func moreLimitRigs() []rig {
	return []rig{
		{
			name:      "throttled-connection",
			situation: "A server limits each connection to 2 MB/s.",
			truth:     "Throughput is proportional to the number of clients; there is no maximum.",
			play:      throttledConnection,
		}, {
			name:      "unfair",
			situation: "A server responds on every second connection after 25 ms, on the others after 1 ms; eight clients.",
			truth:     "Half of the clients make most of the requests; without the difference there is nothing to tell.",
			play:      unfair,
		}, {
			name:      "known-knee",
			situation: "A server with eight slots and a response time of 20 ms, 1 to 32 clients.",
			truth:     "Knee at eight clients and 400 GETs/s; no resource is saturated.",
			play:      knownKnee,
		}, {
			name: "disk", needs: []string{"nginx", "root", "losetup", "mkfs.ext4", "mount", "umount"},
			situation: "nginx reads with O_DIRECT from a loop device limited to 20 MB/s.",
			truth:     "The disk is the limit, not the CPU or a lock.",
			play:      throttledDisk,
		},
	}
}

// bottleneck runs steps of reads on a site and expects the first bottleneck to be one of resources.
//
// most is the number of operations per second that the limit allows. A machine on which other
// programs leave the rig much less cannot play it.
func (s *stage) bottleneck(w *site, clients string, most float64, h how, resources ...string) {
	s.ask(wrk(), w.file(), 4, 2)
	files := s.list(w, true)
	// No checksums are requested: they would use the resource of the server that is to be the limit.
	r := s.runAs(reads(w, files, clients, "3s", ", verify: 0%"), h)
	if x := r.best().Operations; r.findings != nil && x < 0.75*most {
		s.cannot("%.0f operations/s, the limit is %.0f: others on this machine take what the rig needs", x, most)
	}
	s.limited(r, resources...)
}

func cpuShared(s *stage) {
	r := s.run(fmt.Sprintf("target: built-in\nworkload: {kind: read}\nload: {clients: [1, 4, 16, 64, 256], duration: 3s, %s}\n", brief))
	s.totals(r)
	s.expect(r.limit().Side == "both", "side both expected, is %q", r.limit().Side)
	s.limited(r, "cpu")
}

func connectionLimit(s *stage) {
	w := s.faulty(spec{Delay: ms(20)})
	front, _ := s.haproxy(w, w.host()+" maxconn 4")
	s.bottleneck(front, "1, 2, 4, 8, 16", 190, how{}, "inside the server", "connections")
	s.near("rate at the best step", s.shown[0].best().Operations, 190, 0.12)
}

func slowLink(s *stage) {
	w, _ := s.nginx(lab.NginxConfig{}, 16, 256<<10)
	s.ask(curl(), w.file(), 1, 3)
	files := s.list(w, true)
	r := s.run(reads(w, files, "1, 2, 4, 8", "3s", ", verify: 0%") + "link: {rate: 40Mbit/s, rtt: 2ms}\n")
	s.between("throughput in B/s", r.best().Throughput, 4.2e6, 5e6)
	s.limited(r, "network", "network received", "network sent")
}

func throttledAddress(s *stage) {
	w, _ := s.lighttpd(16, 256<<10, "server.kbytes-per-second = 20000")
	s.bottleneck(w, "2, 4, 8, 16", 78, how{}, "inside the server", "unknown")
	s.flat(s.shown[0], 2)
	s.expect(len(s.shown[0].outages()) == 0, "no outage expected: bursts are not one")
}

func throttledConnection(s *stage) {
	w := s.faulty(spec{PerConn: 2e6})
	s.bottleneck(w, "2, 4, 8, 16", 480, how{}, "latency", "none")
	s.expect(!s.shown[0].peaks(), "no peak expected")
}

func unfair(s *stage) {
	fair := s.read(s.faulty(spec{Delay: ms(2)}), "8", "3s", "")
	s.expect(!fair.warns("unequally"), "no warning of unequal service expected")
	s.between("fairness of a server that treats all alike", fair.best().Fairness, 0.97, 1)
	w, files := s.faultyFiles(spec{Delay: ms(1), Lag: ms(24)})
	s.ask(wrk(), w.file(), 8, 2)
	r := s.run(reads(w, files, "8", "3s", ""))
	s.expect(r.warns("unequally"), "a warning of unequal service expected")
	s.between("fairness", r.best().Fairness, 0.3, 0.7)
}

func knownKnee(s *stage) {
	w := s.faulty(spec{Slots: 8, Held: ms(20), Size: 4096})
	s.bottleneck(w, "1, 2, 4, 8, 16, 32", 390, how{}, "inside the server")
	r := s.shown[0]
	s.near("rate at the best step", r.best().Operations, 390, 0.1)
	if r.findings == nil || r.Knee == nil {
		s.expect(false, "a knee expected")
		return
	}
	s.between("knee", r.Knee.Clients, 5, 12)
	s.expect(!r.peaks(), "no peak expected")
}
