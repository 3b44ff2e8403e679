package rigs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/lab"
)

// diagnoseHereRigs returns the rigs whose cause is the client's machine.
func diagnoseHereRigs() []diagnoseRig {
	return []diagnoseRig{
		{
			name: "here-cpu", situation: "weir in a control group with 0.5% of a core, TLS.", cause: "this host/cpu", line: campus(),
			play: func(w *world) { w.weakClient(0.005) },
		}, {
			name: "here-core", needs: []string{"taskset", "nice"}, situation: "weir with a low priority on a core that other " +
				"programs use, TLS.",
			cause: "this host/cpu", line: campus(), play: fullCore,
		}, {
			name: "here-disk", needs: []string{"nginx", "losetup", "mkfs.ext4", "mount"}, situation: "A copy to a local disk of 3 MB/s.",
			cause: "this host/disk", line: campus(), play: func(w *world) { w.reads(large()...); w.slowHere(3e6) },
		}, {
			name: "here-full", needs: []string{"mount"}, situation: "A copy to a local tmpfs that has 256 KiB left.",
			cause: "this host/disk",
			line:  campus(), play: fullHere,
		},
	}
}

// weakClient gives the client a share of a core, which has to decrypt.
func (w *world) weakClient(share float64) {
	w.encrypted()
	wrap, group := w.cpuGroup("client", share)
	w.here = wrap
	free := w.curl(w.target, mib(0, 16)...)
	before := w.throttledTimes(group)
	slow := w.slowed()
	n := w.throttledTimes(group) - before
	w.saw("cpu.stat of the client: stopped %d times", n)
	w.holds(slow < 0.5*free.rate && n > 10, "%s without the limit, %s and stopped %d times with it", bits(free.rate), bits(slow), n)
}

// encrypted serves files with TLS, which costs CPU time.
func (w *world) encrypted() {
	key, cert := w.certificate("ec", "ec_paramgen_curve:prime256v1")
	w.target = strings.Replace(w.serve(w.folder("files", large()...), nil, "--cert", cert, "--key", key), "http:", "https:", 1) + "/f0"
	w.flags = []string{"--set", "auth.insecure=true"}
}

// fullCore runs weir beside programs that use its core.
func fullCore(w *world) {
	w.encrypted()
	free := w.curl(w.target, mib(0, 16)...)
	for range 2 {
		_, _, _, err := w.child([]string{"taskset", "-c", "1"}, busyWord, "1")
		w.must(err)
	}
	w.here = []string{"taskset", "-c", "1", "nice", "-n", "19"}
	slow := w.slowed()
	w.holds(slow < 0.5*free.rate, "%s beside the other programs, %s without", bits(slow), bits(free.rate))
}

// slowed returns what curl gets in the place of weir.
func (w *world) slowed() (rate float64) {
	out, text, _ := w.at(append(slices.Clone(w.here), "timeout", "20", "curl", "-sSk", "-m", "6", "-o", "/dev/null", "-w",
		"%{speed_download}",
		w.target)...)
	_, err := fmt.Sscan(out, &rate)
	w.holds(err == nil, "curl in the place of weir: %s", text)
	w.saw("curl in the place of weir: %s", bits(rate))
	return rate
}

// slowHere copies to a local disk with a rate, of which the kernel's writes are limited as well.
func (w *world) slowHere(rate int64) {
	c := lab.NginxConfig{}
	c.Disk = lab.Disk{Rate: rate, Size: 1 << 30}
	sys, err := c.Start(w.ctx) // for its disk
	w.must(err)
	w.ends(sys.Stop)
	w.flags = []string{"--to", sys.Data}
	begin := time.Now()
	_, text, code := w.at("dd", "if=/dev/zero", "of="+sys.Data+"/try", "bs=1M", "count=12", "conv=fsync")
	seconds := time.Since(begin).Seconds()
	w.must(os.Remove(sys.Data + "/try"))
	w.saw("dd to the local disk: 12 MiB in %.1f s", seconds)
	w.holds(code == 0 && seconds > 2, "a slow disk expected: 12 MiB in %.1f s: %s", seconds, text)
}

func fullHere(w *world) {
	w.reads(large()...)
	at := filepath.Join(w.dir, "memory")
	w.must(os.Mkdir(at, 0o755))
	w.must(unix.Mount("weir-rig", at, "tmpfs", 0, "size=1m"))
	w.ends(func() error { return unix.Unmount(at, unix.MNT_DETACH) })
	w.must(os.WriteFile(at+"/other", make([]byte, 768<<10), 0o644))
	w.flags = []string{"--to", at}
	_, text, code := w.at("curl", "-sS", "-o", at+"/try", w.target)
	w.saw("curl to the tmpfs: exit %d, %s", code, firstWords(text))
	w.holds(code == 23, "curl has to fail by a full disk, exit code 23, is %d", code)
	_ = os.Remove(at + "/try")
}

