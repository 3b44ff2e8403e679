package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/unit"
	"weir/link"
	"weir/link/emulator"
	"weir/loadtest/challenge"
	"weir/loadtest/cluster"
	"weir/loadtest/run"
	"weir/monitor"
)

// The demo: three sites, a link of demoRate each way between every two of them. The line to the last
// site carries demoSlow, so that its two incoming links reach about 60%.
const (
	demoRate = 16e6 // bit/s
	demoSlow = 20e6
	demoLine = 200e6
	demoRTT  = 10 * time.Millisecond
	demoPort = "8443" // each site is alone in its namespace
	demoWait = 30 * time.Second
)

func demoSites() []string { return []string{"a", "b", "c"} }

// runDemo carries out a challenge between three sites of this machine.
func (f *challengeFlags) runDemo(c *cobra.Command, args []string, s streams) error {
	if len(args)+len(f.Sets)+len(f.Vars) > 0 {
		return usagef("--demo has a challenge of its own: leave the file, --set and --var out")
	}
	dir, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return err
	}
	d := &challengeDemo{dir: dir}
	if err = d.start(c.Context()); err == nil {
		err = f.demonstrate(c, d, s)
	}
	return errors.Join(err, d.close(), os.RemoveAll(dir))
}

// demonstrate carries out the challenge between the sites of d.
func (f *challengeFlags) demonstrate(c *cobra.Command, d *challengeDemo, s streams) error {
	of, err := challenge.Parse("demo.yaml", []byte(d.plan()), nil, nil)
	if err != nil {
		return err
	}
	s.say("%s\n", d.about())
	f.effects, f.watched = run.ChallengeEffects(), d.watched
	return f.interruptible(c.Context(), s, func(in run.Interrupts) error {
		return f.conduct(in, run.NewDir(f.out, of.Name, time.Now()), of, s)
	})
}

// A challengeDemo has the sites of the demo: data servers in processes of their own, behind emulated
// lines if this machine can make them.
type challengeDemo struct {
	dir     string            // with the folders and logs of the sites
	network *emulator.Network // nil: there are no lines; the last site's server is limited instead
	why     error             // for no lines
	servers []*demoServer

	mu   sync.Mutex
	sink monitor.Sink // of the samples of the lines; nil: they are dropped
}

// watched has the samples of the lines go to sink; nil: they are dropped.
func (d *challengeDemo) watched(sink monitor.Sink) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sink = sink
}

// take passes the sample of a line on.
func (d *challengeDemo) take(s *emulator.Sample) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sink != nil {
		_ = d.sink.Sample(run.LinkSample(s)) // a directory that cannot be written to ends the challenge by itself
	}
}

// A demoServer is the data server of a site.
type demoServer struct {
	cmd  *exec.Cmd
	in   io.Closer // its end ends the server
	url  string
	gate net.Listener // nil: the server is reached directly
}

// start makes the lines and starts the servers.
func (d *challengeDemo) start(ctx context.Context) error {
	if _, d.why = emulator.Best(ctx, nil); d.why == nil {
		mover, err := cluster.SelfCommand("mover")
		if err != nil {
			return err
		}
		if d.network, err = emulator.Up(ctx, demoLines(), emulator.Options{Mover: mover, Seed: 1, Take: d.take}); err != nil {
			return err
		}
	}
	for _, name := range demoSites() {
		server, err := d.server(ctx, name)
		if err != nil {
			return fmt.Errorf("site %s: %w", name, err)
		}
		d.servers = append(d.servers, server)
	}
	return nil
}

// demoLines returns the lines of the sites.
func demoLines() (all []link.Named) {
	for _, name := range demoSites() {
		all = append(all, link.Named{Name: name, Spec: link.Spec{Rate: demoLine, RTT: unit.Duration(demoRTT)}})
	}
	last := &all[len(all)-1].Spec
	last.Up = last.Rate // to the other sites
	last.Rate = demoSlow
	return all
}

