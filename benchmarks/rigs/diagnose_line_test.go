package rigs

import (
	"net"
	"net/netip"
	"path/filepath"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// diagnoseLineRigs returns the rigs whose cause is the line.
func diagnoseLineRigs() []diagnoseRig {
	hole := line(200, 10, 0)
	hole.BlackHole = 1400
	bucket := line(8, 10, 0)
	bucket.Burst = 4e6
	bloat := line(10, 20, 0)
	bloat.Queue = ms2(2000)
	up := line(200, 10, 0)
	up.Up = 10e6
	return []diagnoseRig{
		{name: "loss-0.1", situation: "0.1% loss at 50 ms on a line of 200 Mbit/s, read.", cause: "line/loss", line: line(200, 50,
			0.001), play: lossy(0.001)},
		{name: "loss-1", situation: "1% loss at 20 ms on a line of 200 Mbit/s, read.", cause: "line/loss", line: line(200, 20,
			0.01), play: lossy(0.01)},
		{
			name: "loss-3-write", situation: "3% loss at 10 ms on a line of 200 Mbit/s, write.", cause: "line/loss", line: line(200,
				10, 0.03),
			play: func(w *world) { lossy(0.03)(w); w.writes() },
		},
		{name: "rate", situation: "A line of 20 Mbit/s and 10 ms, read.", cause: "line/rate", line: line(20, 10, 0),
			play: rated(20e6, false)},
		{
			name: "rate-up-write", situation: "A line of 200 Mbit/s to the client and 10 Mbit/s from it, write.",
			cause: "line/rate", line: up,
			play: func(w *world) { rated(10e6, true)(w); w.writes() },
		},
		{name: "shaper", situation: "A token bucket of 8 Mbit/s that lets 4 MB pass at once, read.", cause: "line/rate",
			line: bucket, play: shaped},
		{
			name: "bufferbloat", situation: "A line of 10 Mbit/s and 20 ms with a queue of 2 s, read.", cause: "line/rate|line/delay",
			line: bloat, play: bloated,
		},
		{
			name: "window-receiver", situation: "150 ms, and buffers of 64 KiB at most for what the client receives.",
			cause: "line/window|this host/buffer", line: line(200, 150, 0),
			play: func(w *world) { w.sysctlHere("net.ipv4.tcp_rmem", "4096 65536 65536"); windowed(w) },
		},
		{
			name: "window-sender", situation: "80 ms, and buffers of 64 KiB at most for what the server sends.", cause: "line/window",
			line: line(200, 80, 0), play: func(w *world) { w.sysctl("net.ipv4.tcp_wmem", "4096 65536 65536"); windowed(w) },
		},
		{
			name: "window-write", situation: "80 ms, and buffers of 64 KiB at most for what the server receives, write.",
			cause: "line/window",
			line:  line(200, 80, 0), play: func(w *world) { w.sysctl("net.ipv4.tcp_rmem", "4096 65536 65536"); windowedUp(w) },
		},
		{
			name: "buffer-write", situation: "80 ms, and buffers of 64 KiB at most for what the client sends, write.",
			cause: "this host/buffer|line/window", line: line(200, 80, 0),
			play: func(w *world) { w.sysctlHere("net.ipv4.tcp_wmem", "4096 65536 65536"); windowedUp(w) },
		},
		{
			name: "delay", situation: "A file of 40 KiB at 150 ms.", cause: "line/delay|small files", line: line(200, 150, 0),
			play: distant,
		},
		{name: "mtu", situation: "Packets above 1400 bytes vanish without ICMP.", cause: "line/mtu", line: hole, play: holed},
		{
			name: "address-family", situation: "The name has an IPv6 address that drops all packets; the client falls back to IPv4.",
			cause: "line/address family", needs: []string{"ip6tables"}, line: campus(), play: familiar,
		},
	}
}

// reads serves files, and has the first one diagnosed.
func (w *world) reads(sizes ...float64) {
	w.target = w.serve(w.folder("files", sizes...), nil) + "/f0"
}

// writes has writes to the server of the target diagnosed.
func (w *world) writes() {
	w.target, w.flags = w.target[:len(w.target)-len("f0")], []string{"--write"}
}

// lossy checks the loss, and that TCP gets far less than the line carries.
func lossy(share float64) func(w *world) {
	return func(w *world) {
		w.reads(large()...)
		lost, _ := w.ping(5000)
		w.holds(lost > 0.6*share && lost < 3.4*share, "a loss of %.2f%% in both ways together, %.2f%% expected", 100*lost, 200*share)
		one, again := w.iperf(1, 4, false)
		w.holds(one < 100e6 && again > 0, "%s of a line of 200 Mbit/s with %d retransmissions", bits(one/8), again)
	}
}

// rated checks the rate of the line with one and eight streams.
func rated(rate float64, up bool) func(w *world) {
	return func(w *world) {
		w.reads(large()...)
		for _, streams := range []int{1, 8} {
			got, _ := w.iperf(streams, 3, up)
			w.holds(got > 0.8*rate && got < 1.1*rate, "%s with %d streams, %s expected", bits(got/8), streams, bits(rate/8))
		}
	}
}

func shaped(w *world) {
	w.reads(large()...)
	w.sleep(5 * time.Second) // the bucket fills
	first := w.curl(w.target, mib(0, 2)...)
	w.curl(w.target, mib(2, 4)...) // uses the rest of the burst up
	later := w.curl(w.target, mib(8, 2)...)
	w.holds(first.rate > 1.5*later.rate && later.rate < 1.3e6, "a burst expected: %s at first, then %s", bits(first.rate), bits(later.rate))
	w.each = func() { w.sleep(5 * time.Second) }
}

func bloated(w *world) {
	w.reads(large()...)
	_, idle := w.ping(10)
	done := make(chan fetched)
	go func() { done <- w.curl(w.target, mib(0, 6)...) }()
	w.sleep(3 * time.Second)
	_, busy := w.ping(20)
	f := <-done
	w.holds(busy > 5*idle && f.rate > 0.9e6, "bufferbloat expected: %.0f ms, idle %.0f ms, %s", busy, idle, bits(f.rate))
	w.each = func() { w.sleep(3 * time.Second) } // the queue empties
}

// windowed checks that streams add up, without loss.
func windowed(w *world) {
	w.reads(large()...)
	w.window(false)
}

func windowedUp(w *world) {
	w.reads(large()...)
	w.writes()
	w.window(true)
}

func (w *world) window(up bool) {
	lost, _ := w.ping(200)
	one, _ := w.iperf(1, 4, up)
	eight, _ := w.iperf(8, 4, up)
	w.holds(lost == 0 && one < 20e6 && eight > 2.5*one, "%.1f%% loss, %s with one stream, %s with eight", 100*lost, bits(one/8),
		bits(eight/8))
}

func distant(w *world) {
	w.reads(40./1024, 40./1024, 40./1024)
	_, rtt := w.ping(10)
	f := w.curl(w.target)
	w.holds(rtt > 145 && f.total > 2*rtt/1000 && f.total < 6*rtt/1000, "a few round trips expected: %.0f ms each, %.2f s", rtt, f.total)
}

func holed(w *world) {
	w.reads(large()...)
	large, _ := w.ping(20, "-M", "do", "-s", "1450")
	small, _ := w.ping(20, "-M", "do", "-s", "1300")
	f := w.curl(w.target, "-m", "5")
	w.holds(large == 1 && small == 0 && f.connect > 0 && f.bytes < 2000,
		"lost: %.0f%% of large packets, %.0f%% of small ones; %d bytes arrived",
		100*large, 100*small, f.bytes)
}

const rigName = "se.example.org"

// deadAddress is an IPv6 address that drops all packets.
const deadAddress = "2001:db8::5"

// resolver answers requests for names at the site, after a time. addresses6 are those of AAAA.
func (w *world) resolver(delay time.Duration, addresses6 ...netip.Addr) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:53")
	w.must(err)
	w.ends(conn.Close)
	four := netip.MustParseAddr(w.network.Service)
	go func() {
		for {
			b := make([]byte, 1500)
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			go func() {
				time.Sleep(delay)
				if reply := dnsReply(b[:n], four, addresses6); reply != nil {
					_, _ = conn.WriteTo(reply, from)
				}
			}()
		}
	}()
	path := filepath.Join(w.dir, "resolv.conf")
	w.mountFile(path, "nameserver "+w.network.Service+"\noptions timeout:10 attempts:1\n", "/etc/resolv.conf")
}

