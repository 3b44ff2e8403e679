package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"weir/internal/lock"
	"weir/loadtest/measure"
	"weir/monitor"
)

// Takers are called with what a Follower has read; a nil one is passed over.
// They must not keep what they are given: its memory is used again. Strings in
// it may be kept.
type Takers struct {
	Interval func(*measure.Interval)
	Sample   func(*monitor.Sample)
	Event    func(*measure.Event)
}

// perPoll is how many bytes of each file one Poll reads, but for a longer line,
// unless Bound says otherwise.
const perPoll = 4 << 20

// ahead is how far one file of a backlog may be read before the other.
const ahead = 10 * time.Second

// silence is how long a run is not written before it counts as over where there
// are no locks: a live one writes every second.
const silence = 10 * time.Minute

// A Follower reads a run directory while its run goes on, as well as one whose
// run is over. It holds no open file and keeps nothing of what it has read. It
// is not safe for concurrent use.
type Follower struct {
	run       *Run
	intervals tail[measure.Interval]
	hosts     tail[host]
	events    tail[measure.Event]
	clients   time.Time // start of the last interval
	looked    time.Time // time of the last sample
	over      bool
	ended     bool // of the events resume and end, the last one is end
}

// Follow begins to follow dir from its first line. It refuses what Open refuses.
// A file that is not there yet is read when it comes.
func Follow(dir string) (*Follower, error) {
	run, err := Open(dir)
	if err != nil {
		return nil, err
	}
	return &Follower{run: run,
		intervals: tail[measure.Interval]{most: perPoll, path: filepath.Join(dir, IntervalsFile), read: readIntervals()},
		hosts:     tail[host]{most: perPoll, path: filepath.Join(dir, HostsFile), read: readSamples()},
		events:    tail[measure.Event]{most: perPoll, path: filepath.Join(dir, EventsFile), read: readEvents()},
	}, nil
}

// Run returns the run that is followed.
func (f *Follower) Run() *Run { return f.run }

// Bound makes a Poll read at most about so many bytes of each file: for those
// who make much of a line.
func (f *Follower) Bound(bytes int64) {
	f.intervals.most, f.hosts.most, f.events.most = bytes, bytes, bytes
}

// Poll hands to take what was appended since the last Poll: first the events,
// then the intervals, then the samples, each in the order of its file. It reads
// a few megabytes of each file at most, so that its memory does not grow with
// what has gathered: call it again until moved is false, then wait a moment.
// Of a backlog intervals and samples are read about equally far in time. A
// last line is read once its end is there, or, if it is whole without one,
// after Over has returned true. Poll never waits for the writer.
//
// An error names file and line; a Poll after it tries that line again.
func (f *Follower) Poll(take Takers) (moved bool, err error) {
	movedEvents, err := f.events.poll(f.over, func(e *measure.Event) {
		switch e.Kind {
		case measure.EventEnd:
			f.ended = true
		case measure.EventResume:
			f.ended = false
		}
		if take.Event != nil {
			take.Event(e)
		}
	})
	if err != nil {
		return movedEvents, err
	}
	movedIntervals, movedSamples := false, false
	if !f.hosts.more || !f.clients.After(f.looked.Add(ahead)) {
		movedIntervals, err = f.intervals.poll(f.over, func(iv *measure.Interval) {
			f.clients = iv.Start
			if take.Interval != nil {
				take.Interval(iv)
			}
		})
	}
	if err == nil && (!f.intervals.more || !f.looked.After(f.clients.Add(ahead))) {
		movedSamples, err = f.hosts.poll(f.over, func(h *host) {
			f.looked = h.Time
			if take.Sample != nil {
				take.Sample(&h.Sample)
			}
		})
	}
	return movedEvents || movedIntervals || movedSamples, err
}

// Over reports whether the run is not written any more: it ended, was interrupted
// or was killed; Ended tells which. What was written last may not have been
// read yet: after Over has returned true, Poll until nothing moved. A run that
// is resumed is not over again.
//
// Where files have no locks a run is over once its end was read or nothing has
// been written for ten minutes.
func (f *Follower) Over() bool {
	f.over = f.left()
	return f.over
}

// Ended reports whether the last of the events "resume" and "end" that were read
// is "end". A run that is over and did not end was killed.
func (f *Follower) Ended() bool { return f.ended }

// left reports whether the writer has gone.
func (f *Follower) left() bool {
	file, err := os.Open(f.intervals.path)
	if err != nil {
		return f.ended || f.silent()
	}
	defer file.Close()
	switch err := lock.TryShared(file); {
	case err == nil:
		return true
	case errors.Is(err, lock.ErrTaken):
		return false
	}
	return f.ended || f.silent()
}

