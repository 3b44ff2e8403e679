package rigs

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"weir/internal/unit"
)

// A peer is another program for measurements.
type peer struct {
	name string
	argv func(url string, clients, seconds int) []string
	read []figure
}

// A figure is the format of one number in the output of a peer: a group of a pattern.
type figure struct {
	pattern string
	as      string // with %s for the group
}

// wrk, ab, hey and curl return peers for these programs, as Debian packages them.
func wrk() peer {
	return peer{"wrk", func(url string, clients, seconds int) []string {
		return []string{"wrk", "-t1", "-c" + strconv.Itoa(clients), "-d" + strconv.Itoa(seconds) + "s", "--latency", url}
	}, []figure{
		{`Requests/sec:\s+(\S+)`, "%s/s"}, {`Transfer/sec:\s+(\S+)`, "%s/s"}, {`99%\s+(\S+)`, "p99 %s"},
		{`errors: connect ([1-9]\d*)`, "%s connect errors"}, {`errors: .* read ([1-9]\d*)`, "%s read errors"},
		{`errors: .* write ([1-9]\d*)`, "%s write errors"}, {`errors: .* timeout ([1-9]\d*)`, "%s timeouts"},
		{`Non-2xx or 3xx responses: (\d+)`, "%s not 2xx"},
	}}
}

func ab() peer {
	return peer{"ab", func(url string, clients, seconds int) []string {
		return []string{"ab", "-q", "-r", "-k", "-c", strconv.Itoa(clients), "-t", strconv.Itoa(seconds), "-n", "500000", url}
	}, []figure{
		{`Requests per second:\s+(\S+)`, "%s/s"}, {`Transfer rate:\s+(\S+)`, "%s kB/s"}, {`99%\s+(\S+)`, "p99 %s ms"},
		{`Failed requests:\s+([1-9]\d*)`, "%s failed"}, {`Non-2xx responses:\s+(\d+)`, "%s not 2xx"},
	}}
}

func hey(rate int) peer {
	return peer{"hey", func(url string, clients, seconds int) []string {
		argv := []string{"hey", "-z", strconv.Itoa(seconds) + "s", "-c", strconv.Itoa(clients), "-t", "10"}
		if rate > 0 {
			argv = append(argv, "-q", strconv.Itoa(rate/clients))
		}
		return append(argv, url)
	}, []figure{{`Requests/sec:\s+(\S+)`, "%s/s"}, {`99%+ in (\S+)`, "p99 %s s"}, {`Slowest:\s+(\S+)`, "slowest %s s"},
		{`\[(5\d\d)\]`, "answers %s"}}}
}

func curl() peer {
	return peer{"curl", func(url string, _, seconds int) []string {
		return []string{"curl", "-sS", "-m", strconv.Itoa(seconds), "-o", "/dev/null", "-w",
			"code %{http_code} bytes %{size_download} speed %{speed_download}\n", url}
	}, []figure{{`code (\d+)`, "status %s"}, {`bytes (\d+)`, "%s bytes"}, {`speed (\d+)`, "%s B/s"}}}
}

// ask adds the result of a peer to the reports of naive tools. A missing peer is left out. If a
// peer prints no figure, only its name and, if it failed, its exit code are added.
func (s *stage) ask(p peer, url string, clients, seconds int) {
	if !*fullFlag {
		return
	}
	argv := p.argv(url, clients, seconds)
	path, err := program(argv[0])
	if err != nil {
		return
	}
	cmd := exec.CommandContext(s.ctx, path, argv[1:]...)
	out, err := cmd.CombinedOutput()
	var found []string
	for _, f := range p.read {
		if m := regexp.MustCompile(f.pattern).FindSubmatch(out); m != nil {
			found = append(found, fmt.Sprintf(f.as, m[1]))
		}
	}
	if err != nil {
		found = append(found, fmt.Sprintf("exit %d", cmd.ProcessState.ExitCode()))
	}
	s.naive = append(s.naive, p.name+": "+strings.Join(found, ", "))
}

// askOn runs a peer on a fault server of its own, whose schedule begins anew.
func (s *stage) askOn(p peer, c spec, clients, seconds int) {
	if *fullFlag {
		w := s.faulty(c)
		s.ask(p, w.file(), clients, seconds)
		w.stop()
	}
}

// totals adds the raw totals of a run to the reports of naive tools.
func (s *stage) totals(r *ran) { s.naive = append(s.naive, r.sum.line()) }

func bits(x float64) string  { return unit.Bits(x) }
func count(x float64) string { return unit.Count(x) }
