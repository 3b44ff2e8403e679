package results

import (
	"time"

	"weir/internal/scan"
	"weir/link"
	"weir/measure"
	"weir/monitor"
	"weir/storage"
)

// A decoder reads lines of one file. It first tries the way that is fast for
// lines as this program writes them, then the one that takes any JSON. What it
// fills is its to reuse: slices and maps of a value are overwritten when the
// same value is filled again.
type decoder struct {
	line       scan.Line
	histograms measure.HistogramReader
}

// interval fills iv from b.
func (d *decoder) interval(b []byte, iv *measure.Interval) error {
	if d.quickInterval(b, iv) {
		return nil
	}
	*iv = measure.Interval{}
	return decode(b, iv)
}

func (d *decoder) quickInterval(b []byte, v *measure.Interval) bool {
	l := &d.line
	l.Reset(b)
	*v = measure.Interval{Latency: v.Latency, FirstByte: v.FirstByte, Connect: v.Connect, Login: v.Login, Redirect: v.Redirect, Late: v.Late, Jobs: measure.Jobs{Wall: v.Wall}}
	l.Open()
	if !l.Key(`"start":`) || v.Start.UnmarshalText(l.Bytes()) != nil {
		return false
	}
	d.counts(v)
	for _, h := range []struct {
		key string
		h   *measure.Histogram
	}{
		{`"latency_seconds":`, &v.Latency}, {`"first_byte_seconds":`, &v.FirstByte}, {`"connect_seconds":`, &v.Connect},
		{`"login_seconds":`, &v.Login}, {`"redirect_seconds":`, &v.Redirect}, {`"late_seconds":`, &v.Late},
	} {
		if !l.Key(h.key) {
			h.h.Reset()
		} else if !d.histograms.Read(h.h, l.Object()) {
			return false
		}
	}
	if l.Key(`"client_cpu_seconds":`) {
		v.CPU = l.Float()
	}
	count(l, `"program_memory_bytes":`, &v.Memory)
	if !d.jobs(&v.Jobs) || !d.sites(v) {
		return false
	}
	l.Close()
	return l.Whole()
}

// sites reads what jobs did at each of several sites.
func (d *decoder) sites(v *measure.Interval) bool {
	l := &d.line
	if !l.Key(`"sites":`) {
		return true
	}
	v.Sites = map[string]*measure.Site{}
	l.Open()
	for name := l.AnyKey(); name != ""; name = l.AnyKey() {
		s := &measure.Site{}
		v.Sites[name] = s
		l.Open()
		count(l, `"moved_bytes":`, &s.Moved)
		float(l, `"client_cpu_seconds":`, &s.CPU)
		if !d.jobs(&s.Jobs) {
			return false
		}
		l.Close()
	}
	l.Close()
	return true
}

// jobs reads the keys of an interval that tell of jobs.
func (d *decoder) jobs(v *measure.Jobs) bool {
	l := &d.line
	float(l, `"jobs_running":`, &v.Running)
	count(l, `"jobs_begun":`, &v.Started)
	count(l, `"jobs_done":`, &v.Ended)
	count(l, `"jobs_failed":`, &v.Broken)
	count(l, `"jobs_crashed":`, &v.Crashed)
	count(l, `"events":`, &v.Events)
	count(l, `"used_bytes":`, &v.Used)
	count(l, `"staged_bytes":`, &v.Staged)
	float(l, `"compute_seconds":`, &v.Compute)
	if !l.Key(`"job_seconds":`) {
		v.Wall.Reset()
		return true
	}
	return d.histograms.Read(&v.Wall, l.Object())
}

// counts reads the keys of an interval between its start and its histograms.
func (d *decoder) counts(v *measure.Interval) {
	l := &d.line
	float(l, `"duration_seconds":`, &v.Seconds)
	whole(l, `"step":`, &v.Step)
	name(l, `"phase":`, &v.Phase)
	float(l, `"clients":`, &v.Clients)
	if l.Key(`"kind":`) && v.Kind.UnmarshalText(l.Bytes()) != nil {
		l.Refuse()
	}
	name(l, `"server":`, &v.Server)
	count(l, `"moved_bytes":`, &v.Moved)
	count(l, `"discarded_bytes":`, &v.Dropped)
	count(l, `"wire_bytes":`, &v.Wire)
	count(l, `"begun":`, &v.Begun)
	count(l, `"done":`, &v.Done)
	if l.Key(`"failed":`) {
		v.Failed = failures(l)
	}
	count(l, `"retried":`, &v.Retried)
	count(l, `"verified":`, &v.Verified)
	count(l, `"unverifiable":`, &v.Unproven)
	count(l, `"read_back_bytes":`, &v.ReadBack)
	count(l, `"checksummed_bytes":`, &v.Summed)
	count(l, `"tasks":`, &v.Tasks)
	count(l, `"sessions":`, &v.Sessions)
	count(l, `"missed":`, &v.Missed)
	count(l, `"waits":`, &v.Waits)
	float(l, `"waited_seconds":`, &v.Waited)
	count(l, `"reopened":`, &v.Reopened)
	float(l, `"think_seconds":`, &v.Think)
	float(l, `"paused_seconds":`, &v.Paused)
	float(l, `"failed_seconds":`, &v.FailedTime)
	moment(l, `"first_done":`, &v.FirstDone)
	moment(l, `"last_done":`, &v.LastDone)
}

