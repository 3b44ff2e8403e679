package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
)

// freeUDP returns a UDP port that is free now.
func freeUDP(t *testing.T) int {
	t.Helper()
	c, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	return c.LocalAddr().(*net.UDPAddr).Port
}

// TestReportsOfCluster has a redirector and two data servers report to one port; with sync they
// count the traffic of open connections.
func TestReportsOfCluster(t *testing.T) {
	for _, c := range []struct {
		name string
		asks bool
	}{{"reports alone", false}, {"reports and questions", true}} {
		t.Run(c.name, func(t *testing.T) {
			port := freeUDP(t)
			s := labtest.Start(t, lab.XRootDConfig{Servers: 2, Extra: fmt.Sprintf("xrd.report 127.0.0.1:%d every 1s all sync", port)})
			service := open(t, s)
			o := Options{Target: s.URL}
			if c.asks {
				o.Reporter = service.(storage.Reporter)
			}
			k := &keep{}
			hosts := []Host{{Name: "cluster", Role: "server", XRootDReport: fmt.Sprintf("127.0.0.1:%d", port)}}
			w, err := Start(t.Context(), hosts, o, k)
			require.NoError(t, err)
			require.Eventually(t, "all servers report", func() bool {
				sum, _, _ := k.services()
				return sum[Redirector].Pid >= 1 && sum[DataServer].Pid >= 2
			})
			client := service.Client()
			for _, op := range []storage.Op{
				{Kind: storage.Write, Path: "f", Size: 8 << 20, Timeout: 20 * time.Second},
				{Kind: storage.Read, Path: "f", Size: 8 << 20, Timeout: 20 * time.Second},
			} {
				if _, err := client.Do(t.Context(), &op, nobody{}); err != nil {
					t.Fatal(err)
				}
			}
			require.Eventually(t, "the bytes of the open session", func() bool {
				sum, _, _ := k.services()
				return sum[DataServer].Sent >= 8<<20 && sum[DataServer].Received >= 8<<20 && sum[DataServer].Ops["read"] > 0
			})
			require.NoError(t, client.Close())
			require.NoError(t, w.Stop())
			sum, errs, procs := k.services()
			ds := sum[DataServer]
			if ds.Sent > 9<<20 || ds.Received > 9<<20 || len(errs) > 0 || procs > 0 {
				t.Errorf("%+v\n%+v\n%v\n%d processes", sum[Redirector], ds, errs, procs)
			}
			if !c.asks && ds.Late {
				t.Error("reports with sync count late")
			}
		})
	}
}

// listener returns a port for reports of a watch that keeps the samples.
func listener(t *testing.T) (*reports, *keep) {
	t.Helper()
	k := &keep{}
	w := &Watch{stop: make(chan struct{}), sink: k}
	r, err := newReports(context.Background(), w, Host{Name: "p", Role: "server", XRootDReport: "127.0.0.1:0"},
		&servers{}, newClock())
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.conn.Close() })
	return r, k
}

// packet is a report as a server sends it.
func packet(name string, pid int, started, sentAt, sent int64) []byte {
	return fmt.Appendf(nil, `<statistics tod="%d" ver="v5.5.3" src="%s" tos="%d" pgm="xrootd" ins="a" pid="%d" site="">`+
		`<stats id="link"><num>1</num><out>%d</out></stats></statistics>`, sentAt, name, started, pid, sent)
}

