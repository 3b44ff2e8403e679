package rigs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"weir/internal/unit"
	"weir/lab"
	"weir/lab/labtest"
	"weir/link"
	"weir/link/emulator"
)

// Sites of data challenges: each sends to the next two.
const (
	gridSites = 4
	gridPort  = "8443" // each site is alone in its namespace
	gridRate  = 1e6    // bit/s, target of each link
	gridFile  = 128 << 10
)

// A gridLine is the line between two sites.
type gridLine struct {
	sites string // such as AB, the lower letter first
	link.Spec
}

// A grid is the sites of a data challenge, each behind a line of its own. Sites reach each other by
// gates of this machine, from which a further line may lead to the other site.
type grid struct {
	*stage
	network *emulator.Network
	lines   map[string]uint16 // ports of lines between two sites
	sites   []*gridSite
	extra   map[string]siteSpec // of sites, in addition to those of the rig
	auth    string              // of each site in the plan
	more    string              // further lines of the plan
}

// A gridSite is a site, or its absence.
type gridSite struct {
	grid    *grid
	spec    siteSpec
	name    string
	address string   // of the gate, as HOST:PORT
	server  string   // address of the server
	path    string   // of the URL, of a server that is not a child; "" of a child
	command []string // of the server, which ends with its input; nil: this program as a site
	env     []string // of command
	log     string   // file for the errors of command; "": those of this program
	user    uint32   // of command; 0: that of this program
	mu      sync.Mutex
	gate    net.Listener
	cmd     *exec.Cmd
	in      io.Closer
}

// siteName returns the name of a site: A, B, C...
func siteName(i int) string { return string(rune('A' + i)) }

// newGrid starts the sites of g. specs has the faults of some of them, by name.
func (s *stage) newGrid(g *grid, specs map[string]siteSpec, lines ...gridLine) {
	g.lines = map[string]uint16{}
	var all []link.Named
	for i := range gridSites {
		all = append(all, link.Named{Name: siteName(i), Spec: link.Spec{Rate: 100e6, RTT: unit.Duration(4 * time.Millisecond)}})
	}
	trunks := map[string]bool{}
	for _, l := range lines {
		of := l.Spec
		if of.Trunk != "" {
			if !trunks[of.Trunk] {
				all = append(all, link.Named{Name: of.Trunk, Spec: link.Spec{Rate: of.Rate, RTT: of.RTT}})
			}
			trunks[of.Trunk] = true
			of.Rate, of.RTT = 100e6, unit.Duration(2*time.Millisecond)
		}
		all = append(all, link.Named{Name: l.sites, Spec: of})
	}
	var err error
	if _, err = emulator.Best(s.ctx, nil); err != nil {
		s.cannot("%v", err)
	}
	g.network, err = emulator.Up(s.ctx, all, emulator.Options{Mover: []string{s.weir, "mover"}, Seed: 1})
	s.must(err)
	s.ends(g.network.Close)
	for i := range gridSites {
		spec := specs[siteName(i)]
		if more, ok := g.extra[siteName(i)]; ok {
			spec = more
		}
		g.sites = append(g.sites, g.start(siteName(i), spec))
	}
	for _, l := range lines { // data move from the second site's gate to the first site, or the other way
		for k, name := range []string{l.sites[:1], l.sites[1:]} {
			port, err := g.network.Site(l.sites).Forward(s.ctx, g.site(name).server, netip.MustParseAddr("127.0.0.1"))
			s.must(err)
			g.lines[l.sites[1-k:2-k]+name] = port
		}
	}
}

func (g *grid) site(name string) *gridSite { return g.sites[name[0]-'A'] }

// start starts a site.
func (g *grid) start(name string, of siteSpec) *gridSite {
	at := g.network.Site(name)
	w := &gridSite{grid: g, spec: of, name: name, server: net.JoinHostPort(at.Address, gridPort)}
	if of.XRootD {
		w.xrootd()
	}
	w.spec.Listen = w.server
	if w.spec.Dir == "" {
		w.spec.Dir = filepath.Join(g.dir, "site-"+name)
		g.must(os.Mkdir(w.spec.Dir, 0o755))
	}
	w.address = net.JoinHostPort(g.network.Service, "0")
	g.must(w.begin())
	g.Cleanup(w.kill)
	return w
}

// xrootd starts XRootD as the server of a site. The gate leads to it, without a line of the site.
func (w *gridSite) xrootd() {
	x := labtest.Start(w.grid.T, lab.XRootDConfig{Copies: true, Extra: w.spec.Extra})
	at, err := url.Parse(x.URLs["http"])
	w.grid.must(err)
	w.server, w.path, w.spec.Dir = at.Host, at.Path+"/rig", filepath.Join(x.Data, "rig")
	w.grid.must(os.Mkdir(w.spec.Dir, 0o777))
	w.grid.must(os.Chmod(w.spec.Dir, 0o777)) // XRootD has a user of its own
}

