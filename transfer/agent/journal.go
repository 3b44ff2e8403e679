package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"weir/internal/durable"
	"weir/transfer"
)

const (
	journalName = "journal"
	longJournal = 1 << 20 // bytes from which on it is written anew, without what is over
	longestLine = 1 << 20
)

// A note is a line of a journal.
type note struct {
	Lease   *transfer.Lease    `json:"lease,omitempty"`   // an attempt begins
	Outcome *transfer.Outcome  `json:"outcome,omitempty"` // it has ended
	Over    []transfer.LeaseID `json:"over,omitempty"`    // the coordinator knows
}

// A memory is what a journal knows of one attempt.
type memory struct {
	lease   *transfer.Lease
	outcome *transfer.Outcome
}

// A journal is the file that tells, after whatever end of the process, which
// attempts were under way and which outcomes the coordinator does not know.
// Notes are written by one goroutine, many at once.
type journal struct {
	path  string
	file  *os.File
	log   *slog.Logger
	size  int64
	known map[transfer.LeaseID]*memory // the writer's after openJournal
	ended chan struct{}

	mu     sync.Mutex
	queue  []note
	then   []func()
	wake   chan struct{}
	closed bool
}

// openJournal returns the journal of the folder dir and what it remembers.
func openJournal(dir string, log *slog.Logger) (*journal, []memory, error) {
	j := &journal{
		path: filepath.Join(dir, journalName), log: log, known: map[transfer.LeaseID]*memory{},
		ended: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	if err := j.read(); err != nil {
		return nil, nil, fmt.Errorf("journal %s: %w", j.path, err)
	}
	if err := j.renew(); err != nil {
		return nil, nil, fmt.Errorf("journal %s: %w", j.path, err)
	}
	var all []memory
	for _, m := range j.known {
		all = append(all, *m)
	}
	go j.write()
	return j, all, nil
}

// read learns what the file says. A line that a kill has torn is no line.
func (j *journal) read() error {
	f, err := os.Open(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var n note
		if json.Unmarshal(lines.Bytes(), &n) == nil {
			j.learn(n)
		}
	}
	return lines.Err()
}

func (j *journal) learn(n note) {
	switch {
	case n.Lease != nil:
		j.known[holdOf(n.Lease)] = &memory{lease: n.Lease}
	case n.Outcome != nil:
		j.known[transfer.LeaseID{Item: n.Outcome.Item, Epoch: n.Outcome.Epoch}] = &memory{outcome: n.Outcome}
	default:
		for _, h := range n.Over {
			delete(j.known, h)
		}
	}
}

func holdOf(l *transfer.Lease) transfer.LeaseID {
	return transfer.LeaseID{Item: l.Item, Epoch: l.Epoch}
}

// begin notes that an attempt begins. Its secrets are not written.
func (j *journal) begin(l transfer.Lease) {
	l.Source.Token, l.Dest.Token = "", ""
	j.add(note{Lease: &l}, nil)
}

// end notes how an attempt ended, and calls then, in another goroutine, when that
// is on stable storage, or cannot be.
func (j *journal) end(o transfer.Outcome, then func()) { j.add(note{Outcome: &o}, then) }

// over notes that the coordinator knows.
func (j *journal) over(of []transfer.LeaseID) { j.add(note{Over: of}, nil) }

func (j *journal) add(n note, then func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue = append(j.queue, n)
	if then != nil {
		j.then = append(j.then, then)
	}
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// close writes what is left, and ends.
func (j *journal) close() error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
	<-j.ended
	return j.file.Close()
}

func (j *journal) write() {
	defer close(j.ended)
	failed := false
	for range j.wake {
		j.mu.Lock()
		notes, then, closed := j.queue, j.then, j.closed
		j.queue, j.then = nil, nil
		j.mu.Unlock()
		err := j.put(notes, len(then) > 0)
		if err != nil && !failed { // a full disk, most often: then outcomes are reported from memory only
			j.log.Warn("outcomes are not on disk until the coordinator knows them", "journal", j.path, "error", err)
		}
		failed = err != nil
		for _, f := range then {
			f()
		}
		if closed {
			return
		}
	}
}

func (j *journal) put(notes []note, sync bool) error {
	var text bytes.Buffer
	for _, n := range notes {
		j.learn(n)
		b, err := json.Marshal(n)
		if err != nil {
			return err
		}
		text.Write(b)
		text.WriteByte('\n')
	}
	if j.size+int64(text.Len()) > longJournal && len(j.known) < int(longJournal>>12) {
		return j.renew()
	}
	n, err := j.file.Write(text.Bytes())
	j.size += int64(n)
	if err == nil && sync {
		err = j.file.Sync()
	}
	if err != nil && n > 0 { // what follows is to be a line of its own
		_, _ = j.file.Write([]byte("\n"))
	}
	return err
}

// renew writes the journal anew, with what is still of use.
func (j *journal) renew() error {
	var text bytes.Buffer
	for _, m := range j.known {
		b, err := json.Marshal(note{Lease: m.lease, Outcome: m.outcome})
		if err != nil {
			return err
		}
		text.Write(b)
		text.WriteByte('\n')
	}
	if err := durable.Write(j.path, text.Bytes(), 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if j.file != nil {
		_ = j.file.Close() // all of it stands in the new one
	}
	j.file, j.size = f, int64(text.Len())
	return nil
}
