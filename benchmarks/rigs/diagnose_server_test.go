package rigs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"weir/lab"
)

// diagnoseDiskRigs returns the rigs of the server's disk and its cache.
func diagnoseDiskRigs() []diagnoseRig {
	needs := []string{"nginx", "losetup", "mkfs.ext4", "mount"}
	return []diagnoseRig{
		{
			name: "cold-cache", situation: "nginx reads from a disk of 4 MB/s; the file is not in its cache.", cause: "server disk",
			needs: needs,
			line:  campus(), play: func(w *world) { w.coldDisk(4e6); w.diskIsCause(4e6) },
		}, {
			name: "warm-cache", situation: "nginx and a disk of 2 MB/s, but the files are in its cache; the line has 20 Mbit/s.",
			cause: "line/rate", needs: needs, line: line(20, 10, 0), play: warmCache,
		}, {
			name: "disk-xrootd", situation: "XRootD reads from a disk of 4 MB/s; the file is not in its cache.", cause: "server disk",
			needs: append(needs[1:], "xrootd", "xrdcp"), line: campus(), play: coldXRootD,
		},
	}
}

// onDisk starts nginx on a disk with a rate, and writes files.
func (w *world) onDisk(rate int64) *lab.System {
	c := lab.NginxConfig{}
	c.Disk = lab.Disk{Rate: rate, Size: 1 << 30}
	return w.serves(c.Start(w.ctx))
}

// serves makes a system that has started the server of the files, which are written past its disk's limit as far as
// possible.
func (w *world) serves(sys *lab.System, err error) *lab.System {
	w.must(err)
	w.ends(sys.Stop)
	w.target = w.url(sys.URL) + "/f0"
	w.fillFolder(sys.Data, 24, 24, 1)
	for _, name := range diskFiles(sys) {
		w.must(os.Chmod(name, 0o644))
	}
	return sys
}

func diskFiles(sys *lab.System) []string {
	names, _ := filepath.Glob(filepath.Join(sys.Data, "f*"))
	return names
}

// coldDisk serves files that are forgotten by the cache before each diagnosis.
func (w *world) coldDisk(rate int64) {
	sys := w.onDisk(rate)
	w.each = func() { w.forget(diskFiles(sys)...) }
	w.each()
}

// diskIsCause checks that data that were read before come much faster than others.
func (w *world) diskIsCause(rate float64) {
	fresh, again := w.curl(w.target, mib(8, 8)...), w.curl(w.target, mib(8, 8)...)
	w.holds(fresh.rate < 2*rate && again.rate > 2*fresh.rate, "the cache is not faster than the disk: %s, %s", bits(fresh.rate),
		bits(again.rate))
}

func warmCache(w *world) {
	sys := w.onDisk(2e6)
	for _, name := range diskFiles(sys) {
		_, err := os.ReadFile(name)
		w.must(err)
	}
	fresh, again := w.curl(w.target, mib(8, 4)...), w.curl(w.target, mib(8, 4)...)
	w.holds(fresh.rate > 0.7*again.rate && fresh.rate > 2e6 && fresh.rate < 2.6e6, "the line is not the limit: %s, then %s",
		bits(fresh.rate),
		bits(again.rate))
}

// xrootd starts XRootD, which the site reaches.
func (w *world) startXRootD(c lab.XRootDConfig) *lab.System {
	c.Extra = "xrd.allow host " + w.site.Address + "\n" + c.Extra
	return w.serves(c.Start(w.ctx))
}

func coldXRootD(w *world) {
	c := lab.XRootDConfig{}
	c.Disk = lab.Disk{Rate: 4e6, Size: 1 << 30}
	sys := w.startXRootD(c)
	w.each = func() { w.forget(diskFiles(sys)...) }
	w.each()
	cold := w.xrdcp(w.target)
	carried, _ := w.iperf(1, 3, false)
	w.holds(cold > 4 && carried > 80e6, "24 MiB in %.1f s, on a line that carries %s", cold, bits(carried/8))
	w.each()
}

