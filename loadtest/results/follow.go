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

// Takers are called with the lines that a Follower has read; nil functions are skipped. They must
// not keep their arguments: the memory is reused. Strings in them may be kept.
type Takers struct {
	Interval func(*measure.Interval)
	Sample   func(*monitor.Sample)
	Event    func(*measure.Event)
	Link     func(*LinkInterval) // of data challenges
}

// perPoll is the number of bytes of each file that one Poll reads, except for a longer line, unless
// Bound sets another number.
const perPoll = 4 << 20

// ahead is the time by which one file of a backlog may be read before the other.
const ahead = 10 * time.Second

// silence is the time without writes after which a run counts as over if there are no locks: an
// active run is written every second.
const silence = 10 * time.Minute

// A Follower reads a run directory while its run is active, or after the run is over. It holds no
// open file and stores nothing that it has read. It is not safe for concurrent use.
type Follower struct {
	run       *Run
	intervals tail[measure.Interval]
	hosts     tail[host]
	events    tail[measure.Event]
	links     tail[LinkInterval]
	clients   time.Time // start of the last interval
	looked    time.Time // time of the last sample
	carried   time.Time // start of the last interval of a link
	over      bool
	ended     bool // the last of the events resume and end is end
}

// Follow begins to follow dir from its first line. It returns the errors of Open. A file that does
// not exist yet is read when it appears.
func Follow(dir string) (*Follower, error) {
	run, err := Open(dir)
	if err != nil {
		return nil, err
	}
	return &Follower{run: run,
		intervals: tail[measure.Interval]{most: perPoll, path: filepath.Join(dir, IntervalsFile), read: readIntervals()},
		hosts:     tail[host]{most: perPoll, path: filepath.Join(dir, HostsFile), read: readSamples()},
		events:    tail[measure.Event]{most: perPoll, path: filepath.Join(dir, EventsFile), read: readEvents()},
		links:     tail[LinkInterval]{most: perPoll, path: filepath.Join(dir, LinksFile), read: readLinks()},
	}, nil
}

// Run returns the run that is followed.
func (f *Follower) Run() *Run { return f.run }

// Bound limits a Poll to about so many bytes of each file, for callers that use much memory per
// line.
func (f *Follower) Bound(bytes int64) {
	f.intervals.most, f.hosts.most, f.events.most, f.links.most = bytes, bytes, bytes, bytes
}

// Poll passes the lines appended since the last Poll to take: first the events, then the intervals,
// then the samples, then the links, each in the order of its file. It reads at most a few megabytes of each file,
// so that its memory does not grow with the backlog: call it again until moved is false, then wait
// a moment. The intervals, samples and links of a backlog are read up to about the same time. A last line is
// read as soon as it is terminated, or, if it is complete without a newline, after Over has
// returned true. Poll never waits for the writer.
//
// Errors contain the file and the line; the next Poll tries that line again.
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
	movedIntervals, movedSamples, movedLinks := false, false, false
	if mayLead(f.clients, f.looked, f.hosts.more) && mayLead(f.clients, f.carried, f.links.more) {
		movedIntervals, err = f.intervals.poll(f.over, func(iv *measure.Interval) {
			f.clients = iv.Start
			if take.Interval != nil {
				take.Interval(iv)
			}
		})
	}
	if err == nil && mayLead(f.looked, f.clients, f.intervals.more) {
		movedSamples, err = f.hosts.poll(f.over, func(h *host) {
			f.looked = h.Time
			if take.Sample != nil {
				take.Sample(&h.Sample)
			}
		})
	}
	if err == nil && mayLead(f.carried, f.clients, f.intervals.more) {
		movedLinks, err = f.links.poll(f.over, func(l *LinkInterval) {
			f.carried = l.Start
			if take.Link != nil {
				take.Link(l)
			}
		})
	}
	return movedEvents || movedIntervals || movedSamples || movedLinks, err
}

// mayLead reports whether a file that was read up to at may be read on: another file was read up to
// other, and more of it is there.
func mayLead(at, other time.Time, more bool) bool { return !more || !at.After(other.Add(ahead)) }

// Over reports whether the run is no longer being written: it ended, was interrupted or was killed;
// Ended distinguishes these. The last lines may not have been read yet: after Over has returned
// true, call Poll until nothing moved. After a run is resumed, Over returns false again.
//
// If files have no locks, a run is over after its end was read, or after ten minutes without
// writes.
func (f *Follower) Over() bool {
	f.over = f.left()
	return f.over
}

// Ended reports whether the last of the events "resume" and "end" that were read is "end". A run
// that is over and did not end was killed.
func (f *Follower) Ended() bool { return f.ended }

// left reports whether the writer has ended.
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

// silent reports whether nothing has been written for the time silence.
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
	most   int64 // bytes that one poll reads, up to the end of a piece
	at     int64 // start of the first unread line
	number int   // number of lines before it
	more   bool  // the last poll did not reach the end
	buf    []byte
	value  T
}

// poll passes the lines from t.at on to take, which may be nil. last reports that an unterminated
// last line will not be completed.
func (t *tail[T]) poll(last bool, take func(*T)) (moved bool, err error) {
	t.more = false
	info, err := os.Stat(t.path) // opening a pipe would wait for its writer
	if errors.Is(err, fs.ErrNotExist) && t.at == 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%s is not a regular file: %s", t.path, info.Mode())
	}
	switch {
	case info.Size() < t.at:
		return false, fmt.Errorf("%s is shorter than what was read of it: another run was written there", t.path)
	case info.Size() == t.at:
		return false, nil
	}
	file, err := os.Open(t.path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	begin := t.at
	err = t.drain(file, last, take)
	if cap(t.buf) > piece {
		t.buf = nil // after a long line, which is rare
	}
	return t.at > begin, err
}

// drain reads the new part of the file, at most t.most bytes and a line.
func (t *tail[T]) drain(file io.ReaderAt, last bool, take func(*T)) error {
	again := int64(-1)
	for begin := t.at; t.at-begin < t.most; {
		whole, rest, err := t.lines(file)
		if err != nil {
			return t.damaged(err)
		}
		err = t.each(whole, take)
		if err != nil && again != t.at {
			// A torn line was cut off and another line written there, maybe while it was being
			// read: the current content decides.
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

// lines returns the terminated lines from t.at on. If no line is terminated, it returns the
// unterminated rest.
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

// each passes the lines of text to take.
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

// unended passes rest, which is not terminated, to take if it is a complete line nevertheless.
func (t *tail[T]) unended(rest []byte, take func(*T)) error {
	trimmed := bytes.TrimSpace(rest)
	if len(trimmed) == 0 {
		return nil
	}
	whole, err := t.read(trimmed, &t.value)
	if !whole {
		return nil // the writer died while it wrote this line
	}
	if err != nil {
		return t.damaged(err)
	}
	if take != nil {
		take(&t.value)
	}
	t.at += int64(len(rest)) // a writer that resumes terminates this line first
	return nil
}

// damaged adds the file and the line to err.
func (t *tail[T]) damaged(err error) error {
	return fmt.Errorf("%s:%d: %w", t.path, t.number+1, err)
}
