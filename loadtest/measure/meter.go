package measure

import (
	"errors"
	"time"

	"weir/storage"
)

// A Meter measures one client and is that client's storage.Progress. Like the client it is used by
// one goroutine at a time. Its methods allocate nothing.
type Meter struct {
	r     *Recorder
	shard *shard
	cell  *cell                // of the operation that runs, or of the last operation
	own   [storage.Kinds]*cell // cells of the target itself

	start, end     time.Duration // of the operation, as planned
	begin          time.Duration // of the operation, as it was
	first          time.Duration // its first byte; 0: not yet
	connect, login time.Duration // of its session, 0: made before
	redirect       time.Duration // to another server, the first time; 0: no redirect

	opened bool // the operation has reached storage.Opened

	phase uint32 // of the recorder, in which done were completed
	done  int64
}

var _ storage.Progress = (*Meter)(nil)

// of returns the cell of the target itself that counts operations of kind k.
func (m *Meter) of(k storage.Kind) *cell {
	if c := m.own[k]; c != nil {
		return c
	}
	return m.open(k)
}

// open makes the cell of kind k, if no other client of the shard has made it. It is not part of of,
// which is small enough to be inlined then.
//
//go:noinline
func (m *Meter) open(k storage.Kind) *cell {
	c := m.shard.cell(address{kind: k})
	m.own[k] = c
	return c
}

// Start begins an operation of kind k, now.
func (m *Meter) Start(k storage.Kind) {
	now := m.r.Now()
	m.StartAt(k, now, now)
}

// StartAt begins an operation of kind k now, whose time counts from planned: in the open model a
// late start is part of the time that the user of a slow service waits. The two times are readings
// of the recorder's clock.
func (m *Meter) StartAt(k storage.Kind, now, planned time.Duration) {
	c := m.of(k)
	m.cell = c
	m.start, m.begin, m.end, m.first, m.connect, m.login, m.redirect = planned, now, 0, 0, 0, 0, 0
	m.opened = false
	c.mu.Lock()
	c.sum.Begun++
	c.open++
	c.spent -= now
	c.mu.Unlock()
}

// Reached records the time when the operation that runs passed p.
func (m *Meter) Reached(p storage.Phase) {
	switch p {
	case storage.FirstByte:
		if m.first == 0 {
			m.first = m.r.Now() - m.start
		}
	case storage.Connected:
		if m.connect == 0 { // the first connection; a redirect's connection is not the session's
			m.connect = m.r.Now() - m.begin
		}
	case storage.Authenticated:
		if m.login == 0 {
			m.login = m.r.Now() - m.begin
		}
	case storage.Redirected:
		if m.redirect == 0 {
			m.redirect = max(m.r.Now()-m.begin, 1)
		}
	case storage.Opened:
		m.opened = true
	}
}

// Opened reports whether the operation that runs, or the last operation, has reached
// storage.Opened.
func (m *Meter) Opened() bool { return m.opened }

// Moved counts n more payload bytes, now.
func (m *Meter) Moved(n int) { m.cell.moved.Add(int64(n)) }

// ServedBy moves the further counts of the operation to the data server. Its begin stays with the
// target.
func (m *Meter) ServedBy(host string) {
	if host != m.cell.server {
		m.cell = m.shard.cell(address{m.cell.kind, host})
	}
}

// Stopped marks the operation's end, for work that comes between the end and
// the call of End.
func (m *Meter) Stopped() { m.end = m.r.Now() }