// diagnoseServerRigs returns the rigs of the server's host and its limits.
func diagnoseServerRigs() []diagnoseRig {
	return []diagnoseRig{
		{
			name: "server-cpu", situation: "weir serve in a control group with 1% of a core.", cause: "server host", line: campus(),
			play: func(w *world) { w.starved(0.01) },
		}, {
			name: "server-core", situation: "weir serve with one thread that uses 10 ms of CPU for each 64 KiB.",
			cause: "server host", line: campus(),
			play: func(w *world) { w.oneCore() },
		}, {
			name: "xrootd-threads", situation: "XRootD with 4 threads at most, in which 16 other clients wait for slow lines.",
			cause: "server host", needs: []string{"xrootd", "xrdcp"}, line: campus(), play: fewThreads,
		}, {
			name: "paused", situation: "The server is stopped for 1.6 of each 2 s.", cause: "server host", line: campus(), play: paused,
		}, {
			name: "balancer", needs: []string{"nginx", "haproxy", "losetup", "mkfs.ext4", "mount"},
			situation: "HAProxy before four servers, of which the one with the connection reads from a disk of 2 MB/s.",
			cause:     "server disk|server host", line: campus(), play: balanced,
		}, {
			name: "limit-stream", situation: "weir serve limits each connection to 2 MB/s.", cause: "server limit/stream", line: campus(),
			play: func(w *world) { w.limited("--rate", "2MB/s"); w.perStream(2e6) },
		}, {
			name: "limit-client", situation: "weir serve limits all connections together to 3 MB/s.", cause: "server limit/client",
			line: campus(),
			play: func(w *world) { w.limited("--total-rate", "3MB/s"); w.perClient(3e6) },
		}, {
			name: "limit-nginx", needs: []string{"nginx"}, situation: "nginx limits each request to 2 MB/s (limit_rate).",
			cause: "server limit/stream",
			line:  campus(), play: func(w *world) { w.limitedNginx(); w.perStream(2e6) },
		}, {
			name: "proxy", needs: []string{"nginx"}, situation: "nginx as a proxy in between limits each stream to 2 MB/s.",
			cause: "server limit/stream", line: campus(), play: proxied,
		}, {
			name: "throttle-plugin", needs: []string{"xrootd", "xrdcp"}, situation: "XRootD's throttle plugin limits a user to 3 MB/s.",
			cause: "server limit", line: campus(), play: throttledPlugin,
		},
	}
}

// starved gives the server a share of a core.
func (w *world) starved(share float64) {
	wrap, group := w.cpuGroup("server", share)
	w.target = w.serve(w.folder("files", large()...), wrap, "--page", "64KiB", "--cpu-per-page", "100us") + "/f0"
	before := w.throttledTimes(group)
	f := w.curl(w.target, "-m", "4")
	n := w.throttledTimes(group) - before
	w.saw("cpu.stat of the server: stopped %d times", n)
	w.holds(f.rate < 10e6 && n > 10, "%s, and the server was stopped %d times", bits(f.rate), n)
}

func (w *world) oneCore() {
	w.target = w.serve(w.folder("files", large()...), nil, "--page", "64KiB", "--cpu-per-page", "10ms", "--threads", "1") + "/f0"
	pid := w.pids[len(w.pids)-1]
	before := groupTime([]int{pid})
	f := w.curl(w.target, "-m", "4")
	used := groupTime([]int{pid}) - before
	w.saw("the server used %.0f%% of a core", 100*used.Seconds()/f.total)
	w.holds(f.rate < 8e6 && used.Seconds() > 0.3*f.total, "%s at %s of CPU time", bits(f.rate), used)
}

// fewThreads lets other clients, which read slowly, occupy the threads of XRootD.
func fewThreads(w *world) {
	sys := w.startXRootD(lab.XRootDConfig{Extra: "xrd.sched mint 2 avlt 1 maxt 4 idle 600\n"})
	free := w.xrdcp(w.target)
	for range 16 {
		cmd := exec.CommandContext(w.ctx, "sh", "-c", "while :; do xrdcp --xrate 200k -f "+sys.URL+"/f1 /dev/null >/dev/null 2>&1; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		w.must(cmd.Start())
		w.ends(func() error {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait() // its error only reports the signal
			return nil
		})
	}
	w.sleep(2 * time.Second)
	busy := w.xrdcp(w.target)
	w.holds(busy > 2*free, "%.1f s without the others, %.1f s with them", free, busy)
}

func paused(w *world) {
	w.reads(large()...)
	pid := w.pids[len(w.pids)-1]
	free := w.curl(w.target, mib(0, 16)...)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			for _, step := range []struct {
				signal syscall.Signal
				time   time.Duration
			}{{syscall.SIGSTOP, 1600 * time.Millisecond}, {syscall.SIGCONT, 400 * time.Millisecond}} {
				_ = syscall.Kill(pid, step.signal)
				select {
				case <-stop:
					_ = syscall.Kill(pid, syscall.SIGCONT)
					return
				case <-time.After(step.time):
				}
			}
		}
	}()
	w.ends(func() error { close(stop); <-done; return nil })
	f := w.curl(w.target, mib(0, 32)...)
	w.holds(f.rate < 0.6*free.rate, "%s with pauses, %s without", bits(f.rate), bits(free.rate))
}