func TestReportsInOddOrder(t *testing.T) {
	r, _ := listener(t)
	from := netip.MustParseAddr("203.0.113.5")
	for i, c := range []struct {
		what   string
		packet []byte
		sent   int64 // -1: no sample; -2: a sample without the server's statistics
	}{
		{"the first", packet("a:1", 7, 100, 200, 1000), -1},
		{"the next", packet("a:1", 7, 100, 201, 1500), 500},
		{"the same twice", packet("a:1", 7, 100, 201, 1500), -1},
		{"an older one", packet("a:1", 7, 100, 199, 900), -1},
		{"one was lost", packet("a:1", 7, 100, 203, 2500), 1000},
		{"another server", packet("b:1", 7, 100, 203, 9), -1},
		{"another server's next", packet("b:1", 7, 100, 204, 10), 1},
		{"started again", packet("a:1", 8, 204, 205, 300), 300},
		{"late, of the run before", packet("a:1", 7, 100, 204, 2600), -1},
		{"a counter that falls", packet("a:1", 8, 204, 206, 200), -2},
		{"and goes on from there", packet("a:1", 8, 204, 207, 205), 5},
		{"another server that calls itself so", packet("a:1", 9, 204, 208, 1<<40), -1},
		{"no statistics", []byte("GET /"), -1},
		{"an add-on", []byte(`{"statistics":{}}`), -1},
		{"clock set back 1", packet("a:1", 9, 204, 20, 1<<40), -1},
		{"clock set back 2", packet("a:1", 9, 204, 21, 1<<40), -1},
		{"clock set back 3", packet("a:1", 9, 204, 22, 1<<40), -1},
		{"clock set back 4", packet("a:1", 9, 204, 23, 1<<40), -1},
		{"clock set back 5", packet("a:1", 9, 204, 24, 1<<40), -1},
		{"and goes on", packet("a:1", 9, 204, 25, 1<<40+5), 5},
	} {
		s := r.take(c.packet, from, at(float64(i+1)))
		switch {
		case s != nil && c.sent == -2:
			if s.Service != nil || len(s.LeftOut) != 1 {
				t.Errorf("%s: sample %+v", c.what, s)
			}
		case s == nil && c.sent >= 0, s != nil && c.sent < 0:
			t.Errorf("%s: sample %+v", c.what, s)
		case s != nil && (s.Service.Sent != c.sent || s.Seconds <= 0 || len(s.Procs) != 1):
			t.Errorf("%s: %d bytes in %v s, want %d", c.what, s.Service.Sent, s.Seconds, c.sent)
		}
	}
}

// TestReportsOfThousands: a sender with ever new names does not exhaust the memory, and invalid
// packets are reported only occasionally.
func TestReportsOfThousands(t *testing.T) {
	r, k := listener(t)
	from := netip.MustParseAddr("203.0.113.5")
	for i := range mostReports + 100 {
		r.take(packet(fmt.Sprintf("h%d:1", i), 1, 1, 2, 3), from, at(1))
		r.take([]byte("nonsense"), from, at(1))
	}
	if len(r.last) != mostReports || len(r.servers.reports) > mostReports {
		t.Errorf("%d servers are kept", len(r.last))
	}
	if _, errs, _ := k.services(); len(errs) != firstFaults || !strings.Contains(errs[0], "a packet from 203.0.113.5") {
		t.Errorf("%d errors: %q", len(errs), errs)
	}
}

func TestReportsOnTakenPort(t *testing.T) {
	r, _ := listener(t)
	_, err := Start(t.Context(), []Host{{Name: "x", Role: "server", XRootDReport: r.conn.LocalAddr().String()}}, Options{}, &keep{})
	if err == nil || !strings.Contains(err.Error(), "host x: xrootd_report") {
		t.Errorf("%v", err)
	}
}

func FuzzReports(f *testing.F) {
	f.Add(realStatistics(f, "server.xml"), packet("a:1", 8, 204, 205, 300))
	f.Add(packet("a:1", 7, 100, 200, 1000), packet("a:1", 8, 200, 205, 300))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		r := &reports{watch: &Watch{sink: &keep{}}, role: "server", servers: &servers{}, last: map[sender]*lastReport{}}
		for i, p := range [][]byte{a, b, a, bytes.ToUpper(b)} {
			s := r.take(p, netip.MustParseAddr("203.0.113.5"), at(float64(i+1)))
			if s == nil || len(s.LeftOut) > 0 {
				continue
			}
			if _, err := json.Marshal(s); err != nil || s.Seconds <= 0 || s.Service.Sent < 0 {
				t.Fatal(s, err)
			}
		}
	})
}
