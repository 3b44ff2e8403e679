package engine

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// NewPacer returns the most exact pacer of this system. Go's own timers wait in whole milliseconds;
// this pacer is a thread of its own with a timer slack of one nanosecond, so that sleepers wake
// some ten microseconds after their time.
func NewPacer() (Pacer, error) {
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("pacer: %w", err)
	}
	p := &thread{base: time.Now(), bell: bell, ended: make(chan struct{})}
	go p.loop()
	return p, nil
}

type thread struct {
	base  time.Time
	bell  int // eventfd: something earlier than expected is due
	ended chan struct{}

	mu     sync.Mutex
	alarms alarms
	until  time.Duration // when the thread will look again
	closed bool
}

// Sleep implements Pacer.
func (p *thread) Sleep(s Sleeper, until time.Time) {
	due := until.Sub(p.base)
	p.mu.Lock()
	p.alarms.push(alarm{due, s})
	early := due < p.until
	if early {
		p.until = due // a later sleeper need not ring again
	}
	p.mu.Unlock()
	if early {
		p.ring()
	}
}

// Close implements Pacer.
func (p *thread) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.ring()
	<-p.ended
	return unix.Close(p.bell)
}

func (p *thread) ring() {
	one := [8]byte{1}
	_, _ = unix.Write(p.bell, one[:]) // fails only when it has been rung 2^64 times
}

func (p *thread) loop() {
	defer close(p.ended)
	runtime.LockOSThread()                             // never unlocked: the thread ends with the loop, its timer slack with it
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // without it alarms are 50 us later, which is measured
	var due []Sleeper
	var rung [8]byte
	for {
		due = due[:0]
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return
		}
		now := time.Since(p.base)
		for len(p.alarms) > 0 && p.alarms[0].due <= now {
			due = append(due, p.alarms.pop().sleeper)
		}
		p.until = now + time.Hour
		if len(p.alarms) > 0 {
			p.until = p.alarms[0].due
		}
		wait := unix.NsecToTimespec(int64(p.until - now))
		p.mu.Unlock()
		for i, s := range due {
			s.Wake()
			due[i] = nil
		}
		if len(due) > 0 {
			continue // waking took time: look again before sleeping
		}
		fds := []unix.PollFd{{Fd: int32(p.bell), Events: unix.POLLIN}}
		_, err := unix.Ppoll(fds, &wait, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			panic(fmt.Sprintf("pacer: ppoll: %v", err)) // a broken descriptor is our own bug
		}
		if fds[0].Revents != 0 {
			_, _ = unix.Read(p.bell, rung[:])
		}
	}
}
