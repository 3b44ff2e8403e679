package results

import (
	"weir/internal/scan"
	"weir/link"
	"weir/measure"
	"weir/monitor"
)

// A decoder reads lines of one file. It first tries the way that is fast for
// lines as this program writes them, then the one that takes any JSON. What it
// fills is its to reuse: slices and maps of a value are overwritten when the
// same value is filled again.
type decoder struct {
	line      scan.Line
	intervals measure.IntervalReader
}

// interval fills iv from b.
func (d *decoder) interval(b []byte, iv *measure.Interval) error {
	if d.intervals.Read(b, iv) {
		return nil
	}
	*iv = measure.Interval{}
	return decode(b, iv)
}

// A host is a sample with room for what it points to.
type host struct {
	monitor.Sample
	cpu     monitor.CPU
	waits   float64
	memory  monitor.Memory
	tcp     monitor.TCP
	service monitor.Service
	link    monitor.Link
	behind  monitor.Balancer
	logged  monitor.Transfers
	ops     map[string]int64
}

// sample fills h from b.
func (d *decoder) sample(b []byte, h *host) error {
	if d.quickSample(b, h) {
		return nil
	}
	*h = host{}
	return decode(b, &h.Sample)
}

func (d *decoder) quickSample(b []byte, h *host) bool {
	l, v := &d.line, &h.Sample
	l.Reset(b)
	*v = monitor.Sample{Core: v.Core[:0], Disks: v.Disks[:0], Nets: v.Nets[:0], Procs: v.Procs[:0]}
	l.Open()
	if !l.Key("time") || v.Time.UnmarshalText(l.Bytes()) != nil {
		return false
	}
	scan.Fraction(l, "duration_seconds", &v.Seconds)
	scan.Name(l, "host", &v.Host)
	scan.Name(l, "role", &v.Role)
	scan.Number(l, "step", &v.Step)
	scan.Number(l, "cores", &v.Cores)
	if l.Key("cpu") {
		v.CPU = &h.cpu
		cpu(l, v.CPU)
	}
	if l.Key("core_busy") {
		for l.Array(); l.Next(); {
			v.Core = append(v.Core, l.Float())
		}
	}
	if l.Key("cpu_waits") {
		h.waits = l.Float()
		v.Waits = &h.waits
	}
	scan.Fraction(l, "load1", &v.Load)
	if l.Key("memory") {
		v.Memory = &h.memory
		memory(l, v.Memory)
	}
	if l.Key("disks") {
		for l.Array(); l.Next(); {
			v.Disks = append(v.Disks, disk(l))
		}
	}
	if l.Key("nets") {
		for l.Array(); l.Next(); {
			v.Nets = append(v.Nets, net(l))
		}
	}
	if l.Key("tcp") {
		v.TCP = &h.tcp
		tcp(l, v.TCP)
	}
	h.watched(l)
	h.others(l)
	scan.Fraction(l, "cost_cpu_seconds", &v.Cost)
	scan.Name(l, "error", &v.Error)
	l.Close()
	return l.Whole()
}

// watched reads what processes did.
func (h *host) watched(l *scan.Line) {
	if l.Key("processes") {
		for l.Array(); l.Next(); {
			h.Procs = append(h.Procs, process(l))
		}
	}
	scan.Fraction(l, "others_cpu_seconds", &h.Others)
}

// others reads what a host may be besides a machine.
func (h *host) others(l *scan.Line) {
	if l.Key("service") {
		h.Service = &h.service
		h.serve(l)
	}
	if l.Key("link") {
		h.Link = &h.link
		emulated(l, h.Link)
	}
	if l.Key("balancer") {
		h.Balancer = &h.behind
		balancer(l, h.Balancer)
	}
	if l.Key("transfers") {
		h.Transfers = &h.logged
		transfers(l, h.Transfers)
	}
}

func cpu(l *scan.Line, v *monitor.CPU) {
	*v = monitor.CPU{}
	l.Open()
	scan.Fraction(l, "user", &v.User)
	scan.Fraction(l, "system", &v.System)
	scan.Fraction(l, "irq", &v.IRQ)
	scan.Fraction(l, "iowait", &v.IOWait)
	scan.Fraction(l, "steal", &v.Steal)
	scan.Fraction(l, "idle", &v.Idle)
	l.Close()
}

