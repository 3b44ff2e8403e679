package export

import (
	"context"
	"errors"
	"io"
	"time"

	"weir/internal/pause"
	"weir/results"
)

// OpenMetrics writes the run in dir as OpenMetrics text with time stamps, which
// promtool tsdb create-blocks-from openmetrics turns into blocks of Prometheus:
// the way for runs that are older than what a server still takes.
func OpenMetrics(w io.Writer, dir string, find Finder) (err error) {
	out, err := newOpenMetrics()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.close()) }()
	f, err := results.Follow(dir)
	if err != nil {
		return err
	}
	l := newLedger(f.Run(), out, time.Time{})
	if err := finish(f, l, find); err != nil {
		return err
	}
	return out.write(w, l.t.metrics())
}

// Lines writes the run in dir as lines of InfluxDB's line protocol. With follow
// it goes on until the run is over, or ctx ends.
func Lines(ctx context.Context, w io.Writer, dir string, follow bool, find Finder) error {
	f, err := results.Follow(dir)
	if err != nil {
		return err
	}
	enc := newInflux(64 << 10)
	l := newLedger(f.Run(), enc, time.Time{})
	for {
		moved, err := f.Poll(l.takers())
		if err := errors.Join(write(w, enc.flush()), err); err != nil {
			return err
		}
		switch {
		case moved:
		case f.Over() || !follow:
			if err := finish(f, l, find); err != nil {
				return err
			}
			return write(w, enc.flush())
		case !pause.For(ctx, time.Second):
			return ctx.Err()
		}
	}
}

// Wait waits until nobody writes the run in dir any more. It tells whether
// that is so: false if ctx ended first.
func Wait(ctx context.Context, dir string) (bool, error) {
	f, err := results.Follow(dir)
	if err != nil {
		return false, err
	}
	for !f.Over() {
		if !pause.For(ctx, time.Second) {
			return false, nil
		}
	}
	return true, nil
}

// finish reads what is left of a run, and tells what it shows.
func finish(f *results.Follower, l *ledger, find Finder) error {
	if err := readAll(f, l); err != nil {
		return err
	}
	found, err := find(f.Run())
	if err == nil {
		l.end(found)
	}
	return err
}

// readAll reads what is there, also a last line without an end if the run is over.
func readAll(f *results.Follower, l *ledger) error {
	f.Over()
	for {
		moved, err := f.Poll(l.takers())
		if err != nil || !moved {
			return err
		}
	}
}

func write(w io.Writer, all []payload) error {
	for _, p := range all {
		if _, err := w.Write(p.body); err != nil {
			return err
		}
	}
	return nil
}