// balanced passes each request to the next of four servers; one of them is slow.
func balanced(w *world) {
	w.coldDisk(2e6)
	slow := strings.TrimPrefix(strings.TrimSuffix(w.target, "/data/f0"), "http://")
	slow = strings.Replace(slow, w.network.Service, "127.0.0.1", 1)
	dir := w.folder("others/data", 48, 48, 1)
	servers := []string{slow}
	for range 3 {
		url := w.serve(filepath.Dir(dir), nil)
		servers = append(servers, strings.Replace(strings.TrimPrefix(url, "http://"), w.network.Service, "127.0.0.1", 1))
	}
	front, _ := w.haproxy(&site{}, servers...)
	w.target = w.url(front.url) + "/f0"
	rates := []float64{}
	for i := range 4 {
		rates = append(rates, w.curl(w.target, mib(8+4*i, 4)...).rate)
	}
	low, high := min(rates[0], rates[1], rates[2], rates[3]), max(rates[0], rates[1], rates[2], rates[3])
	w.holds(low < 4e6 && high > 3*low, "one slow server of four expected: %s to %s", bits(low), bits(high))
}

// limited serves large files with flags of weir serve.
func (w *world) limited(flags ...string) {
	w.target = w.serve(w.folder("files", large()...), nil, flags...) + "/f0"
}

func (w *world) limitedNginx() {
	w.serves(lab.NginxConfig{Extra: "limit_rate 2000k;"}.Start(w.ctx))
}

// together returns the rate of a number of requests at the same time.
func (w *world) together(n int) (sum float64) {
	rates := make(chan float64, n)
	for i := range n {
		go func() {
			out, _, _ := w.at(append([]string{"curl", "-sSk", "-m", "6", "-o", "/dev/null", "-w", "%{speed_download}"},
				append(mib(8*i, 8), w.target)...)...)
			var rate float64
			_, _ = fmt.Sscan(out, &rate) // 0 if curl failed
			rates <- rate
		}()
	}
	for range n {
		sum += <-rates
	}
	w.saw("%d curls at the same time: %s", n, bits(sum))
	return sum
}

// perStream checks a limit of each connection.
func (w *world) perStream(rate float64) {
	one, four := w.curl(w.target, mib(0, 4)...), w.together(4)
	w.holds(one.rate < 1.5*rate && four > 2.5*one.rate, "%s with one stream, %s with four", bits(one.rate), bits(four))
}

// perClient checks a limit of all connections together.
func (w *world) perClient(rate float64) {
	one, four := w.curl(w.target, mib(0, 8)...), w.together(4)
	w.holds(one.rate < 2*rate && four < 1.5*one.rate, "%s with one stream, %s with four", bits(one.rate), bits(four))
}

func proxied(w *world) {
	server := strings.Replace(strings.TrimPrefix(w.serve(w.folder("files", large()...), nil), "http://"), w.network.Service, "127.0.0.1", 1)
	front, _ := w.configured(0, 0, func(dir, port string) ([]string, string) {
		conf := nginxHead(dir) + "server { listen 127.0.0.1:" + port + "; location / { proxy_pass http://" + server +
			"; proxy_max_temp_file_size 0; limit_rate 2000k; } }\n}\n"
		return []string{"nginx", "-p", dir, "-e", "stderr", "-c", dir + "/conf"}, conf
	})
	w.target = strings.TrimSuffix(w.url(front.url), "/data") + "/f0"
	w.perStream(2e6)
}

func throttledPlugin(w *world) {
	w.startXRootD(lab.XRootDConfig{Extra: "xrootd.fslib libXrdThrottle.so default\nthrottle.throttle data 3m\n"})
	seconds := w.xrdcp(w.target)
	w.holds(seconds > 4, "24 MiB in %.1f s, at 3 MB/s they take 8", seconds)
}
