package rigs

import (
	"fmt"
	"os"
	"os/exec"

	"weir/lab"
)

// generatorRigs returns the rigs about runs that the clients' own machine limits.
func generatorRigs() []rig {
	return []rig{
		{
			name: "generator-cpu", needs: []string{"taskset"},
			situation: "weir is limited to one core; a simulated service takes 1 ms at any concurrency.",
			truth:     "The generator is the limit, not the service.",
			play:      generatorCPU,
		}, {
			name: "generator-files", short: true, needs: []string{"nginx", "prlimit"},
			situation: "weir has a hard limit of 64 open files and is to run 200 clients.",
			truth:     "The generator states its own limit and does not blame the service.",
			play:      generatorFiles,
		}, {
			name: "generator-ports", needs: []string{"root", "ip", "sysctl"},
			situation: "60 ports for outgoing connections; each read opens one.",
			truth:     "The generator's ports are the limit, not the service.",
			play:      generatorPorts,
		}, {
			name:      "think-time",
			situation: "Clients think 100 ms between reads that take 1 ms.",
			truth:     "The clients' pauses are the limit; throughput is proportional to their number.",
			play:      thinkTime,
		},
	}
}

func generatorCPU(s *stage) {
	r := s.runAs(fmt.Sprintf("target: simulated://s?servers=100000&service=1ms\nworkload: {kind: read, verify: 0}\nload: {clients: [64, "+
		"512, 2048, 8192], duration: 3s, %s}\n", brief), how{wrap: []string{"taskset", "-c", "1"}})
	s.totals(r)
	s.fit(r)
	s.expect(r.limit().Resource == "generator" || r.limit().Side == "client", "the generator as the limit expected, is %q (%s)",
		r.limit().Resource, r.limit().Side)
	s.expect(r.check("generator") != "ok", "the check of the generator must not pass")
	s.notValid(r)
}

func generatorFiles(s *stage) {
	w, _ := s.nginx(lab.NginxConfig{}, 16, 64<<10)
	files := s.list(w, true)
	r := s.runAs(reads(w, files, "20, 200", "2s", ""), how{wrap: []string{"prlimit", "--nofile=64:64"}, flags: []string{"--processes", "1"}})
	if r.findings == nil {
		s.fails(r)
		return
	}
	s.notValid(r)
	s.expect(r.limit().Side != "server", "the service must not be blamed (limit %q)", r.limit().Resource)
}

func generatorPorts(s *stage) {
	name := fmt.Sprintf("weir-rig-%d", os.Getpid())
	if out, err := exec.CommandContext(s.ctx, "ip", "netns", "add", name).CombinedOutput(); err != nil {
		s.cannot("no network namespace: %s", out)
	}
	s.ends(func() error { return exec.Command("ip", "netns", "delete", name).Run() })
	wrap := []string{"ip", "netns", "exec", name}
	for _, argv := range [][]string{{"ip", "link", "set", "lo", "up"}, {"sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=40000 40059"}} {
		argv = append(append([]string{}, wrap...), argv...)
		if out, err := exec.CommandContext(s.ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
			s.must(fmt.Errorf("%v: %w: %s", argv, err, out))
		}
	}
	w, files := s.faultyFiles(spec{Address: "127.0.0.1:30001"}, wrap...)
	r := s.runAs(reads(w, files, "4, 16, 64", "3s", ", session: fresh"), how{wrap: wrap})
	s.totals(r)
	s.notValid(r)
	s.expect(r.limit().Resource == "ports" || r.check("generator") == "fail" || r.check("generator") == "warn",
		"the generator's ports as the limit expected, is %q", r.limit().Resource)
	s.expect(r.limit().Side != "server", "the service must not be blamed (limit %q)", r.limit().Resource)
}

func thinkTime(s *stage) {
	w := s.faulty(spec{Delay: ms(1)})
	r := s.read(w, "4, 8, 16", "3s", ", think: 100ms")
	s.totals(r)
	s.expect(!r.peaks(), "no peak expected")
	s.near("throughput of 16 clients over that of 4", r.step(3).Throughput/max(1, r.step(1).Throughput), 4, 0.1)
	s.limited(r, "latency", "none")
}
