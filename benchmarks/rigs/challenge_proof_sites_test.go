package rigs

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weir/internal/unit"
	"weir/lab"
	"weir/lab/labtest"
	"weir/link"
	"weir/link/emulator"
)

// Sites of the proof: A is this system's XRootD, E is XRootD 6, the others are weir serve. F makes no
// third-party copies. D and E are behind a shared trunk.
const (
	proofSites  = 6
	passiveSite = "F"
)

func proofLines() []link.Named {
	line := func(name string, rate float64, rtt int, trunk string) link.Named {
		return link.Named{Name: name, Spec: link.Spec{Rate: unit.Bitrate(rate), RTT: ms2(rtt), Trunk: trunk}}
	}
	return []link.Named{line("A", 50e6, 4, ""), line("B", 30e6, 10, ""), line("C", 20e6, 20, ""), line("D", 15e6, 4, "wan"),
		line("E", 15e6, 8, "wan"), line("F", 5e6, 30, ""), line("wan", 12e6, 4, "")}
}

// startSites starts the six sites, each behind its line.
func (p *proof) startSites() {
	if _, err := emulator.Best(p.ctx, nil); err != nil {
		p.cannot("%v", err)
	}
	var err error
	p.network, err = emulator.Up(p.ctx, proofLines(), emulator.Options{Mover: []string{p.weir, "mover"}, Seed: 1})
	p.must(err)
	p.ends(p.network.Close)
	for i := range proofSites {
		w := &gridSite{grid: p.grid, name: siteName(i), address: net.JoinHostPort(p.network.Service, "0")}
		switch w.name {
		case "A":
			p.xrootdSite(w, "")
		case "E":
			p.xrootdSite(w, "6")
		default:
			p.weirSite(w)
		}
		p.must(os.MkdirAll(w.spec.Dir, 0o777))
		p.must(os.Chmod(w.spec.Dir, 0o777))
		p.must(w.begin())
		p.Cleanup(w.kill)
		p.sites = append(p.sites, w)
		p.until("site "+w.name+" serves", func() bool {
			c, err := net.DialTimeout("tcp", w.server, time.Second)
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		})
	}
}

// until waits for a condition.
func (s *stage) until(what string, ok func() bool) {
	s.Helper()
	for end := time.Now().Add(time.Minute); !ok(); s.sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("%s: not within a minute", what)
		}
	}
}

// weirSite makes a site of weir serve.
func (p *proof) weirSite(w *gridSite) {
	root := filepath.Join(p.dir, "site-"+w.name)
	w.spec.Dir = filepath.Join(root, "store")
	w.server = net.JoinHostPort(p.network.Site(w.name).Address, gridPort)
	w.log = filepath.Join(p.dir, "log-"+w.name)
	w.command = []string{p.weir, "serve", root, "--listen", w.server, "--public", "--while-stdin"}
	if w.name != passiveSite {
		w.command = append(w.command, "--third-party", "--tpc-allow", "*", "--tpc-private")
	}
}

// untilInput runs a command until its own input ends.
const untilInput = `"$0" "$@" >&2 & echo started; cat; kill -9 $!`

// xrootdSite makes a site of an XRootD. lab configures and tries it, and it then runs behind its line
// with the same command.
func (p *proof) xrootdSite(w *gridSite, version string) {
	s := labtest.Start(p.T, lab.XRootDConfig{Version: version, Copies: true, Extra: "xrd.allow host *\ntpc.trace info\n"})
	proc := filepath.Join("/proc", strconv.Itoa(s.Pids()[0]))
	argv, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	p.must(err)
	env, err := os.ReadFile(filepath.Join(proc, "environ"))
	p.must(err)
	info, err := os.Stat(proc)
	p.must(err)
	s.Kill()
	split := func(text []byte) []string { return strings.Split(string(bytes.Trim(text, "\x00")), "\x00") }
	at, err := url.Parse(s.URLs["http"])
	p.must(err)
	w.user = info.Sys().(*syscall.Stat_t).Uid
	w.log = filepath.Join(p.dir, "log-"+w.name)
	w.spec.Dir = filepath.Join(s.Data, "store")
	w.server = net.JoinHostPort(p.network.Site(w.name).Address, at.Port())
	w.env = split(env)
	w.command = append([]string{"/bin/sh", "-c", untilInput}, split(argv)...)
	p.xrootd[w.name] = true
}

// prefix returns the path of the site's folder in URLs.
func (w *gridSite) prefix() string {
	if strings.Contains(w.spec.Dir, "/data/") {
		return "/data/store"
	}
	return "/store"
}

// A child is a program that ends with its input.
type child struct {
	cmd *exec.Cmd
	in  io.Closer
}

// startChild starts a program by start and returns when it has written its first line.
func startChild(cmd *exec.Cmd, start func(*exec.Cmd) error) (*child, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := start(cmd); err != nil {
		return nil, err
	}
	r := bufio.NewReader(out)
	_, err = r.ReadString('\n')
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return &child{cmd, in}, err
}

// kill ends the program at once.
func (c *child) kill() {
	_ = c.in.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // its error only reports the signal
}

// tool runs a program.
func (s *stage) tool(argv ...string) {
	s.Helper()
	if out, err := exec.CommandContext(s.ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		s.Fatalf("%s: %v: %s", argv[0], err, out)
	}
}