// diagnoseTwoRigs returns the rigs with two causes. The truth is the larger one.
func diagnoseTwoRigs() []diagnoseRig {
	disk := []string{"nginx", "losetup", "mkfs.ext4", "mount"}
	return []diagnoseRig{
		{
			name: "two-loss-dns", situation: "1% loss at 20 ms, and a name server that answers after 200 ms.", cause: "line/loss",
			second: "name lookup", line: line(200, 20, 0.01),
			play: func(w *world) { lossy(0.01)(w); w.resolver(200 * time.Millisecond); w.target = w.named(w.target) },
		}, {
			name: "two-disk-rate", situation: "A disk of 3 MB/s behind a line of 60 Mbit/s.", cause: "server disk",
			second: "line/rate", needs: disk,
			line: line(60, 10, 0), play: func(w *world) { w.coldDisk(3e6); w.diskIsCause(3e6) },
		}, {
			name: "two-rate-disk", situation: "A line of 10 Mbit/s before a disk of 4 MB/s.", cause: "line/rate",
			second: "server disk", needs: disk,
			line: line(10, 10, 0), play: rateBeforeDisk,
		}, {
			name: "two-limit-loss", situation: "1 MB/s for each connection, and 0.1% loss at 6 ms.", cause: "server limit/stream",
			second: "line/loss",
			line:   line(200, 6, 0.001), play: func(w *world) { w.limited("--rate", "1MB/s"); w.perStream(1e6) },
		}, {
			name: "two-login-limit", needs: []string{"xrootd", "xrdcp"},
			situation: "Logins wait 3 s; 1 MiB over a line of 20 Mbit/s.", cause: "login",
			second: "line/rate", line: line(20, 4, 0), play: func(w *world) { w.loginQueue(3*time.Second, "f2") },
		}, {
			name: "two-dns-delay", situation: "A name server that answers after 2 s, and 1 MiB at 60 ms.", cause: "name lookup",
			second: "line/delay",
			line:   line(200, 60, 0), play: func(w *world) { w.reads(1, 1, 1); w.slowNames(2 * time.Second) },
		}, {
			name: "two-window-loss", situation: "A receive buffer of 64 KiB at 100 ms, and 0.01% loss.",
			cause:  "line/window|this host/buffer",
			second: "line/loss", line: line(200, 100, 0.0001),
			play: func(w *world) {
				w.sysctlHere("net.ipv4.tcp_rmem", "4096 65536 65536")
				w.reads(large()...)
				w.windowOnly()
			},
		}, {
			name: "two-here-rate", situation: "weir with 0.5% of a core, TLS, on a line of 150 Mbit/s.", cause: "this host/cpu",
			second: "line/rate",
			line:   line(150, 4, 0), play: func(w *world) { w.weakClient(0.005) },
		}, {
			name: "two-redirector-rate", situation: "A redirector that takes 2 s, and 1 MiB over a line of 40 Mbit/s.", cause: "redirector",
			second: "line/rate", line: line(40, 4, 0), play: func(w *world) { w.redirected(2 * time.Second) },
		}, {
			name: "two-disks", needs: disk, situation: "A local disk of 2 MB/s, and a server that gives 8 MB/s to each connection.",
			cause: "this host/disk", second: "server limit/stream", line: campus(),
			play: func(w *world) { w.limited("--rate", "8MB/s"); w.perStream(8e6); w.slowHere(2e6) },
		}, {
			name: "two-checksum-rate", situation: "A checksum at 5 MB/s before the first byte, and a line of 100 Mbit/s.",
			cause:  "checksum",
			second: "line/rate", line: line(100, 4, 0), play: func(w *world) { w.summed(5e6) },
		},
	}
}

func rateBeforeDisk(w *world) {
	w.coldDisk(4e6)
	fresh, again := w.curl(w.target, mib(8, 2)...), w.curl(w.target, mib(8, 2)...)
	w.holds(fresh.rate > 0.7*again.rate && again.rate < 1.3e6, "the line is not the limit: %s, then %s", bits(fresh.rate), bits(again.rate))
}

// windowOnly checks that one stream gets little and eight get much more.
func (w *world) windowOnly() {
	one, _ := w.iperf(1, 4, false)
	eight, _ := w.iperf(8, 4, false)
	w.holds(one < 15e6 && eight > 4*one, "%s with one stream, %s with eight", bits(one/8), bits(eight/8))
}
