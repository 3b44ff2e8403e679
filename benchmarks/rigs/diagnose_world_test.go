package rigs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/unit"
	"weir/link"
	"weir/link/emulator"
)

// A world is a network namespace with the servers of one rig, and a site with the client, behind an
// emulated line. It is the namespace of this process. Connections of the site to the address of the
// service reach the servers on loopback, so that TCP has its ends at client and server.
type world struct {
	*stage
	network *emulator.Network
	site    *emulator.Site

	target string   // URL of the diagnosis
	flags  []string // of the diagnosis
	here   []string // words before weir, such as those that limit its CPU time
	each   func()   // called before each diagnosis; nil: nothing
	sure   []string // observations of independent tools
	absent []string // conditions of the situation that do not hold
}

// moverWord is the first argument of this program as the mover of a line.
const moverWord = "diagnose-mover"

func runMover(_ []string, out io.Writer) error {
	return emulator.Move(context.Background(), os.Stdin, out)
}

// campus is the line of rigs whose cause is at one of its ends.
func campus() link.Spec { return link.Spec{Rate: 200e6, RTT: ms2(4)} }

// newWorld makes the namespace ready for servers and clients. This process is alone in it.
func (s *stage) newWorld(line link.Spec) *world {
	w := &world{stage: s}
	s.must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	_, err := s.command("ip", "link", "set", "lo", "up")
	s.must(err)
	line.Congestion = "cubic" // of both routes: bbr hardly notices losses
	self, err := os.Executable()
	s.must(err)
	w.network, err = emulator.Up(s.ctx, []link.Named{{Name: "client", Spec: line}}, emulator.Options{Mover: []string{self,
		moverWord}, Seed: 1})
	if err != nil {
		s.cannot("%v", err)
	}
	s.ends(w.network.Close)
	w.site = w.network.Sites[0]
	w.sysctl("net.ipv4.conf.all.route_localnet", "1")
	for _, protocol := range []string{"tcp", "udp"} {
		w.firewall("iptables", "-t", "nat", "-A", "PREROUTING", "-i", "weir+", "-p", protocol, "-j", "DNAT", "--to-destination",
			"127.0.0.1")
	}
	return w
}