func memory(l *scan.Line, v *monitor.Memory) {
	*v = monitor.Memory{}
	l.Open()
	scan.Number(l, "total_bytes", &v.Total)
	scan.Number(l, "available_bytes", &v.Available)
	scan.Number(l, "swap_used_bytes", &v.Swapped)
	l.Close()
}

func disk(l *scan.Line) (v monitor.Disk) {
	l.Open()
	scan.Name(l, "name", &v.Name)
	scan.Fraction(l, "read_bytes_per_second", &v.Read)
	scan.Fraction(l, "write_bytes_per_second", &v.Write)
	scan.Fraction(l, "operations_per_second", &v.Ops)
	scan.Fraction(l, "queue", &v.Queue)
	scan.Fraction(l, "busy", &v.Busy)
	l.Close()
	return v
}

func net(l *scan.Line) (v monitor.Net) {
	l.Open()
	scan.Name(l, "name", &v.Name)
	scan.Number(l, "received_bytes", &v.Received)
	scan.Number(l, "sent_bytes", &v.Sent)
	scan.Number(l, "received_packets", &v.PacketsIn)
	scan.Number(l, "sent_packets", &v.PacketsOut)
	scan.Number(l, "drops", &v.Drops)
	scan.Fraction(l, "speed_bits_per_second", &v.Speed)
	l.Close()
	return v
}

func tcp(l *scan.Line, v *monitor.TCP) {
	*v = monitor.TCP{}
	l.Open()
	scan.Number(l, "retransmitted_segments", &v.Retransmits)
	scan.Number(l, "established", &v.Established)
	scan.Number(l, "listen_drops", &v.ListenDrops)
	l.Close()
}

func process(l *scan.Line) (v monitor.Proc) {
	l.Open()
	scan.Name(l, "name", &v.Name)
	scan.Name(l, "role", &v.Role)
	scan.Number(l, "processes", &v.Count)
	scan.Number(l, "threads", &v.Threads)
	scan.Fraction(l, "user_cpu_seconds", &v.User)
	scan.Fraction(l, "system_cpu_seconds", &v.System)
	scan.Number(l, "resident_bytes", &v.RSS)
	scan.Number(l, "open_files", &v.Files)
	scan.Number(l, "measured_threads", &v.MeasuredThreads)
	scan.Fraction(l, "busiest_thread_cpu_seconds", &v.BusiestThread)
	scan.Fraction(l, "unmeasured_thread_cpu_seconds", &v.UnmeasuredThread)
	scan.Number(l, "allowed_cores", &v.AllowedCores)
	scan.Number(l, "read_bytes", &v.Read)
	scan.Number(l, "written_bytes", &v.Written)
	scan.Number(l, "sent_bytes", &v.Sent)
	scan.Number(l, "received_bytes", &v.Received)
	l.Close()
	return v
}

// emulated reads what an emulated link went through.
func emulated(l *scan.Line, v *monitor.Link) {
	*v = monitor.Link{}
	l.Open()
	if l.Key("down") {
		v.Down = l.Bool()
	}
	if l.Key("to_clients") {
		traffic(l, &v.ToClients)
	}
	if l.Key("from_clients") {
		traffic(l, &v.FromClients)
	}
	scan.Fraction(l, "emulation_cpu_seconds", &v.Cost)
	l.Close()
}

func traffic(l *scan.Line, v *link.Traffic) {
	l.Open()
	scan.Number(l, "packets", &v.Packets)
	scan.Number(l, "bytes", &v.Bytes)
	scan.Number(l, "dropped", &v.Dropped)
	scan.Number(l, "lost", &v.Lost)
	scan.Number(l, "cut", &v.Cut)
	scan.Fraction(l, "busy", &v.Busy)
	for _, q := range []struct {
		key string
		q   *link.Quantiles
	}{{"wait_seconds", &v.Wait}, {"late_seconds", &v.Late}} {
		if l.Key(q.key) {
			l.Open()
			scan.Fraction(l, "p50", &q.q.P50)
			scan.Fraction(l, "p99", &q.q.P99)
			scan.Fraction(l, "max", &q.q.Max)
			l.Close()
		}
	}
	l.Close()
}

