package emulator

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A cable carries the packets of one link between two TUN devices, or the packets of all links over
// one trunk, in a thread of its own: it waits for packets and for the time at which the next packet
// arrives, whichever is first. Its loop allocates nothing.
type cable struct {
	lines []*line // the links
	trunk *line   // between them and the service; nil without a trunk
	stop  int     // eventfd: look at the wishes, or end
	samps chan lineSample

	mu   sync.Mutex // of over and all wishes
	over bool
}

// A line is a link or a trunk.
type line struct {
	name string
	ends [2]int // descriptors of the devices: at the service, at the site; a trunk has no devices
	ways [2]*way
	now  setting // of the thread
	wish *setting
}

type lineSample struct {
	name    string
	time    time.Time
	ns      int64
	setting setting
	cost    float64 // CPU seconds of the thread
	ways    [2]tally
}

// perRound is the number of packets of one direction that are read before due packets are
// delivered.
const perRound = 16

func newLine(l orderLink, ends [2]int) *line {
	n := &line{name: l.Name, ends: ends, now: l.Setting}
	for i, p := range l.Setting.both() {
		n.ways[i] = newWay(p, l.Seed+uint64(i))
	}
	return n
}

// newCable makes a cable for links, which lead over trunk; trunk may be nil. The descriptors of
// their devices are ends, at the service and at the site, which the cable does not close.
func newCable(links []orderLink, ends [][2]int, trunk *orderLink) (*cable, error) {
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	c := &cable{stop: stop, samps: make(chan lineSample, 4*(len(links)+1))}
	for i, l := range links {
		for _, fd := range ends[i] {
			if err := unix.SetNonblock(fd, true); err != nil {
				return nil, errors.Join(err, unix.Close(stop))
			}
		}
		c.lines = append(c.lines, newLine(l, ends[i]))
	}
	if trunk != nil {
		c.trunk = newLine(*trunk, [2]int{-1, -1})
	}
	return c, nil
}

// all returns the links and the trunk.
func (c *cable) all() []*line {
	if c.trunk == nil {
		return c.lines
	}
	return append(c.lines[:len(c.lines):len(c.lines)], c.trunk)
}

// change changes the settings of the link or trunk of that name, if it belongs to this cable.
func (c *cable) change(name string, s setting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.all() {
		if l.name == name {
			l.wish = &s
			c.wake()
		}
	}
}

// end ends run.
func (c *cable) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.wake()
}

func (c *cable) wake() {
	one := [8]byte{1}
	_, _ = unix.Write(c.stop, one[:]) // it can only be full of wakings
}

// takeSettings applies the settings that change has left, and reports whether end was called.
func (c *cable) takeSettings() (over bool) {
	var b [8]byte
	_, _ = unix.Read(c.stop, b[:]) // only empties it
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		l.takeSetting()
	}
	if c.trunk != nil {
		c.trunk.takeSetting()
	}
	return c.over
}

func (l *line) takeSetting() {
	if l.wish == nil {
		return
	}
	l.now, l.wish = *l.wish, nil
	for i, p := range l.now.both() {
		l.ways[i].set(p)
	}
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

// threadTime returns the CPU time of this thread in ns.
func threadTime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) // cannot fail with this clock
	return ts.Nano()
}

func (b *beat) now() int64 { return monotonic() - b.base }

// aim sets next to the next whole second of the wall clock, or to the second after it if the next
// is so near that the thread has just woken for it.
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
	// By default a thread wakes up to 50 us late, which the kernel calls its slack.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0); err != nil {
		return err
	}
	b := beat{base: monotonic(), used: threadTime()}
	b.aim(0)
	fds := c.polled()
	for {
		more, err := c.round(&b, fds)
		if !more || err != nil {
			return err
		}
	}
}