// silent reports whether nothing has been written for long.
func (f *Follower) silent() bool {
	for _, name := range []string{PlanFile, IntervalsFile, HostsFile, EventsFile} {
		info, err := os.Stat(filepath.Join(f.run.Dir, name))
		if err == nil && time.Since(info.ModTime()) < silence {
			return false
		}
	}
	return true
}

// A tail is the part of a file that has not been read yet.
type tail[T any] struct {
	path   string
	read   lineReader[T]
	most   int64 // bytes that one poll reads, to the end of a piece
	at     int64 // begin of the first line that has not been read
	number int   // of the lines before it
	more   bool  // the last poll did not come to the end
	buf    []byte
	value  T
}

// poll hands the lines from t.at on to take, which may be nil. last tells that
// a last line without an end will not get one.
func (t *tail[T]) poll(last bool, take func(*T)) (moved bool, err error) {
	t.more = false
	info, err := os.Stat(t.path) // opening a pipe would wait for its writer
	if errors.Is(err, fs.ErrNotExist) && t.at == 0 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("results: %w", err)
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("results: %s is not a regular file: %s", t.path, info.Mode())
	}
	switch {
	case info.Size() < t.at:
		return false, fmt.Errorf("results: %s is shorter than what was read of it: another run was written there", t.path)
	case info.Size() == t.at:
		return false, nil
	}
	file, err := os.Open(t.path)
	if err != nil {
		return false, fmt.Errorf("results: %w", err)
	}
	defer file.Close()
	begin := t.at
	err = t.drain(file, last, take)
	if cap(t.buf) > piece {
		t.buf = nil // a long line came; they are rare
	}
	return t.at > begin, err
}

// drain reads what of the file is new, t.most bytes and a line at most.
func (t *tail[T]) drain(file io.ReaderAt, last bool, take func(*T)) error {
	again := int64(-1)
	for begin := t.at; t.at-begin < t.most; {
		whole, rest, err := t.lines(file)
		if err != nil {
			return t.damaged(err)
		}
		err = t.each(whole, take)
		if err != nil && again != t.at {
			// A torn line was cut off and another one written there, maybe while
			// it was being read: what stands there now decides.
			again = t.at
			continue
		}
		if err != nil {
			return t.damaged(err)
		}
		if len(whole) == 0 {
			if last {
				err = t.unended(rest, take)
			}
			return err
		}
	}
	t.more = true
	return nil
}

// lines returns the whole lines from t.at on, at least one if there is one,
// and, if there is none, what stands there without an end.
func (t *tail[T]) lines(file io.ReaderAt) (whole, rest []byte, err error) {
	for size := piece; ; size *= 2 {
		if cap(t.buf) < size {
			t.buf = make([]byte, size)
		}
		n, err := file.ReadAt(t.buf[:size], t.at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, err
		}
		if end := bytes.LastIndexByte(t.buf[:n], '\n') + 1; end > 0 {
			return t.buf[:end], nil, nil
		}
		if n > longest {
			return nil, nil, tooLong()
		}
		if n < size {
			return nil, t.buf[:n], nil
		}
	}
}

// each hands the lines of text to take.
func (t *tail[T]) each(text []byte, take func(*T)) error {
	for len(text) > 0 {
		line, after, _ := bytes.Cut(text, []byte{'\n'})
		if len(line) > longest {
			return tooLong()
		}
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			if _, err := t.read(trimmed, &t.value); err != nil {
				return err
			}
			if take != nil {
				take(&t.value)
			}
		}
		t.at += int64(len(line)) + 1
		t.number++
		text = after
	}
	return nil
}

// unended hands rest, which has no end, to take if it is a whole line all the same.
func (t *tail[T]) unended(rest []byte, take func(*T)) error {
	trimmed := bytes.TrimSpace(rest)
	if len(trimmed) == 0 {
		return nil
	}
	whole, err := t.read(trimmed, &t.value)
	if !whole {
		return nil // what the writer was about when it died
	}
	if err != nil {
		return t.damaged(err)
	}
	if take != nil {
		take(&t.value)
	}
	t.at += int64(len(rest)) // a writer that goes on ends this line first
	return nil
}

// damaged says where err happened.
func (t *tail[T]) damaged(err error) error {
	return fmt.Errorf("results: %s:%d: %w", t.path, t.number+1, err)
}
