package preauth

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestTooManyWait: the latest waiting connections of the address with the most of them are closed,
// and slots are given in turn.
func TestTooManyWait(t *testing.T) {
	l := Limit(nil, 4, 100)
	add := func(ip string) net.Conn {
		near, far := net.Pipe()
		v := &Conn{Conn: near, limiter: l, from: netip.PrefixFrom(netip.MustParseAddr(ip), 32), since: time.Now()}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.waiting[v.from] == nil {
			l.queue = append(l.queue, v.from)
		}
		l.waiting[v.from] = append(l.waiting[v.from], v)
		l.queued++
		l.admit()
		return far
	}
	for range 10 {
		add("10.0.0.1")
	}
	last := add("10.0.0.1")
	add("10.0.0.2")
	if len(l.in) != 3 || l.queued != 9 {
		t.Errorf("%d inside, %d wait", len(l.in), l.queued)
	}
	l.mu.Lock()
	l.closeNewest()
	l.mu.Unlock()
	if _, err := last.Read(make([]byte, 1)); err == nil || l.queued != 8 {
		t.Errorf("the last one: %v; %d wait", err, l.queued)
	}
	if n := l.admitted[netip.MustParsePrefix("10.0.0.1/32")]; n > 2 {
		t.Errorf("one address has %d of 4 slots", n)
	}
	first := (<-l.in).(*Conn)
	first.Authenticated()
	if len(l.in) != 3 || l.admitted[first.from] != 2 {
		t.Errorf("after one was known: %d, %v", len(l.in), l.admitted)
	}
}