// begin starts the server, unless it runs already, and opens the gate.
func (w *gridSite) begin() error {
	if w.path != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.open()
	}
	argv, err := w.program()
	if err != nil {
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // the end of its input ends it
	cmd.Stderr, cmd.Env = os.Stderr, w.env
	if w.log != "" {
		log, err := os.OpenFile(w.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer log.Close()
		cmd.Stderr = log
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if w.user > 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: w.user, Gid: w.user}
	}
	c, err := startChild(cmd, w.grid.network.Site(w.name).Start)
	if err != nil {
		return fmt.Errorf("site %s did not start: %w", w.name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cmd, w.in = c.cmd, c.in
	return w.open()
}

// program returns the command of the server. Its first line of output reports that it has started.
func (w *gridSite) program() ([]string, error) {
	if w.command != nil {
		return w.command, nil
	}
	b, err := json.Marshal(w.spec)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	return []string{self, siteWord, string(b)}, err
}

// open opens the gate at the address that it had before.
func (w *gridSite) open() (err error) {
	w.gate, err = new(net.ListenConfig).Listen(w.grid.ctx, "tcp", w.address)
	if err != nil {
		return err
	}
	w.address = w.gate.Addr().String()
	go w.accept(w.gate)
	return nil
}

// accept passes connections on to the server until the gate is closed.
func (w *gridSite) accept(gate net.Listener) {
	for {
		from, err := gate.Accept()
		if err != nil {
			return
		}
		to := w.server
		host, _, _ := net.SplitHostPort(from.RemoteAddr().String())
		for _, other := range w.grid.sites {
			if at := w.grid.network.Site(other.name); at.Address == host {
				if port := w.grid.lines[other.name+w.name]; port > 0 {
					to = fmt.Sprintf("127.0.0.1:%d", port)
				}
			}
		}
		go passOn(w.grid.ctx, from, to)
	}
}

// passOn connects a connection with a server until both ways have ended.
func passOn(ctx context.Context, from net.Conn, server string) {
	defer from.Close()
	to, err := new(net.Dialer).DialContext(ctx, "tcp", server)
	if err != nil {
		_ = from.(*net.TCPConn).SetLinger(0) // a reset, as without the gate
		return
	}
	emulator.Join(ctx, from.(*net.TCPConn), to.(*net.TCPConn))
}

// kill ends the server at once and closes the gate.
func (w *gridSite) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gate != nil {
		_ = w.gate.Close()
	}
	if w.cmd != nil {
		_ = w.in.Close()
		_ = w.cmd.Process.Signal(syscall.SIGCONT)
		_ = syscall.Kill(-w.cmd.Process.Pid, syscall.SIGKILL) // with its children
		_ = w.cmd.Wait()                                      // its error only reports the signal
	}
	w.gate, w.cmd = nil, nil
}

// signal sends a signal to the server.
func (w *gridSite) signal(sig syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.cmd.Process.Signal(sig)
}

// left returns the files and folders at the sites.
func (g *grid) left() (all []string) {
	for _, w := range g.sites {
		g.must(fs.WalkDir(os.DirFS(w.spec.Dir), ".", func(path string, _ fs.DirEntry, err error) error {
			if path != "." && path != ".weir-serve-folders" && path != "lost+found" { // of weir serve and of file systems
				all = append(all, w.name+"/"+path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}))
	}
	return all
}

// A gridPlan is the file of a data challenge.
type gridPlan struct {
	without []string           // links that the challenge does not have, such as AB
	rate    float64            // bit/s, of each link; 0: gridRate
	rates   map[string]float64 // of some links
	size    string             // of files; "": gridFile
	profile string
	mode    string // push
	linger  string // of copies
	auth    string // of each site
	limits  map[string]int
	more    string // further lines
}

// minutes is the profile of most rigs: a minute at half of the targets, then the whole.
const minutes = "[{for: 1m, at: 50%}, {for: 3m, at: 100%}]"

// links returns the links of a plan, such as AB.
func (p *gridPlan) links() (all []string) {
	for i := range gridSites {
	next:
		for k := 1; k <= 2; k++ {
			name := siteName(i) + siteName((i+k)%gridSites)
			for _, no := range p.without {
				if no == name {
					continue next
				}
			}
			all = append(all, name)
		}
	}
	return all
}

// text returns the file.
func (p *gridPlan) text(g *grid) string {
	var b strings.Builder
	b.WriteString("sites:\n")
	for _, w := range g.sites {
		fmt.Fprintf(&b, "  - {name: %s, url: 'http://%s%s'%s}\n", w.name, w.address, w.path, p.auth)
	}
	b.WriteString("links:\n")
	for _, l := range p.links() {
		rate := p.rate
		if rate == 0 {
			rate = gridRate
		}
		if p.rates[l] > 0 {
			rate = p.rates[l]
		}
		fmt.Fprintf(&b, "  - {from: %s, to: %s, rate: %v", l[:1], l[1:], unit.Bitrate(rate))
		if n := p.limits[l]; n > 0 {
			fmt.Fprintf(&b, ", in_flight: %d", n)
		}
		if p.mode != "" {
			fmt.Fprintf(&b, ", mode: %s", p.mode)
		}
		b.WriteString("}\n")
	}
	size, profile := p.size, p.profile
	if size == "" {
		size = fmt.Sprintf("%dB", gridFile)
	}
	if profile == "" {
		profile = minutes
	}
	linger := p.linger
	if linger == "" {
		linger = "0s"
	}
	fmt.Fprintf(&b, "profile: %s\nfiles: {size: %s, sources: 3, linger: %s}\ntimeout: 1m\n%s", profile, size, linger, p.more)
	return b.String()
}