// server starts the data server of a site.
func (d *challengeDemo) server(ctx context.Context, name string) (*demoServer, error) {
	dir := filepath.Join(d.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	listen, begin := "127.0.0.1:0", (*exec.Cmd).Start
	if d.network != nil {
		at := d.network.Site(name)
		listen, begin = net.JoinHostPort(at.Address, demoPort), func(cmd *exec.Cmd) error { return at.Start(cmd) }
	}
	args := []string{"serve", dir, "--while-stdin", "--listen", listen, "--public", "--third-party", "--tpc-allow", "*", "--tpc-private"}
	if sites := demoSites(); d.network == nil && name == sites[len(sites)-1] {
		args = append(args, "--total-rate", unit.Bitrate(demoSlow).String())
	}
	command, err := cluster.SelfCommand(args...)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(dir + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // the end of its input ends it
	cmd.Args[0], cmd.Stderr = "weir", log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process, which removes files before
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := begin(cmd); err != nil {
		return nil, err
	}
	s := &demoServer{cmd: cmd, in: in}
	if s.url, err = demoURL(ctx, out); err == nil && d.network != nil {
		err = s.open(ctx, d.network.Service, listen)
	}
	if err != nil {
		said, _ := os.ReadFile(log.Name()) // the reason, usually
		return nil, errors.Join(fmt.Errorf("%w %s", err, line(string(said))), s.close())
	}
	return s, nil
}

// open makes a gate on this machine for a server behind a line. All sites reach it over their lines,
// and it passes connections on over the line of the server.
func (s *demoServer) open(ctx context.Context, host, server string) (err error) {
	if s.gate, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, "0")); err != nil {
		return err
	}
	s.url = "http://" + s.gate.Addr().String()
	go func() {
		for {
			from, err := s.gate.Accept()
			if err != nil {
				return // closed
			}
			go pass(from.(*net.TCPConn), server)
		}
	}()
	return nil
}

// pass connects a connection with a server until both ways have ended.
func pass(from *net.TCPConn, server string) {
	defer from.Close()
	to, err := new(net.Dialer).Dial("tcp", server)
	if err != nil {
		return
	}
	emulator.Join(context.Background(), from, to.(*net.TCPConn)) // the end of the server ends it
}

// demoURL returns the URL that a server prints at its start.
func demoURL(ctx context.Context, out io.Reader) (string, error) {
	first := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		first <- strings.TrimSpace(text)
	}()
	ctx, cancel := context.WithTimeout(ctx, demoWait)
	defer cancel()
	select {
	case text := <-first:
		if url, ok := strings.CutPrefix(text, "serving "); ok {
			return url, nil
		}
		return "", fmt.Errorf("its server did not start: %q", text)
	case <-ctx.Done():
		return "", fmt.Errorf("its server did not start: %w", ctx.Err())
	}
}

func (s *demoServer) close() error {
	if s.gate != nil {
		_ = s.gate.Close()
	}
	_ = s.in.Close()
	return s.cmd.Wait()
}

// plan returns the file of the challenge.
func (d *challengeDemo) plan() string {
	text := "name: demo\nsites:\n"
	var pids []string
	for i, name := range demoSites() {
		text += fmt.Sprintf("  - {name: %s, url: '%s'}\n", name, d.servers[i].url)
		pids = append(pids, fmt.Sprint(d.servers[i].cmd.Process.Pid))
	}
	text += "links:\n"
	for _, from := range demoSites() {
		for _, to := range demoSites() {
			if from != to {
				text += fmt.Sprintf("  - {from: %s, to: %s, rate: %v}\n", from, to, unit.Bitrate(demoRate))
			}
		}
	}
	return text + "profile:\n  - {for: 20s, at: 25%}\n  - {for: 20s, at: 50%}\n  - {for: 2m, at: 100%}\n" +
		"files: {size: 1MiB, sources: 4}\ntimeout: 1m\n" +
		"hosts:\n  - {name: localhost, role: both, pids: [" + strings.Join(pids, ", ") + "]}\n"
}

// about describes the sites.
func (d *challengeDemo) about() string {
	text := fmt.Sprintf("three sites on this machine, %v on each link", unit.Bitrate(demoRate))
	if d.network != nil {
		return text + fmt.Sprintf("; the line to site c carries only %v", unit.Bitrate(demoSlow))
	}
	return text + fmt.Sprintf("; the server of site c sends only %v (no lines are emulated: %v)", unit.Bitrate(demoSlow), d.why)
}

// close ends the servers and removes the lines.
func (d *challengeDemo) close() error {
	var errs []error
	for _, s := range d.servers {
		errs = append(errs, s.close())
	}
	if d.network != nil {
		errs = append(errs, d.network.Close())
	}
	return errors.Join(errs...)
}
