package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// reports receives the packets that XRootD servers send with "xrd.report HOST:PORT every 1s all
// sync". The packets of all servers arrive at one port.
type reports struct {
	watch   *Watch
	name    string // of the scenario's entry, for errors of the port itself
	role    Role
	conn    *net.UDPConn
	where   string // the port's address, for errors
	servers *servers
	clock   func() moment
	last    map[sender]*lastReport
	faults  throttle
}

// A sender is one server, as far as its packets identify it.
type sender struct {
	from                    netip.Addr
	name, program, instance string
}

// lastReport is the last report of a server.
type lastReport struct {
	last *statistics
	at   moment
	late int // consecutive packets that were older than the last accepted packet
}

const (
	reportSilence = 15 * time.Second // after which missing reports are reported
	mostLate      = 5                // packets in a row: then the server's clock was set back
)

// newReports opens the port of a host's settings.
func newReports(ctx context.Context, w *Watch, h Host, s *servers, clock func() moment) (*reports, error) {
	conn, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", h.XRootDReport)
	if err != nil {
		return nil, fmt.Errorf("host %s: xrootd_report: %w", h.Name, err)
	}
	r := &reports{watch: w, name: h.Name, role: h.Role, conn: conn.(*net.UDPConn), where: conn.LocalAddr().String(), servers: s, clock: clock,
		last: map[sender]*lastReport{}}
	_ = r.conn.SetReadBuffer(4 << 20) // hundreds of servers may report at the same moment
	return r, nil
}

// run takes packets until the port is closed.
func (r *reports) run() {
	b := make([]byte, 64<<10)
	_ = r.conn.SetReadDeadline(time.Now().Add(reportSilence))
	for {
		n, from, err := r.conn.ReadFromUDPAddrPort(b)
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			_ = r.conn.SetReadDeadline(time.Time{})
			r.watch.warn(r.name, r.role, fmt.Sprintf("no report has come to %s yet: the servers need the line xrd.report THISHOST:%d "+
				"every 1s all sync", r.conn.LocalAddr(), r.conn.LocalAddr().(*net.UDPAddr).Port))
			continue
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			r.fault(err)
			continue
		}
		_ = r.conn.SetReadDeadline(time.Time{})
		if s := r.take(b[:n], from.Addr().Unmap(), r.clock()); s != nil {
			r.watch.emit(s)
		}
	}
}

// fault reports on a packet that was of no use, as often as a throttle lets it.
func (r *reports) fault(err error) {
	if now := time.Now(); r.faults.bad(now) {
		r.watch.warn(r.name, r.role, fmt.Sprintf("reports on %s: %v", r.where, err))
	}
}

// take parses a packet and returns its sample, or nil if it makes no sample: the first packet of a
// server, a late or repeated packet, and a packet for which a probe waits.
func (r *reports) take(b []byte, from netip.Addr, at moment) *Sample {
	now, err := parseStatistics(b)
	if errors.Is(err, errAddOn) {
		return nil
	}
	if err != nil {
		r.fault(fmt.Errorf("a packet from %s: %w", from, err))
		return nil
	}
	who := sender{from, now.name, now.program, now.instance}
	t := r.last[who]
	if t == nil {
		if len(r.last) >= mostReports {
			r.fault(fmt.Errorf("more than %d servers report: %s at %s is left out", mostReports, now.name, from))
			return nil
		}
		t = &lastReport{}
		r.last[who] = t
	}
	before, since := t.last, t.at
	if before != nil && now.before(before) {
		if t.late++; t.late < mostLate {
			return nil
		}
		before = nil
	}
	*t = lastReport{last: now, at: at}
	if r.servers.reported(now, at) || !now.follows(before) || at.mono <= since.mono {
		return nil
	}
	return r.sample(now, before, from, at, since)
}

// before reports whether s was sent before p, or at the same time.
func (s *statistics) before(p *statistics) bool {
	if s.identity() == p.identity() {
		return s.reportedAt <= p.reportedAt
	}
	return s.started < p.started
}

func (r *reports) sample(now, before *statistics, from netip.Addr, at, since moment) *Sample {
	s := &Sample{Time: at.wall, Seconds: (at.mono - since.mono).Seconds(), Host: now.name, Role: r.role}
	if now.program != dataProgram { // every cmsd that serves no port is called HOST:0
		s.Host += " (" + now.program + " " + now.instance + ")"
	}
	if s.Service = now.since(before, s.Seconds); s.Service == nil {
		s.Seconds, s.LeftOut = 0, []string{LeftOutService}
		return s
	}
	if now.program == dataProgram && s.Service.Kind == "" {
		s.Service.Kind = DataServer
	}
	if now.program != dataProgram || !r.seen(now.name, from) {
		s.Procs = []Proc{s.Service.proc()}
	}
	return s
}

// dataProgram is the program that serves data, or redirects to the servers that do.
const dataProgram = "xrootd"

// seen reports whether this machine's /proc shows the server.
func (r *reports) seen(name string, from netip.Addr) bool {
	port, err := strconv.ParseUint(name[strings.LastIndexByte(name, ':')+1:], 10, 16)
	if err != nil || port == 0 || !here(from) {
		return false
	}
	return r.servers.place(netip.AddrPortFrom(from, uint16(port))).state.Load() != placeHidden
}