func moment(l *scan.Line, key string, t *time.Time) {
	if l.Key(key) && t.UnmarshalText(l.Bytes()) != nil {
		l.Refuse()
	}
}

func failures(l *scan.Line) map[storage.Class]int64 {
	failed := map[storage.Class]int64{}
	l.Open()
	for k := l.AnyKey(); k != ""; k = l.AnyKey() {
		var class storage.Class
		if class.UnmarshalText([]byte(k)) != nil {
			l.Refuse()
		}
		failed[class] = l.Int()
	}
	l.Close()
	return failed
}

func float(l *scan.Line, key string, x *float64) {
	if l.Key(key) {
		*x = l.Float()
	}
}

func whole(l *scan.Line, key string, n *int) {
	if l.Key(key) {
		*n = int(l.Int())
	}
}

func count(l *scan.Line, key string, n *int64) {
	if l.Key(key) {
		*n = l.Int()
	}
}

func name(l *scan.Line, key string, s *string) {
	if l.Key(key) {
		*s = l.Text()
	}
}

// A host is a sample with room for what it points to.
type host struct {
	monitor.Sample
	cpu     monitor.CPU
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
	if !l.Key(`"time":`) || v.Time.UnmarshalText(l.Bytes()) != nil {
		return false
	}
	float(l, `"duration_seconds":`, &v.Seconds)
	name(l, `"host":`, &v.Host)
	name(l, `"role":`, &v.Role)
	whole(l, `"step":`, &v.Step)
	whole(l, `"cores":`, &v.Cores)
	if l.Key(`"cpu":`) {
		v.CPU = &h.cpu
		cpu(l, v.CPU)
	}
	if l.Key(`"core_busy":`) {
		for l.Array(); l.Next(); {
			v.Core = append(v.Core, l.Float())
		}
	}
	float(l, `"load1":`, &v.Load)
	if l.Key(`"memory":`) {
		v.Memory = &h.memory
		memory(l, v.Memory)
	}
	if l.Key(`"disks":`) {
		for l.Array(); l.Next(); {
			v.Disks = append(v.Disks, disk(l))
		}
	}
	if l.Key(`"nets":`) {
		for l.Array(); l.Next(); {
			v.Nets = append(v.Nets, net(l))
		}
	}
	if l.Key(`"tcp":`) {
		v.TCP = &h.tcp
		tcp(l, v.TCP)
	}
	if l.Key(`"processes":`) {
		for l.Array(); l.Next(); {
			v.Procs = append(v.Procs, process(l))
		}
	}
	h.others(l)
	float(l, `"cost_cpu_seconds":`, &v.Cost)
	name(l, `"error":`, &v.Error)
	l.Close()
	return l.Whole()
}

// others reads what a host may be besides a machine.
func (h *host) others(l *scan.Line) {
	if l.Key(`"service":`) {
		h.Service = &h.service
		h.serve(l)
	}
	if l.Key(`"link":`) {
		h.Link = &h.link
		emulated(l, h.Link)
	}
	if l.Key(`"balancer":`) {
		h.Balancer = &h.behind
		balancer(l, h.Balancer)
	}
	if l.Key(`"transfers":`) {
		h.Transfers = &h.logged
		transfers(l, h.Transfers)
	}
}

func cpu(l *scan.Line, v *monitor.CPU) {
	*v = monitor.CPU{}
	l.Open()
	float(l, `"user":`, &v.User)
	float(l, `"system":`, &v.System)
	float(l, `"irq":`, &v.IRQ)
	float(l, `"iowait":`, &v.IOWait)
	float(l, `"steal":`, &v.Steal)
	float(l, `"idle":`, &v.Idle)
	l.Close()
}

func memory(l *scan.Line, v *monitor.Memory) {
	*v = monitor.Memory{}
	l.Open()
	count(l, `"total_bytes":`, &v.Total)
	count(l, `"available_bytes":`, &v.Available)
	count(l, `"swap_used_bytes":`, &v.Swapped)
	l.Close()
}

func disk(l *scan.Line) (v monitor.Disk) {
	l.Open()
	name(l, `"name":`, &v.Name)
	float(l, `"read_bytes_per_second":`, &v.Read)
	float(l, `"write_bytes_per_second":`, &v.Write)
	float(l, `"operations_per_second":`, &v.Ops)
	float(l, `"queue":`, &v.Queue)
	float(l, `"busy":`, &v.Busy)
	l.Close()
	return v
}