// serve reads what a server says of itself.
func (h *host) serve(l *scan.Line) {
	v := &h.service
	*v = monitor.Service{}
	l.Open()
	scan.Name(l, "name", &v.Name)
	scan.Name(l, "program", &v.Program)
	scan.Name(l, "version", &v.Version)
	scan.Name(l, "kind", &v.Kind)
	scan.Number(l, "pid", &v.Pid)
	if l.Key("late") {
		v.Late = l.Bool()
	}
	scan.Fraction(l, "user_cpu_seconds", &v.User)
	scan.Fraction(l, "system_cpu_seconds", &v.System)
	scan.Number(l, "threads", &v.Threads)
	scan.Number(l, "idle_threads", &v.Idle)
	scan.Number(l, "thread_limit_met", &v.Limited)
	scan.Number(l, "queue", &v.Queue)
	scan.Number(l, "connections", &v.Connections)
	for _, f := range []struct {
		key string
		n   *int64
	}{
		{"connected", &v.Connected}, {"received_bytes", &v.Received}, {"sent_bytes", &v.Sent}, {"logins", &v.Logins},
		{"proven_logins", &v.Proven}, {"refused_logins", &v.Refused}, {"redirects", &v.Redirects}, {"errors", &v.Errors},
		{"waits", &v.Waits}, {"async_operations", &v.Async}, {"vector_segments", &v.Segments},
	} {
		scan.Number(l, f.key, f.n)
	}
	if l.Key("operations_by") {
		if h.ops == nil {
			h.ops = map[string]int64{}
		}
		clear(h.ops)
		v.Ops = h.ops
		l.Open()
		for k := l.AnyKey(); k != ""; k = l.AnyKey() {
			v.Ops[k] = l.Int()
		}
		l.Close()
	}
	l.Close()
}

// balancer reads what a balancer says of the servers behind it.
func balancer(l *scan.Line, v *monitor.Balancer) {
	*v = monitor.Balancer{Servers: v.Servers[:0]}
	l.Open()
	scan.Name(l, "kind", &v.Kind)
	scan.Number(l, "connected", &v.Connected)
	scan.Number(l, "received_bytes", &v.Received)
	scan.Number(l, "sent_bytes", &v.Sent)
	if l.Key("servers") {
		for l.Array(); l.Next(); {
			v.Servers = append(v.Servers, balanced(l))
		}
	}
	l.Close()
}

func balanced(l *scan.Line) (v monitor.Balanced) {
	l.Open()
	scan.Name(l, "name", &v.Name)
	scan.Name(l, "service", &v.Service)
	scan.Name(l, "address", &v.Address)
	scan.Name(l, "status", &v.Status)
	scan.Number(l, "weight", &v.Weight)
	scan.Number(l, "connections", &v.Connections)
	scan.Number(l, "limit", &v.Limit)
	scan.Number(l, "queue", &v.Queue)
	scan.Number(l, "connected", &v.Connected)
	scan.Number(l, "received_bytes", &v.Received)
	scan.Number(l, "sent_bytes", &v.Sent)
	scan.Number(l, "errors", &v.Errors)
	l.Close()
	return v
}

// transfers reads what a backend's log says.
func transfers(l *scan.Line, v *monitor.Transfers) {
	*v = monitor.Transfers{Spans: v.Spans[:0]}
	l.Open()
	scan.Number(l, "done", &v.Done)
	scan.Number(l, "failed", &v.Failed)
	if l.Key("spans") {
		for l.Array(); l.Next(); {
			var s monitor.TransfersSpan
			l.Open()
			if !l.Key("begin") || s.Begin.UnmarshalText(l.Bytes()) != nil {
				l.Refuse()
			}
			scan.Fraction(l, "duration_seconds", &s.Seconds)
			scan.Number(l, "moved_bytes", &s.Moved)
			scan.Fraction(l, "running", &s.Running)
			l.Close()
			v.Spans = append(v.Spans, s)
		}
	}
	l.Close()
}