// End counts the operation that runs as done, or as failed with err. It
// returns err's class.
func (m *Meter) End(res *storage.Result, err error) storage.Class {
	if m.end == 0 {
		m.end = m.r.Now()
	}
	class := storage.Classify(err)
	if class != storage.None {
		m.blame(err)
	}
	c := m.cell
	c.mu.Lock()
	c.open--
	c.spent += m.end
	c.sum.Discarded += res.Discarded
	c.sum.Wire += res.Wire
	if res.Process != nil {
		c.sum.CPU += (res.Process.User + res.Process.System).Seconds()
		c.sum.Memory = max(c.sum.Memory, res.Process.MaxRSS)
	}
	c.sum.Waits += int64(res.Waits)
	c.sum.Waited += res.Waited.Seconds()
	c.sum.Reopened += int64(res.Reopened)
	c.sum.Signed += int64(res.Signed)
	c.sum.Renewed += int64(res.Renewed)
	if m.redirect > 0 {
		c.sum.Redirect.Record(m.redirect)
	}
	if m.connect > 0 {
		c.sum.Sessions++
		c.sum.Connect.Record(m.connect)
	}
	if res.Handshakes > 0 {
		c.sum.Handshakes += int64(res.Handshakes)
		c.sum.Resumed += int64(res.Resumed)
		c.sum.Handshake.Record(res.Handshake)
	}
	if m.login > 0 {
		c.sum.Login.Record(m.login)
	}
	if class == storage.None {
		m.succeeded(c, res)
	} else {
		c.failed[class]++
		if class.Failure() {
			c.sum.FailedTime += (m.end - m.begin).Seconds()
		}
	}
	c.mu.Unlock()
	if class.Failure() {
		m.r.log.add(m.r, c.address, class, err)
	}
	return class
}

// succeeded counts in c, which is locked, that the operation ended well.
func (m *Meter) succeeded(c *cell, res *storage.Result) {
	c.sum.Done++
	if res.Encoding != "" && c.kind == storage.Read {
		c.sum.Encoded++
		m.r.log.encoded(m.r, res.Encoding)
	}
	if phase := m.r.phase.Load(); phase != m.phase {
		m.phase, m.done = phase, 0
	}
	c.sum.DoneSquares += float64(2*m.done + 1) // (n+1)^2 - n^2
	m.done++
	c.sum.Latency.Record(m.end - m.start)
	if c.lastDone = max(c.lastDone, m.end); c.firstDone == 0 || m.end < c.firstDone {
		c.firstDone = m.end
	}
	if m.first > 0 {
		c.sum.FirstByte.Record(m.first)
	}
}

// blame moves a failure to the data server in its error: a server that no client could connect to
// has never served, and its failure is not the target's.
func (m *Meter) blame(err error) {
	var e *storage.OpError
	if errors.As(err, &e) && e.Server != "" {
		m.ServedBy(e.Server)
	}
}

// Verified counts the last operation's payload as checked and right.
func (m *Meter) Verified() {
	m.cell.mu.Lock()
	m.cell.sum.Verified++
	m.cell.mu.Unlock()
}

// Retried counts one more try of the same operation.
func (m *Meter) Retried() {
	m.cell.mu.Lock()
	m.cell.sum.Retried++
	m.cell.mu.Unlock()
}

// Task counts a task that ended, after whose last operation a pause of think
// begins.
func (m *Meter) Task(think time.Duration) {
	if m.cell == nil {
		return // a task without operations
	}
	m.cell.mu.Lock()
	m.cell.sum.Tasks++
	m.cell.sum.Think += think.Seconds()
	m.cell.mu.Unlock()
}

// Late counts how much later than planned a task of the given kind starts.
func (m *Meter) Late(k storage.Kind, d time.Duration) {
	c := m.of(k)
	c.mu.Lock()
	c.sum.Late.Record(max(d, 0))
	c.mu.Unlock()
}

// Closed counts the time that the client took to close its session after a task of kind k.
func (m *Meter) Closed(k storage.Kind, d time.Duration) {
	c := m.of(k)
	c.mu.Lock()
	c.sum.Closing += max(d, 0).Seconds()
	c.mu.Unlock()
}

// Fail counts an operation of kind k that could not even begin, and returns
// err's class.
func (m *Meter) Fail(k storage.Kind, err error) storage.Class {
	m.Start(k)
	return m.End(&storage.Result{}, err)
}
