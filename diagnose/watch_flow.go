package diagnose

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"weir/internal/burn"
	"weir/internal/slow"
	"weir/internal/sockdiag"
	"weir/monitor"
)

// A watch measures the sockets of this process and this machine while payload moves.
type watch struct {
	reader *sockdiag.Reader // nil: sockets are not measured
	unread error            // why
	hosts  *monitor.Watch

	traces  *sockdiag.Traces // of the flow that ran last
	want    int              // its sockets with payload
	arrived []float64        // payload of all sockets at each sample

	mu      sync.Mutex
	samples []*monitor.Sample
	since   time.Time
	usage   time.Duration
}

// newWatch begins to watch this machine and, if exporter is the URL of its node_exporter, the server's.
func newWatch(exporter string) (w *watch, err error) {
	w = &watch{}
	if w.reader, w.unread = sockdiag.Open(); w.unread != nil {
		w.reader = nil
	}
	var hosts []monitor.Host
	if exporter != "" {
		hosts = append(hosts, monitor.Host{Name: serverHost, Role: monitor.RoleServer, NodeExporter: exporter})
	}
	w.hosts, err = monitor.Start(context.Background(), hosts, monitor.Options{}, w)
	return w, err
}

// serverHost is the name of the server's host in samples.
const serverHost = "server"

func (w *watch) close() {
	_ = w.hosts.Stop() // its samples were used
	if w.reader != nil {
		_ = w.reader.Close()
	}
}

// Sample implements monitor.Sink.
func (w *watch) Sample(s *monitor.Sample) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples = append(w.samples, s)
	return nil
}

// hostBegin begins a span of measurements of this machine.
func (w *watch) hostBegin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since, w.usage, w.samples = time.Now(), burn.Process(), nil
}

// hostEnd returns the state of this machine since hostBegin, or the busier state of h, and that of the server's.
func (w *watch) hostEnd(h slow.Host) (slow.Host, *slow.Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	took := time.Since(w.since).Seconds()
	h.Own = max(h.Own, (burn.Process()-w.usage).Seconds()/took)
	var here, there, core, disk []float64
	lost := 0.0
	for _, s := range w.samples {
		switch {
		case s.CPU == nil || s.Service != nil:
		case s.Host == serverHost:
			there = append(there, s.CPU.Busy())
			core = append(core, slices.Max(append(s.Core, 0)))
			busy := 0.0
			for i := range s.Disks {
				busy = max(busy, s.Disks[i].Busy)
			}
			disk = append(disk, busy)
		default:
			here = append(here, s.CPU.Busy())
		}
		if s.Quota != nil {
			lost += s.Quota.Lost
		}
	}
	h.CPU, h.Throttled = max(h.CPU, middle(here)), max(h.Throttled, min(lost/took, 1))
	if len(there) == 0 {
		return h, nil
	}
	return h, &slow.Server{CPU: middle(there), Core: middle(core), Disk: middle(disk)}
}

// follow samples a flow until done is closed.
func (w *watch) follow(f *flow, pause time.Duration, streams int, done <-chan struct{}) {
	w.traces, w.want, w.arrived = &sockdiag.Traces{}, streams, nil
	tick := time.NewTicker(pause)
	defer tick.Stop()
	var inodes map[uint32]bool
	var all []sockdiag.Socket
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		at := time.Since(f.begun)
		f.bins = append(f.bins, bin{at, f.moved.Load()})
		if w.reader == nil {
			continue
		}
		if i < 8 || i%32 == 0 {
			inodes, _ = sockdiag.Inodes(os.Getpid()) // without them nothing is measured
		}
		all, _ = w.reader.Sockets(sockdiag.Filter{Inodes: inodes}, all[:0])
		w.traces.Add(at, all)
		sum := 0.0
		for j := range all {
			sum += float64(all[j].BytesReceived)
		}
		w.arrived = append(w.arrived, sum)
	}
}

// wire returns the measurements of the flow that ran last.
func (w *watch) wire() (of slow.Wire) {
	all := w.traces.All()
	all = all[:min(len(all), w.want)]
	var lost, segments, span, busy float64
	for i := range all {
		t := &all[i]
		if t.BytesReceived+t.BytesAcked == 0 || t.Span == 0 {
			break
		}
		of.Measured = true
		if t.MinRTT > 0 && (of.MinRTT == 0 || t.MinRTT < of.MinRTT) {
			of.MinRTT = t.MinRTT
		}
		span += t.Span
		of.RTT = max(of.RTT, t.MeanRTT)
		of.Unread += t.Unread
		if t.BytesAcked > t.BytesReceived {
			of.Window = max(of.Window, float64(t.MaxPeerWnd))
			lost += float64(t.TotalRetrans)
			segments += float64(t.DataSegsOut)
			busy += t.Busy
			of.PeerWindow += t.RwndLimited
			of.OwnBuffer += t.SndbufLimited
			of.Idle += max(0, t.Span-t.Busy)
			of.Delivery += t.DeliveryRate
			continue
		}
		of.Window = max(of.Window, t.RcvWnd)
		lost += float64(t.RcvOutOfOrder)
		segments += float64(t.DataSegsIn)
	}
	share := func(of *float64, whole float64) {
		if whole > 0 {
			*of = min(*of/whole, 1)
		}
	}
	share(&of.Unread, span)
	share(&of.Idle, span)
	share(&of.PeerWindow, busy)
	share(&of.OwnBuffer, busy)
	of.Lost = lost
	share(&of.Lost, segments)
	return of
}

// round returns the regularity of bursts: the correlation of the payload that arrives
// in an eighth of a round trip with the payload one round trip later, 0 to 1.
func (w *watch) round() float64 {
	const lag = 8
	if w.want != 1 || len(w.arrived) < 6*lag {
		return 0
	}
	x := make([]float64, len(w.arrived)-1)
	for i := range x {
		x[i] = max(0, w.arrived[i+1]-w.arrived[i])
	}
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	var both, square float64
	for i, v := range x {
		square += (v - mean) * (v - mean)
		if i >= lag {
			both += (v - mean) * (x[i-lag] - mean)
		}
	}
	if square == 0 {
		return 0
	}
	return max(0, both/square)
}