// polled returns the descriptors that run waits for: both devices of each link, then stop.
func (c *cable) polled() []unix.PollFd {
	var fds []unix.PollFd
	for _, l := range c.lines {
		for _, fd := range l.ends {
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	return append(fds, unix.PollFd{Fd: int32(c.stop), Events: unix.POLLIN})
}

// round delivers the due packets, waits for the next event, and processes it.
func (c *cable) round(b *beat, fds []unix.PollFd) (more bool, err error) {
	now := b.now()
	first := min(b.next, c.deliver(b, &now))
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
	for i := range fds[:2*len(c.lines)] {
		if fds[i].Revents == 0 {
			continue
		}
		l, dir := c.lines[i/2], i%2
		w := l.ways[dir]
		if c.trunk != nil && dir == toClients {
			w = c.trunk.ways[dir]
		}
		if err := take(b, w, l.ends[dir], i/2); err != nil {
			return false, err
		}
	}
	return fds[len(fds)-1].Revents == 0 || !c.takeSettings(), nil
}

// deliver delivers all packets that are due, and returns the time at which the next packet is due.
// Packets to the clients pass the trunk before their link, packets from the clients in the opposite
// order.
func (c *cable) deliver(b *beat, now *int64) (first int64) {
	first = math.MaxInt64
	if c.trunk != nil {
		first = min(first, c.pass(b, c.trunk, toClients, now))
	}
	for _, l := range c.lines {
		first = min(first, c.pass(b, l, toClients, now), c.pass(b, l, fromClients, now))
	}
	if c.trunk != nil {
		first = min(first, c.pass(b, c.trunk, fromClients, now))
	}
	return first
}

// pass hands over the packets of one way that are due and returns when its next will be.
func (c *cable) pass(b *beat, l *line, dir int, now *int64) int64 {
	w := l.ways[dir]
	for {
		packet, at, k := w.ring.due(*now)
		if packet == nil {
			if at == 0 {
				return math.MaxInt64
			}
			if *now = b.now(); at > *now {
				return at
			}
			continue
		}
		if !w.shaper.down {
			c.hand(l, dir, at, packet, k)
		}
		w.arrived(*now, at, packet)
	}
}

// hand passes a packet that has passed l to the next hop: the link or the trunk, or the device at
// the end.
func (c *cable) hand(l *line, dir int, at int64, packet []byte, k int) {
	var next *way
	switch {
	case l == c.trunk && dir == toClients:
		next = c.lines[k].ways[dir]
	case l != c.trunk && c.trunk != nil && dir == fromClients:
		next = c.trunk.ways[dir]
	default:
		_, _ = unix.Write(c.lines[k].ends[1-dir], packet) // packets that the kernel does not accept are lost, as on any link
		return
	}
	buf, full := next.buffer()
	next.take(at, buf, copy(buf, packet), full, k) // at the time at which it was due: nobody was late for it
}

// take reads the packets that have come from a device of the link at place k.
func take(b *beat, w *way, from, k int) error {
	for range perRound {
		buf, full := w.buffer()
		n, err := unix.Read(from, buf)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			return nil
		}
		if err != nil {
			return err
		}
		w.take(b.now(), buf, n, full, k)
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

// sample ends a span. A reader that is too slow misses some. If there is a trunk, the CPU time of
// the thread counts as the trunk's.
func (c *cable) sample(b *beat, now int64) {
	used := threadTime()
	cost := float64(used-b.used) / 1e9
	b.used = used
	at, ns := whole(time.Now().UTC()), now-b.looked
	for _, l := range c.lines {
		own := cost
		if c.trunk != nil {
			own = 0
		}
		c.report(l, lineSample{time: at, ns: ns, cost: own}, now)
	}
	if c.trunk != nil {
		c.report(c.trunk, lineSample{time: at, ns: ns, cost: cost}, now)
	}
	b.looked = now
	b.aim(now)
}

// report completes and sends the counts of a link or trunk.
func (c *cable) report(l *line, s lineSample, now int64) {
	s.name, s.setting = l.name, l.now
	for i, w := range l.ways {
		s.ways[i] = w.look(now, s.ns)
	}
	select {
	case c.samps <- s:
	default:
	}
}
