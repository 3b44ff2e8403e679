package monitor

import (
	"context"
	"fmt"
	"strings"
)

// follows reports whether s continues p: it is of the same run of a server, or of a server that was
// started after p was sent. Two servers may have the same name; the counts of a server since its
// start do not continue the other's report.
func (s *statistics) follows(p *statistics) bool {
	return p != nil && (s.identity() == p.identity() || s.started >= p.reportedAt-1)
}

// since returns the statistics of the seconds between p, which s follows, and s; nil if a counter
// is implausible. If the server was started in between, all its counts happened since.
func (s *statistics) since(p *statistics, seconds float64) *Service {
	if p.identity() != s.identity() {
		p = &statistics{}
	}
	span := rises{seconds: seconds, before: p.past}
	if s.late() || p.values == nil { // they may be of all the time since it was started
		span.seconds = max(seconds, float64(s.reportedAt-s.started))
	}
	r := func(key string) int64 {
		most := mostEvents
		if key == "link.in" || key == "link.out" {
			most = mostBytes
		}
		return roseOn(&span, s.values[key], p.values[key], most)
	}
	out := &Service{
		Name: s.name, Program: s.program, Version: s.version, Kind: s.kind(), Pid: s.pid, Late: s.late(),
		User: rose(&span, s.user(), p.user(), mostCPU), System: rose(&span, s.system(), p.system(), mostCPU),
		Threads: gauge(s.values["sched.threads"]), Idle: gauge(s.values["sched.idle"]), Limited: r("sched.tlimr"),
		Queue: gauge(s.values["sched.inq"]), Connections: gauge(s.values["link.num"]),
		Connected: r("link.tot"), Received: r("link.in"), Sent: r("link.out"),
		Logins: r("xrootd.lgn.num"), Proven: r("xrootd.lgn.au"), Refused: r("xrootd.lgn.af"),
		Redirects: r("xrootd.rdr"), Errors: r("xrootd.err"), Waits: r("xrootd.dly"), Async: r("xrootd.aio.num"),
		Segments: r("xrootd.ops.rs") + r("xrootd.ops.ws"),
	}
	for _, op := range ops() {
		if n := r("xrootd.ops." + op[0]); n > 0 {
			if out.Ops == nil {
				out.Ops = map[string]int64{}
			}
			out.Ops[op[1]] = n
		}
	}
	for _, key := range [...]string{"sched.threads", "sched.idle", "sched.inq", "link.num"} {
		span.wrong = span.wrong || s.values[key] > mostConnections
	}
	if s.past = span.past(); span.bad() {
		return nil
	}
	return out
}

// kind returns the kind of the server according to its role, "" if the role is unknown.
func (s *statistics) kind() string {
	switch {
	case s.program == "cmsd":
		return ClusterManager
	case strings.Contains(s.role, "manager"), strings.Contains(s.role, "supervisor"):
		return Redirector
	case strings.Contains(s.role, "server"), strings.Contains(s.role, "peer"):
		return DataServer
	}
	return ""
}

// roseOn works like rose, for counters of which many have 32 bits and a sign: they continue at the
// lowest number after the highest.
func roseOn(r *rises, now, before int64, most float64) int64 {
	if now-before < -1<<31 && before < 1<<31 {
		now += 1 << 32
	}
	return rose(r, now, before, most)
}

// gauge returns the current number of things, such as connections, in the range of int.
func gauge(n int64) int { return int(min(max(0, n), 1<<31)) }

// proc returns the server as a watched process, for servers that are not visible in this machine's
// /proc.
func (s *Service) proc() Proc {
	return Proc{Name: s.Program, Role: RoleServer, Count: 1, Threads: s.Threads, User: s.User, System: s.System}
}

// A Reading has the counters of an XRootD server at one moment. Two readings give exact
// differences, if the seconds of a Watch are too coarse.
type Reading struct {
	at    moment
	stats *statistics
}

// Read requests the current statistics of a server.
func Read(ctx context.Context, r Reporter, server string) (Reading, error) {
	clock := newClock()
	b, err := r.Report(ctx, server)
	if err != nil {
		return Reading{}, err
	}
	s, err := parseStatistics(b)
	if err != nil {
		return Reading{}, fmt.Errorf("statistics of %s: %w", server, err)
	}
	return Reading{at: clock(), stats: s}, nil
}

// Since returns the statistics between the reading before and r; false if the server was restarted
// meanwhile, is another server, or has an implausible counter.
func (r Reading) Since(before Reading) (*Service, bool) {
	if r.stats == nil || before.stats == nil || r.stats.identity() != before.stats.identity() {
		return nil, false
	}
	s := r.stats.since(before.stats, max(0, r.at.wall.Sub(before.at.wall).Seconds()))
	return s, s != nil
}

// Sample returns the result of Since as a sample of the span between the two readings.
func (r Reading) Sample(before Reading) (*Sample, bool) {
	s, ok := r.Since(before)
	if !ok {
		return nil, false
	}
	return &Sample{Time: r.at.wall, Seconds: r.at.wall.Sub(before.at.wall).Seconds(), Service: s}, true
}
