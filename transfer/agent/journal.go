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
	longJournal = 1 << 20 // bytes from which the journal is rewritten without finished attempts
	longestLine = 1 << 20
)

// A note is a line of a journal.
type note struct {
	Lease   *transfer.Lease    `json:"lease,omitempty"`   // an attempt begins
	Outcome *transfer.Outcome  `json:"outcome,omitempty"` // it has ended
	Over    []transfer.LeaseID `json:"over,omitempty"`    // the coordinator has acknowledged their outcomes
}

// A memory is the state of one attempt in a journal.
type memory struct {
	lease   *transfer.Lease
	outcome *transfer.Outcome
}

// A journal is the file from which, after any end of the process, the next process reads the
// attempts that were under way and the outcomes that the coordinator has not acknowledged. Notes
// are written by one goroutine, many at once.
type journal struct {
	path  string
	file  *os.File
	log   *slog.Logger
	size  int64
	known map[transfer.LeaseID]*memory // only used by the writer after openJournal
	ended chan struct{}

	mu     sync.Mutex
	queue  []note
	then   []func()
	wake   chan struct{}
	closed bool
}

// openJournal opens the journal of the folder dir, and returns it with the attempts recorded in it.
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

// read reads the file. A line torn by a kill is ignored.
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

// begin records that an attempt begins. Its secrets are not written.
func (j *journal) begin(l transfer.Lease) {
	l.Source.Token, l.Dest.Token = "", ""
	j.add(note{Lease: &l}, nil)
}

// end records the outcome of an attempt, and calls then, in another goroutine, when the record is
// on stable storage, or cannot be written.
func (j *journal) end(o transfer.Outcome, then func()) { j.add(note{Outcome: &o}, then) }

// over records that the coordinator has acknowledged the outcomes of attempts.
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

// close writes the remaining notes and closes the journal.
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
		if err != nil && !failed { // usually a full disk: then outcomes are reported from memory only
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
	if err != nil && n > 0 { // the next note must begin on a new line
		_, _ = j.file.Write([]byte("\n"))
	}
	return err
}

// renew rewrites the journal with only the attempts that are still needed.
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
		_ = j.file.Close() // the new file contains all of it
	}
	j.file, j.size = f, int64(text.Len())
	return nil
}