// sysctl sets a variable of the servers' namespace.
func (w *world) sysctl(name, value string) {
	w.must(os.WriteFile("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), []byte(value), 0o644))
}

// firewall sets a rule of the servers' namespace.
func (w *world) firewall(program string, rule ...string) {
	_, err := w.command(program, rule...)
	w.must(err)
}

// at runs a command at the site to its end, and returns its output and its exit code.
func (w *world) at(argv ...string) (out, text string, code int) {
	path, err := program(argv[0])
	w.must(err)
	cmd := exec.CommandContext(w.ctx, path, argv[1:]...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "XRD_CONNECTIONRETRY=1", "XRD_REQUESTTIMEOUT=60")
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	w.must(w.site.Start(cmd))
	_ = cmd.Wait() // the caller judges the exit code
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// here sets variables of the client's namespace.
func (w *world) sysctlHere(name, value string) {
	_, text, code := w.at("sysctl", "-q", "-w", name+"="+value)
	w.holds(code == 0, "sysctl %s: %s", name, text)
}

// url returns the URL by which the site reaches what is at a URL with a loopback address.
func (w *world) url(local string) string {
	return strings.NewReplacer("127.0.0.1", w.network.Service, "localhost", w.network.Service).Replace(local)
}

// saw records an observation of an independent tool.
func (w *world) saw(format string, args ...any) {
	w.sure = append(w.sure, fmt.Sprintf(format, args...))
}

// holds records a condition of the situation that is absent.
func (w *world) holds(is bool, format string, args ...any) {
	if !is {
		w.absent = append(w.absent, fmt.Sprintf(format, args...))
	}
}

// A fetched is what curl reports of a transfer; times are in seconds from the start.
type fetched struct {
	lookup, connect, tls, first, total, rate float64
	bytes                                    int64
	code                                     int
}

// curl fetches a URL at the site, for 20 s at most.
func (w *world) curl(url string, more ...string) (f fetched) {
	argv := append([]string{"curl", "-sSLk", "-m", "20", "-o", "/dev/null", "-w", "%{time_namelookup} %{time_connect} %{time_appconnect} " +
		"%{time_starttransfer} %{time_total} %{speed_download} %{size_download} %{http_code}"}, more...)
	out, text, code := w.at(append(argv, url)...)
	if _, err := fmt.Sscan(out, &f.lookup, &f.connect, &f.tls, &f.first, &f.total, &f.rate, &f.bytes, &f.code); err != nil {
		w.holds(false, "curl: %v: %s", err, text)
	}
	w.saw("curl: lookup %.3f s, connect %.3f, tls %.3f, first byte %.3f, total %.3f s, %s (exit %d)", f.lookup, f.connect, f.tls, f.first,
		f.total, bits(f.rate), code)
	return f
}

// mib returns the flag of curl for a range of a file, in MiB.
func mib(from, size int) []string {
	return []string{"-r", fmt.Sprintf("%d-%d", from<<20, (from+size)<<20-1)}
}

// ping returns the share of packets of a size that are lost and the median round trip time in ms.
func (w *world) ping(count int, more ...string) (lost, rtt float64) {
	argv := append([]string{"ping", "-q", "-i", "0.002", "-W", "2", "-c", strconv.Itoa(count)}, more...)
	out, text, _ := w.at(append(argv, w.network.Service)...)
	lost = 1
	if m := regexp.MustCompile(`([\d.]+)% packet loss`).FindStringSubmatch(out); m != nil {
		lost, _ = strconv.ParseFloat(m[1], 64)
		lost /= 100
	} else {
		w.holds(false, "ping: %s", text)
	}
	if m := regexp.MustCompile(`= [\d.]+/([\d.]+)/`).FindStringSubmatch(out); m != nil {
		rtt, _ = strconv.ParseFloat(m[1], 64)
	}
	w.saw("ping%s: %.1f%% of %d lost, %.1f ms", strings.Join(append([]string{""}, more...), " "), 100*lost, count, rtt)
	return lost, rtt
}

// iperf returns the bits per second of a number of TCP streams to the client, or from it, and the
// segments that were sent again.
func (w *world) iperf(streams, seconds int, up bool) (rate float64, again int) {
	server := exec.CommandContext(w.ctx, "iperf3", "-s", "-1", "-p", "5201")
	w.must(server.Start())
	defer func() { _, _ = server.Process.Kill(), server.Wait() }()
	w.listens("127.0.0.1:5201", false)
	argv := []string{"iperf3", "-c", w.network.Service, "-p", "5201", "-J", "-t", strconv.Itoa(seconds), "-O", "1", "-P",
		strconv.Itoa(streams)}
	if !up {
		argv = append(argv, "-R")
	}
	out, _, _ := w.at(argv...)
	var r struct {
		End struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
			Sent struct {
				Again int `json:"retransmits"`
			} `json:"sum_sent"`
		}
		Error string
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Error != "" {
		w.holds(false, "iperf3: %v %s", err, r.Error)
	}
	w.saw("iperf3 -P %d: %s, %d retransmissions", streams, bits(r.End.Received.Rate/8), r.End.Sent.Again)
	return r.End.Received.Rate, r.End.Sent.Again
}

// listens waits until a server listens at an address. A connection tests it, or /proc, for servers
// that serve one connection only.
func (w *world) listens(address string, connect bool) {
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	pattern := regexp.MustCompile(fmt.Sprintf(`:%04X \S+:0000 0A`, n))
	for begin := time.Now(); time.Since(begin) < 20*time.Second; w.sleep(10 * time.Millisecond) {
		if connect {
			if c, err := net.Dial("tcp", address); err == nil {
				_ = c.Close()
				return
			}
			continue
		}
		for _, f := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			if b, _ := os.ReadFile(f); pattern.Match(b) {
				return
			}
		}
	}
	w.must(fmt.Errorf("nothing listens at %s", address))
}

// xrdcp copies a file at the site and returns the seconds that it took.
func (w *world) xrdcp(url string) float64 {
	begin := time.Now()
	_, text, code := w.at("timeout", "20", "xrdcp", "-d", "1", "-f", url, "/dev/null")
	seconds := time.Since(begin).Seconds()
	w.saw("xrdcp -d 1: %.2f s, exit %d, %s", seconds, code, firstWords(text))
	return seconds
}

// firstWords returns the beginning of the last line of a text.
func firstWords(text string) string {
	line := []rune(lastLine(strings.ReplaceAll(text, "\r", "\n")))
	return string(line[:min(len(line), 80)])
}

// cpuGroup makes a control group with a share of one core, and returns the words before a command
// that is to be in it.
func (w *world) cpuGroup(name string, share float64) (wrap []string, folder string) {
	folder = fmt.Sprintf("/sys/fs/cgroup/cpu/weir-rig-%s-%d", name, os.Getpid())
	if err := os.Mkdir(folder, 0o755); err != nil {
		w.cannot("no control group for CPU time: %v", err)
	}
	w.ends(func() error { return removeGroup(folder) })
	for file, value := range map[string]string{"cpu.cfs_period_us": "200000", "cpu.cfs_quota_us": fmt.Sprint(int(share * 200000))} {
		w.must(os.WriteFile(filepath.Join(folder, file), []byte(value), 0o644))
	}
	return join(folder), folder
}

// join returns the words before a command that is to be in a control group.
func join(folder string) []string {
	return []string{"sh", "-c", "echo $$ > " + folder + "/cgroup.procs && exec \"$@\"", "sh"}
}

// removeGroup removes a control group whose last processes may still end.
func removeGroup(folder string) (err error) {
	for range 100 {
		if err = os.Remove(folder); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// throttledTimes returns how often a group of CPU time was stopped.
func (w *world) throttledTimes(folder string) (n int) {
	b, err := os.ReadFile(filepath.Join(folder, "cpu.stat"))
	w.must(err)
	_, rest, _ := strings.Cut(string(b), "nr_throttled ")
	_, _ = fmt.Sscan(rest, &n)
	return n
}

// start starts a server at a port of loopback.
func (w *world) start(port string, argv ...string) *daemon {
	path, err := program(argv[0])
	w.must(err)
	argv = slices.Clone(argv)
	argv[0] = path
	d := &daemon{argv: argv, address: "127.0.0.1:" + port}
	w.ends(d.kill)
	w.must(d.start())
	w.pids = append(w.pids, d.cmd.Process.Pid)
	return d
}

// folder makes a folder with files f0, f1... of sizes in MiB.
func (w *world) folder(name string, sizes ...float64) string {
	dir := filepath.Join(w.dir, name)
	w.must(os.MkdirAll(dir, 0o755))
	w.fillFolder(dir, sizes...)
	return dir
}

func (w *world) fillFolder(dir string, sizes ...float64) {
	for i, size := range sizes {
		c := newServer(spec{Files: 1, Size: int(size * (1 << 20)), Seed: uint64(i)})
		w.must(os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), c.content(0), 0o644))
	}
}

// serve starts weir serve on a folder, and returns its URL for the site.
func (w *world) serve(dir string, wrap []string, flags ...string) string {
	port := w.freePort()
	w.start(port, append(append(slices.Clone(wrap), w.weir, "serve", dir, "--listen", "127.0.0.1:"+port), flags...)...)
	return w.url("http://127.0.0.1:" + port)
}

// forget removes files from the page cache.
func (w *world) forget(files ...string) {
	for _, name := range files {
		f, err := os.Open(name)
		w.must(err)
		w.must(f.Sync())
		w.must(unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
		w.must(f.Close())
	}
}

// between passes connections to a server on; each is called with the bytes of the client.
func (w *world) between(server string, each func(to net.Conn, from io.Reader) error) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	w.ends(l.Close)
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer from.Close()
				to, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer to.Close()
				go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
				_ = each(to, from)
			}()
		}
	}()
	return l.Addr().String()
}

// sizes of files in MiB, of which the first is diagnosed.
func large() []float64 { return []float64{64, 64, 4} }

// line returns a line with a rate in Mbit/s, a round trip time in ms and a loss.
func line(rate, rtt int, loss float64) link.Spec {
	return link.Spec{Rate: unit.Bitrate(rate) * 1e6, RTT: ms2(rtt), Loss: unit.Fraction(loss)}
}
