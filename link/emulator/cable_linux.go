package emulator

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A cable carries the packets of one link between two TUN devices, in a thread of its own: it waits for packets and
// for the time at which the next of them arrives, whichever is first. Nothing is allocated on the way.
type cable struct {
	name  string
	ends  [2]int // descriptors of the devices: at the service, at the site
	ways  [2]*way
	stop  int // eventfd: look at wish, or end
	samps chan cableSample

	mu   sync.Mutex
	wish *setting // what is to be changed
	over bool
	now  setting // of the thread
}

type cableSample struct {
	time    time.Time
	ns      int64
	setting setting
	cost    float64 // CPU seconds of the thread
	ways    [2]tally
}

// perRound is how many packets of one direction are read before those that are due are looked after.
const perRound = 16

// newCable makes a cable between the devices of two descriptors, which it does not close.
func newCable(name string, s setting, service, site int, seed uint64) (*cable, error) {
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	for _, fd := range []int{service, site} {
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, errors.Join(err, unix.Close(stop))
		}
	}
	c := &cable{name: name, ends: [2]int{service, site}, stop: stop, samps: make(chan cableSample, 4), now: s}
	for i, p := range s.both() {
		c.ways[i] = newWay(p, seed+uint64(i))
	}
	return c, nil
}

// change has the cable work otherwise from now on.
func (c *cable) change(s setting) { c.tell(&s, false) }

// end ends run.
func (c *cable) end() { c.tell(nil, true) }

func (c *cable) tell(s *setting, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s != nil {
		c.wish = s
	}
	c.over = c.over || over
	one := [8]byte{1}
	_, _ = unix.Write(c.stop, one[:]) // it can only be full of wakings
}

// heed does what tell has asked for and tells whether that was to end.
func (c *cable) heed() (over bool) {
	var b [8]byte
	_, _ = unix.Read(c.stop, b[:]) // only empties it
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wish != nil {
		c.now, c.wish = *c.wish, nil
		for i, p := range c.now.both() {
			c.ways[i].set(p)
		}
	}
	return c.over
}

// A beat is the clock of a cable: nanoseconds since it was started, and when the next second of the wall clock
// begins.
type beat struct {
	base, looked, next int64

	used int64 // CPU time of the thread at the last look
}

func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail with this clock
	return ts.Nano()
}

// threadTime is the CPU time of this thread in ns.
func threadTime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) // cannot fail with this clock
	return ts.Nano()
}

func (b *beat) now() int64 { return monotonic() - b.base }

// aim sets next to the next whole second of the wall clock, or to the one after it, if that is so near that we have
// just been woken for it.
func (b *beat) aim(now int64) {
	left := int64(time.Second) - time.Now().UnixNano()%int64(time.Second)
	if left < int64(100*time.Millisecond) {
		left += int64(time.Second)
	}
	b.next = now + left
}

// run carries packets until end is called. It closes samps.
func (c *cable) run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.samps)
	defer func() { _ = unix.Close(c.stop) }()
	// Of itself a thread wakes up to 50 us late, which the kernel calls its slack.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0); err != nil {
		return err
	}
	b := beat{base: monotonic(), used: threadTime()}
	b.aim(0)
	fds := []unix.PollFd{
		{Fd: int32(c.ends[0]), Events: unix.POLLIN}, {Fd: int32(c.ends[1]), Events: unix.POLLIN},
		{Fd: int32(c.stop), Events: unix.POLLIN},
	}
	for {
		more, err := c.round(&b, fds)
		if !more || err != nil {
			return err
		}
	}
}

// round hands over what is due, waits for what comes first, and takes it.
func (c *cable) round(b *beat, fds []unix.PollFd) (more bool, err error) {
	now := b.now()
	first := b.next
	for i, w := range c.ways {
		if at := c.deliver(b, w, c.ends[1-i], &now); at > 0 {
			first = min(first, at)
		}
	}
	if now >= b.next {
		c.sample(b, now)
		first = min(first, b.next)
	}
	timeout := unix.NsecToTimespec(max(first-now, 0))
	n, err := unix.Ppoll(fds, &timeout, nil)
	switch {
	case errors.Is(err, unix.EINTR) || n == 0:
		return true, nil
	case err != nil:
		return false, err
	}
	for i, w := range c.ways {
		if fds[i].Revents != 0 {
			if err := c.take(b, w, c.ends[i]); err != nil {
				return false, err
			}
		}
	}
	return fds[2].Revents == 0 || !c.heed(), nil
}

// deliver writes the packets that are due and returns when the next will be; 0 if there is none.
func (c *cable) deliver(b *beat, w *way, to int, now *int64) int64 {
	for {
		packet, at := w.ring.due(*now)
		if packet == nil {
			if at == 0 {
				return 0
			}
			if *now = b.now(); at > *now {
				return at
			}
			continue
		}
		if !w.shaper.down {
			_, _ = unix.Write(to, packet) // what the kernel does not take is lost, as anywhere
		}
		w.arrived(*now, at, packet)
	}
}

// take reads what has come from one device.
func (c *cable) take(b *beat, w *way, from int) error {
	for range perRound {
		buf, full := w.buffer()
		n, err := unix.Read(from, buf)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			return nil
		}
		if err != nil {
			return err
		}
		w.take(b.now(), buf, n, full)
	}
	return nil
}

// whole takes a time to the second that it is next to: the two clocks do not run alike, and a moment before a second
// is not of the second before.
func whole(t time.Time) time.Time {
	if second := t.Round(time.Second); t.Sub(second).Abs() < 2*time.Millisecond {
		return second
	}
	return t
}

// sample ends a span. A reader who does not keep up misses some.
func (c *cable) sample(b *beat, now int64) {
	used := threadTime()
	s := cableSample{time: whole(time.Now().UTC()), ns: now - b.looked, setting: c.now, cost: float64(used-b.used) / 1e9}
	b.used = used
	for i, w := range c.ways {
		s.ways[i] = w.look(now, s.ns)
	}
	select {
	case c.samps <- s:
	default:
	}
	b.looked = now
	b.aim(now)
}
