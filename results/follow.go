package results

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"weir/internal/lock"
	"weir/measure"
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

// silence is how long nobody writes a run before it counts as over where there
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
		intervals: tail[measure.Interval]{most: perPoll, path: filepath.Join(dir, IntervalsFile), read: intervalReader(nil)},
		hosts:     tail[host]{most: perPoll, path: filepath.Join(dir, HostsFile), read: sampleReader(nil)},
		events:    tail[measure.Event]{most: perPoll, path: filepath.Join(dir, EventsFile), read: eventReader},
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
		case "end":
			f.ended = true
		case "resume":
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

// Over tells whether nobody writes the run any more: it ended, was interrupted
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

// Ended tells whether the last of the events "resume" and "end" that were read
// is "end". A run that is over and did not end was killed.
func (f *Follower) Ended() bool { return f.ended }

// left tells whether the writer has gone.
func (f *Follower) left() bool {
	file, err := os.Open(f.intervals.path)
	if err != nil {
		return f.ended || f.silent()
	}
	defer file.Close() //nolint:errcheck // only locked, which ends here
	switch err := lock.TryShared(file); {
	case err == nil:
		return true
	case errors.Is(err, lock.ErrTaken):
		return false
	}
	return f.ended || f.silent()
}

// silent tells whether nothing has been written for long.
func (f *Follower) silent() bool {
	for _, name := range []string{PlanFile, IntervalsFile, HostsFile, EventsFile} {
		info, err := os.Stat(filepath.Join(f.run.Dir, name))
		if err == nil && time.Since(info.ModTime()) < silence {
			return false
		}
	}
	return true
}
