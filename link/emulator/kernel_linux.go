package emulator

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/unit"
	"weir/link"
)

// kernel makes a pair of veth devices for each link, with a queue of the kernel at both ends.
func (s *star) kernel(o Options) error {
	if len(s.trunks) > 0 {
		return errors.New(noKernelTrunk)
	}
	stop := make(chan struct{})
	var watched []*cords
	for _, sp := range s.spokes {
		if err := sp.pair(); err != nil {
			return err
		}
		w := &cords{spoke: sp, now: sp.first()}
		sp.adjust = w.change
		if err := sp.up(); err != nil {
			return err
		}
		if err := w.change(w.now); err != nil {
			return err
		}
		watched = append(watched, w)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		eachSecond(stop, func(now time.Time, span time.Duration) {
			for _, c := range watched {
				if s := c.sample(now, span); s != nil && o.Take != nil {
					o.Take(s)
				}
			}
		})
	}()
	s.closers = append(s.closers, func() error { close(stop); <-over; return nil })
	return nil
}

// pair makes the devices of both ends. The one at the service is removed on close; after a kill it goes with the
// site's namespace.
func (sp *spoke) pair() error {
	for i := range 1000 {
		name := fmt.Sprintf("weir%d", i)
		v := &netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: name, MTU: int(sp.spec.MTU)}, PeerName: name,
			PeerNamespace: netlink.NsFd(int(sp.space.file.Fd())),
		}
		err := sp.here.handle.LinkAdd(v)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return fmt.Errorf("make devices of a link: %w", err)
		}
		sp.here.name, sp.there.name = name, name
		sp.star.closers = append(sp.star.closers, func() error {
			err := sp.here.handle.LinkDel(v)
			if errors.As(err, &netlink.LinkNotFoundError{}) {
				return nil
			}
			return err
		})
		return nil
	}
	return errors.New("there are a thousand devices weir* already")
}

// cords are the two ends of a link whose queues are the kernel's.
type cords struct {
	*spoke
	mu   sync.Mutex
	now  setting
	last [2]netlink.QdiscStatistics // of the one who watches
}

func (c *cords) ends() [2]end { return [2]end{toClients: c.here, fromClients: c.there} }

// change sets the queues of both ends.
func (c *cords) change(s setting) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = s
	rates := [2]unit.Bitrate{toClients: s.Spec.Rate, fromClients: s.Spec.FromClients()}
	for i, e := range c.ends() {
		dev, err := e.handle.LinkByName(e.name)
		if err != nil {
			return err
		}
		if err := e.setBurst(rates[i], s.Spec.MTU); err != nil {
			return err
		}
		q := queueFor(dev, s, rates[i])
		if err := e.handle.QdiscReplace(q); err != nil {
			return fmt.Errorf("set queue %s of device %s: %w", q.Type(), e.name, err)
		}
	}
	return nil
}

// frame is how many bytes the queues of the kernel count beside a packet: the header of Ethernet.
const frame = 14

// queueFor returns what the kernel is asked for: blackhole for a link that is down, netem where there is more to do
// than a rate, else tbf.
func queueFor(dev netlink.Link, s setting, rate unit.Bitrate) netlink.Qdisc {
	attrs := netlink.QdiscAttrs{LinkIndex: dev.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	spec := s.Spec
	bytes := uint64(float64(rate) / 8 * float64(spec.MTU+frame) / float64(spec.MTU))
	switch {
	case s.Down:
		attrs.Handle = netlink.MakeHandle(2, 0)
		return &netlink.GenericQdisc{QdiscAttrs: attrs, QdiscType: "blackhole"}
	case needsNetem(spec):
		attrs.Handle = netlink.MakeHandle(3, 0)
		way := time.Duration(spec.RTT/2 + spec.Jitter + spec.Queue)
		limit := uint64(1 << 20)
		if rate > 0 {
			limit = uint64(max(10, way.Seconds()*float64(rate)/8/float64(spec.MTU)))
		}
		return netlink.NewNetem(attrs, netlink.NetemQdiscAttrs{
			Latency: uint32(time.Duration(spec.RTT / 2).Microseconds()), Jitter: uint32(time.Duration(spec.Jitter).Microseconds()),
			Loss: float32(100 * spec.Loss), Limit: uint32(limit), Rate64: bytes,
		})
	case rate > 0:
		burst := uint32(max(2*float64(spec.MTU+frame), burstTime*float64(bytes)))
		limit := burst + uint32(time.Duration(spec.Queue).Seconds()*float64(bytes))
		return &netlink.Tbf{QdiscAttrs: attrs, Rate: bytes, Limit: limit, Buffer: netlink.Xmittime(bytes, burst)}
	}
	attrs.Handle = netlink.MakeHandle(4, 0)
	return &netlink.GenericQdisc{QdiscAttrs: attrs, QdiscType: "pfifo"}
}

// burstTime is how late the kernel may look at a queue without losing the wire's time, in seconds; for so long
// packets may come faster than the rate after a pause.
const burstTime = 0.004

// needsNetem reports whether tbf is not enough.
func needsNetem(s link.Spec) bool { return s.RTT > 0 || s.Loss > 0 || s.Jitter > 0 }

// sample returns nil while the counters cannot be read.
func (c *cords) sample(now time.Time, span time.Duration) *Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	rates := [2]unit.Bitrate{toClients: c.now.Spec.Rate, fromClients: c.now.Spec.FromClients()}
	var failed error
	out := c.now.sample(c.name, now, span, func(i int) (to link.Traffic) {
		stats, err := c.ends()[i].counters()
		if err != nil {
			failed = err
			return to
		}
		last := c.last[i]
		c.last[i] = stats
		if last.Basic == nil || stats.Basic.Bytes < last.Basic.Bytes {
			return to // another queue
		}
		to.Packets = int64(stats.Basic.Packets - last.Basic.Packets)
		to.Bytes = int64(stats.Basic.Bytes-last.Basic.Bytes) - frame*to.Packets
		to.Dropped = int64(stats.Queue.Drops - last.Queue.Drops) // netem counts its losses here
		if rates[i] > 0 {
			to.Busy = min(1, 8*float64(to.Bytes)/float64(rates[i])/span.Seconds())
		}
		return to
	})
	if failed != nil {
		return nil
	}
	return out
}

func (e end) counters() (netlink.QdiscStatistics, error) {
	dev, err := e.handle.LinkByName(e.name)
	if err != nil {
		return netlink.QdiscStatistics{}, err
	}
	list, err := e.handle.QdiscList(dev)
	if err != nil {
		return netlink.QdiscStatistics{}, err
	}
	for _, q := range list {
		if a := q.Attrs(); a.Parent == netlink.HANDLE_ROOT && a.Statistics != nil && a.Statistics.Basic != nil && a.Statistics.Queue != nil {
			return *a.Statistics, nil
		}
	}
	return netlink.QdiscStatistics{}, fmt.Errorf("device %s has no queue that counts", e.name)
}
