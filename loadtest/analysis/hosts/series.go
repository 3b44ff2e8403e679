package hosts

import (
	"cmp"
	"math"
	"slices"
	"time"

	"weir/monitor"
)

// A HostSeries is the time series of one host.
type HostSeries struct {
	Host   string
	Role   monitor.Role
	Link   bool // an emulated link: it sends to the clients and receives from them
	Cores  int
	Memory int64 // bytes of memory; 0: unknown
	Points []HostPoint

	width float64 // seconds that are joined to one point; 0: each sample is a point
	last  float64 // seconds from the start of the run to the last sample
}

// A HostPoint is one sample of a host, or the mean of several consecutive samples in a long run.
// Shares are of all cores; Cores are numbers of busy cores; negative values are unknown.
type HostPoint struct {
	At      float64 // seconds from Series.Start to the end of the sample
	Seconds float64 // duration that it represents

	CPU, User, System, IOWait float64 // shares; CPU includes interrupts and steal
	ServerCores, ClientCores  float64
	DiskBusy                  float64 // of the busiest disk
	DiskRead, DiskWrite       float64 // bytes per second
	Received, Sent            float64 // bytes per second, through loopback if that is larger
	MemoryUsed                float64 // bytes
	ServerRSS, ClientRSS      float64 // bytes
}

// mostHostPoints is the maximum number of points of a host's series; beyond that, consecutive
// points are joined.
const mostHostPoints = 1200

// figures lists the fields that join averages.
func (p *HostPoint) figures() [15]*float64 {
	return [15]*float64{&p.At, &p.CPU, &p.User, &p.System, &p.IOWait, &p.ServerCores, &p.ClientCores, &p.DiskBusy, &p.DiskRead, &p.DiskWrite,
		&p.Received, &p.Sent, &p.MemoryUsed, &p.ServerRSS, &p.ClientRSS}
}

// join sets p to the mean of itself and o. A value that only one of them has is kept.
func (p *HostPoint) join(o *HostPoint) {
	own := 0.5
	if sum := p.Seconds + o.Seconds; sum > 0 {
		own = p.Seconds / sum
	}
	into, from := p.figures(), o.figures()
	for i := range into {
		switch {
		case i > 0 && *into[i] < 0:
			*into[i] = *from[i]
		case i == 0 || *from[i] >= 0:
			*into[i] = own**into[i] + (1-own)**from[i]
		}
	}
	p.Seconds += o.Seconds
}

func (h *HostSeries) add(p HostPoint) {
	h.last = max(h.last, p.At)
	if n := len(h.Points); n > 0 && h.width > 0 && math.Floor(p.At/h.width) == math.Floor(h.Points[n-1].At/h.width) {
		h.Points[n-1].join(&p)
		return
	}
	h.Points = append(h.Points, p)
	for len(h.Points) > mostHostPoints {
		h.widen()
	}
}

// widen doubles the width of a point, and joins the points that then lie in the same interval.
func (h *HostSeries) widen() {
	h.sort()
	h.width = max(2*h.width, 2)
	kept := h.Points[:1]
	for i := 1; i < len(h.Points); i++ {
		if last := &kept[len(kept)-1]; math.Floor(h.Points[i].At/h.width) == math.Floor(last.At/h.width) {
			last.join(&h.Points[i])
		} else {
			kept = append(kept, h.Points[i])
		}
	}
	h.Points = kept
}

func (h *HostSeries) sort() {
	slices.SortStableFunc(h.Points, func(a, b HostPoint) int { return cmp.Compare(a.At, b.At) })
}

// NewHostPoint returns the point of s in the series of a run that began at start.
func NewHostPoint(s *monitor.Sample, start time.Time) HostPoint {
	k := LookAt(s)
	known := func(x float64) float64 {
		if math.IsNaN(x) {
			return -1
		}
		return x
	}
	p := HostPoint{At: s.Time.Sub(start).Seconds(), Seconds: s.Seconds, CPU: known(k.Cpu), User: -1, System: -1, IOWait: known(k.Iowait),
		ServerCores: known(k.ServerCores), ClientCores: known(k.ClientCores), DiskBusy: known(k.DiskBusy),
		DiskRead: known(k.DiskRead), DiskWrite: known(k.DiskWrite), Received: known(max(k.Received, k.Back)),
		Sent:       known(max(k.Sent, k.Looped)),
		MemoryUsed: -1, ServerRSS: float64(k.ServerRSS), ClientRSS: float64(k.ClientRSS)}
	if s.CPU != nil {
		p.User, p.System = s.CPU.User, s.CPU.System
	}
	if s.Memory != nil && s.Memory.Total > 0 {
		p.MemoryUsed = float64(s.Memory.Total - s.Memory.Available)
	}
	return p
}

// A Program is the program that a server reports.
type Program struct{ Server, Kind, Name, Version string }
