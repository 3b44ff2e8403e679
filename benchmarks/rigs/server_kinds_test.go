package rigs

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"weir/lab"
)

// serverRigs returns the rigs about servers of different kinds without faults.
func serverRigs() []rig {
	return []rig{
		{
			name: "http-1.0", needs: []string{"python3"},
			situation: "Python's http.server uses HTTP/1.0 and closes each connection, although sessions should be kept.",
			truth:     "As many sessions as operations.",
			play:      http10,
		}, {
			name: "closes-connections", needs: []string{"nginx"},
			situation: "nginx without keep-alive.",
			truth:     "The same with HTTP/1.1.",
			play:      closing,
		}, {
			name: "reads-without-checksums", short: true, needs: []string{"nginx"},
			situation: "Reads from nginx, which provides no checksums; clients think 5 ms.",
			truth:     "Nothing is wrong: valid, and exit code 0.",
			play:      func(s *stage) { healthyOn(s, "read", false) },
		}, {
			name: "writes", needs: []string{"nginx"},
			situation: "Writes to nginx; clients think 5 ms.",
			truth:     "Nothing is wrong: valid, and exit code 0.",
			play:      func(s *stage) { healthyOn(s, "write", false) },
		}, {
			name: "copies-on-disk", short: true,
			situation: "A server writes two copies of each file to its disk before it sends it, while another program sends 200 MB/s over loopback.",
			truth:     "Neither its system calls nor loopback are evidence against the clients: their bytes are not called wrong.",
			play:      copiesOnDisk,
		}, {
			name: "tls", needs: []string{"nginx"},
			situation: "Reads from nginx over TLS.",
			truth:     "Nothing is wrong: valid, and exit code 0.",
			play:      func(s *stage) { healthyOn(s, "read", true) },
		}, {
			name:      "ipv6",
			situation: "The target is http://[::1]:PORT/data.",
			truth:     "It works like any other address.",
			play:      ipv6,
		}, {
			name: "secrets-in-url", short: true,
			situation: "The target has secrets in its query: sig, jwt, apikey and an uncommon name.",
			truth:     "No file of the run directory contains them.",
			play:      secrets,
		},
	}
}

// gentle returns a scenario with few clients that think, so that no CPU is saturated.
func gentle(w *site, files, kind, more string) string {
	return fmt.Sprintf("target: %s\n%sworkload: {kind: %s, think: 5ms%s}\nload: {clients: [1, 2, 4], duration: 3s, %s}\n", w.url, files,
		kind, more, brief)
}

func copiesOnDisk(s *stage) {
	s.chatter(200e6)
	w, files := s.faultyFiles(spec{Copies: 2})
	r := s.run(gentle(w, files, "read", ""))
	is := r.check("both ends agree")
	s.expect(is == "ok" || is == "skipped", "the check that both ends agree must pass or be skipped, is %s", is)
	s.expect(r.status() != "invalid", "the run must not be invalid")
}

// chatter sends a number of bytes per second over another connection on loopback until the rig
// ends.
func (s *stage) chatter(rate int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	from, err := net.Dial("tcp", l.Addr().String())
	s.must(err)
	to, err := l.Accept()
	s.must(err)
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(io.Discard, to) })
	both.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := from.Write(make([]byte, rate/10)); err != nil {
				return
			}
		}
	})
	s.ends(func() error {
		err := errors.Join(from.Close(), to.Close(), l.Close())
		both.Wait()
		return err
	})
}

func http10(s *stage) {
	w, _ := s.python(16, 64<<10, true, 0)
	s.sessions(w)
}

func closing(s *stage) {
	w, _ := s.nginx(lab.NginxConfig{Extra: "keepalive_timeout 0;"}, 16, 64<<10)
	s.sessions(w)
}

// sessions expects a run with as many sessions as operations.
func (s *stage) sessions(w *site) {
	s.ask(ab(), w.file(), 4, 2)
	files := s.list(w, true)
	r := s.run(gentle(w, files, "read", ", verify: 0%"))
	x := r.best()
	s.near("sessions of each operation", x.Sessions/max(1, x.Operations), 1, 0.1)
	s.between("error ratio", x.ErrorRatio, 0, 0.001)
}

func healthyOn(s *stage, kind string, tls bool) {
	c := lab.NginxConfig{}
	c.TLS = tls
	w, sys := s.nginx(c, 16, 64<<10)
	more, files := "", ""
	if tls {
		w.url, more = sys.URLs["https"], fmt.Sprintf("auth: {ca_file: %s}\n", sys.CAFile)
	}
	work := ", size: 64KiB"
	if kind == "read" {
		s.ask(curl(), strings.Replace(w.file(), "https", "http", 1), 1, 2)
		work = ""
		files = s.list(w, true)
	}
	r := s.run(gentle(w, files, kind, work) + more)
	s.expect(!r.peaks(), "no peak expected: clients that think bring more in proportion")
	s.valid(r)
}

func ipv6(s *stage) {
	w := s.faulty(spec{Address: "[::1]:0", Delay: ms(1)})
	files := s.list(w, true)
	text := strings.TrimPrefix(gentle(w, files, "read", ""), "name: rig\n")
	plan := s.runAs(text, how{title: "plan", verb: "plan", open: true})
	s.shown = nil
	s.expect(plan.exit == 0, "weir plan: exit code 0 expected, is %d: %s", plan.exit, lastLine(plan.text))
	// Without the name of a scenario the command derives it from the address.
	r := s.runAs(text, how{title: "run", args: []string{"--target", w.url, "--clients", "2", "--duration", "1s", "--set", "load.ramp=100ms",
		"--set", "load.warmup=100ms", "--set", "files.list=" + listOf(files)}})
	s.expect(r.findings != nil && r.best().Done > 0 && r.best().Errors == 0, "reads without errors expected: exit %d, %s", r.exit,
		lastLine(r.text))
}

// listOf returns the path in a files block.
func listOf(files string) string {
	return strings.TrimSuffix(strings.TrimPrefix(files, "files: {list: "), "}\n")
}

func secrets(s *stage) {
	w, files := s.faultyFiles(spec{Delay: ms(1)})
	hidden := []string{"s3cr3tsig", "s3cr3tjwt", "s3cr3tkey", "s3cr3town"}
	w.url += fmt.Sprintf("?sig=%s&jwt=%s&apikey=%s&zugang=%s", hidden[0], hidden[1], hidden[2], hidden[3])
	r := s.runAs("", how{args: []string{"--target", w.url, "--clients", "1,2", "--duration", "1s", "--set", "load.ramp=100ms", "--set",
		"load.warmup=100ms", "--set", "files.list=" + listOf(files)}})
	if r.findings == nil {
		s.expect(r.exit == 2, "a run, or a refusal with exit code 2, expected: exit %d", r.exit)
	}
	s.must(filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		b, err := os.ReadFile(path)
		for _, word := range hidden {
			s.expect(!strings.Contains(string(b), word), "%s has the secret %s", filepath.Base(path), word)
		}
		return err
	}))
}