func net(l *scan.Line) (v monitor.Net) {
	l.Open()
	name(l, `"name":`, &v.Name)
	count(l, `"received_bytes":`, &v.Received)
	count(l, `"sent_bytes":`, &v.Sent)
	count(l, `"received_packets":`, &v.PacketsIn)
	count(l, `"sent_packets":`, &v.PacketsOut)
	count(l, `"drops":`, &v.Drops)
	float(l, `"speed_bits_per_second":`, &v.Speed)
	l.Close()
	return v
}

func tcp(l *scan.Line, v *monitor.TCP) {
	*v = monitor.TCP{}
	l.Open()
	count(l, `"retransmitted_segments":`, &v.Retransmits)
	count(l, `"established":`, &v.Established)
	count(l, `"listen_drops":`, &v.ListenDrops)
	l.Close()
}

func process(l *scan.Line) (v monitor.Proc) {
	l.Open()
	name(l, `"name":`, &v.Name)
	name(l, `"role":`, &v.Role)
	whole(l, `"processes":`, &v.Count)
	whole(l, `"threads":`, &v.Threads)
	float(l, `"user_cpu_seconds":`, &v.User)
	float(l, `"system_cpu_seconds":`, &v.System)
	count(l, `"resident_bytes":`, &v.RSS)
	whole(l, `"open_files":`, &v.Files)
	whole(l, `"measured_threads":`, &v.MeasuredThreads)
	float(l, `"busiest_thread_cpu_seconds":`, &v.BusiestThread)
	float(l, `"unmeasured_thread_cpu_seconds":`, &v.UnmeasuredThread)
	whole(l, `"allowed_cores":`, &v.AllowedCores)
	count(l, `"read_bytes":`, &v.Read)
	count(l, `"written_bytes":`, &v.Written)
	count(l, `"sent_bytes":`, &v.Sent)
	count(l, `"received_bytes":`, &v.Received)
	l.Close()
	return v
}

// emulated reads what an emulated link went through.
func emulated(l *scan.Line, v *monitor.Link) {
	*v = monitor.Link{}
	l.Open()
	if l.Key(`"down":`) {
		v.Down = l.Bool()
	}
	if l.Key(`"to_clients":`) {
		traffic(l, &v.ToClients)
	}
	if l.Key(`"from_clients":`) {
		traffic(l, &v.FromClients)
	}
	float(l, `"emulation_cpu_seconds":`, &v.Cost)
	l.Close()
}

func traffic(l *scan.Line, v *link.Traffic) {
	l.Open()
	count(l, `"packets":`, &v.Packets)
	count(l, `"bytes":`, &v.Bytes)
	count(l, `"dropped":`, &v.Dropped)
	count(l, `"lost":`, &v.Lost)
	count(l, `"cut":`, &v.Cut)
	float(l, `"busy":`, &v.Busy)
	for _, q := range []struct {
		key string
		q   *link.Quantiles
	}{{`"wait_seconds":`, &v.Wait}, {`"late_seconds":`, &v.Late}} {
		if l.Key(q.key) {
			l.Open()
			float(l, `"p50":`, &q.q.P50)
			float(l, `"p99":`, &q.q.P99)
			float(l, `"max":`, &q.q.Max)
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
	name(l, `"name":`, &v.Name)
	name(l, `"program":`, &v.Program)
	name(l, `"version":`, &v.Version)
	name(l, `"kind":`, &v.Kind)
	whole(l, `"pid":`, &v.Pid)
	if l.Key(`"late":`) {
		v.Late = l.Bool()
	}
	float(l, `"user_cpu_seconds":`, &v.User)
	float(l, `"system_cpu_seconds":`, &v.System)
	whole(l, `"threads":`, &v.Threads)
	whole(l, `"idle_threads":`, &v.Idle)
	count(l, `"thread_limit_met":`, &v.Limited)
	whole(l, `"queue":`, &v.Queue)
	whole(l, `"connections":`, &v.Connections)
	for _, f := range []struct {
		key string
		n   *int64
	}{
		{`"connected":`, &v.Connected}, {`"received_bytes":`, &v.Received}, {`"sent_bytes":`, &v.Sent}, {`"logins":`, &v.Logins},
		{`"proven_logins":`, &v.Proven}, {`"refused_logins":`, &v.Refused}, {`"redirects":`, &v.Redirects}, {`"errors":`, &v.Errors},
		{`"waits":`, &v.Waits}, {`"async_operations":`, &v.Async}, {`"vector_segments":`, &v.Segments},
	} {
		count(l, f.key, f.n)
	}
	if l.Key(`"operations_by":`) {
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