// dnsReply returns the answer to a request.
func dnsReply(request []byte, four netip.Addr, six []netip.Addr) []byte {
	var m dnsmessage.Message
	if m.Unpack(request) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionDesired: true, RecursionAvailable: true}
	m.Additionals = nil
	head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 0}
	switch {
	case q.Name.String() != rigName+".":
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: four.As4()}}}
	case q.Type == dnsmessage.TypeAAAA:
		for _, a := range six {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}

// named returns a URL with the name of the service instead of its address.
func (w *world) named(url string) string { return replaceHost(url, w.network.Service, rigName) }

func familiar(w *world) {
	w.reads(1, 1, 1)
	w.resolver(0, netip.MustParseAddr(deadAddress))
	w.target = w.named(w.target)
	for _, argv := range [][]string{
		{"ip", "-6", "addr", "add", deadAddress + "/128", "dev", "lo", "nodad"},
		{"ip6tables", "-A", "INPUT", "-d", deadAddress, "-j", "DROP"},
	} {
		_, text, code := w.at(argv...)
		w.holds(code == 0, "%v: %s", argv, text)
	}
	six, four := w.curl(w.target, "-6", "-m", "2"), w.curl(w.target, "-4")
	w.holds(six.connect == 0 && four.total < 0.5 && four.code == 200, "IPv4 alone expected: %.2f s", four.total)
}
