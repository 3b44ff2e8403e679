package main

import (
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis/fact"
)

// A name server that loses a query now and then makes a real client wait for 5 s. calibrate reports
// that the client stalled, but not because of the service.
func TestCalibrateFindsStalls(t *testing.T) {
	tier.Full(t, "xrdcp and gfal-copy beside weir's clients")
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a name server, and programs that ask it, need root")
	}
	labtest.Need(t, "xrdcp", "xrdfs", "unshare", "mount")
	s := labtest.Start(t, lab.XRootDConfig{})
	n := newNameServer(t, 20)
	r, _ := calibratedWith(t, func(cmd *exec.Cmd) error { return lab.NameServer(cmd, n.address) }, s.URL, "--clients", "8", "--rounds", "1",
		"--duration", "6s", "--size", "64KiB")
	if n.questions.Load() == 0 {
		t.Fatal("nobody asked the name server")
	}
	if x := r.Stalls; x == nil || x.Seconds < 4 || x.Seconds > 30 || x.Ratio <= 0 {
		t.Errorf("%d questions, stalls %+v", n.questions.Load(), x)
	}
	if !fact.Has(r.Facts, "calibration.stalls") {
		t.Errorf("verdict %q", r.Verdict)
	}
	empty(t, s.Data)
}

// A nameServer resolves every name to 127.0.0.1, and drops one of every each queries.
type nameServer struct {
	address   string // without its port, which is 53
	each      int64
	questions atomic.Int64
}

func newNameServer(t *testing.T, each int64) *nameServer {
	t.Helper()
	n := &nameServer{each: each}
	for _, n.address = range []string{"127.0.0.9", "127.0.0.10", "127.0.0.11"} { // some of which may be in use
		c, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", n.address+":53")
		if err != nil {
			t.Log(err)
			continue
		}
		var ended sync.WaitGroup
		ended.Go(func() { n.serve(c) })
		t.Cleanup(func() {
			_ = c.Close()
			ended.Wait()
		})
		return n
	}
	t.Fatal("no place for a name server")
	return nil
}

func (n *nameServer) serve(c net.PacketConn) {
	b := make([]byte, 1500)
	for {
		size, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:size]) != nil || len(m.Questions) != 1 || n.questions.Add(1)%n.each == 0 {
			continue
		}
		q := m.Questions[0]
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1},
				Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
		}
		if answer, err := m.Pack(); err == nil {
			_, _ = c.WriteTo(answer, from)
		}
	}
}
