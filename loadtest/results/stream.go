package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"weir/internal/scan"
	"weir/loadtest/measure"
	"weir/monitor"
)

// EachInterval calls take with each line of intervals.jsonl in order, and with the row that render
// returns for it. Lines are decoded and rendered on all cores in advance: render is called by
// several goroutines at once and appends to out; take is called by the caller's goroutine. render
// and take must not keep iv, and take must not keep row: their memory is reused. render may be nil.
// Memory does not grow with the file. An error ends the iteration; it contains file and line if the
// file is damaged.
func (r *Run) EachInterval(render func(out []byte, iv *measure.Interval) []byte, take func(iv *measure.Interval, row []byte) error) error {
	return stream(filepath.Join(r.Dir, IntervalsFile), readIntervals, render, take)
}

// EachSample is like EachInterval, for hosts.jsonl.
func (r *Run) EachSample(render func(out []byte, s *monitor.Sample) []byte, take func(s *monitor.Sample, row []byte) error) error {
	var row func(out []byte, h *host) []byte
	if render != nil {
		row = func(out []byte, h *host) []byte { return render(out, &h.Sample) }
	}
	return stream(filepath.Join(r.Dir, HostsFile), readSamples, row, func(h *host, row []byte) error { return take(&h.Sample, row) })
}

// EachTransfer calls take with each line of transfers.jsonl in order, as EachInterval does.
func (r *Run) EachTransfer(take func(*Transfer) error) error {
	return stream(filepath.Join(r.Dir, TransfersFile), func() lineReader[Transfer] { return fastReader(checkTransfer) }, nil,
		func(t *Transfer, _ []byte) error { return take(t) })
}

// EachLink calls take with each line of links.jsonl in order, as EachInterval does.
func (r *Run) EachLink(take func(*LinkInterval) error) error {
	return stream(filepath.Join(r.Dir, LinksFile), func() lineReader[LinkInterval] { return fastReader(checkLink) }, nil,
		func(l *LinkInterval, _ []byte) error { return take(l) })
}

// fastReader returns a lineReader that first tries the parser for lines in the form that this
// program writes, then the parser for any JSON.
func fastReader[T any](check func(*T) error) lineReader[T] {
	fast := new(scan.Reader[T])
	return reader(func(line []byte, v *T) error {
		if fast.Read(line, v, v) {
			return nil
		}
		*v = *new(T)
		return decode(line, v)
	}, check)
}

// A lineReader fills v from a line. whole is false if the line is not JSON of a T.
type lineReader[T any] func(line []byte, v *T) (whole bool, err error)

// reader returns a lineReader that uses decode, and returns an error for values that check rejects.
func reader[T any](decode func(line []byte, v *T) error, check func(*T) error) lineReader[T] {
	return func(line []byte, v *T) (whole bool, err error) {
		if err := decode(line, v); err != nil {
			return false, err
		}
		return true, check(v)
	}
}

func readIntervals() lineReader[measure.Interval] {
	return reader(new(decoder).interval, checkInterval)
}

func readSamples() lineReader[host] {
	return reader(new(decoder).sample, func(h *host) error { return checkSample(&h.Sample) })
}

func readEvents() lineReader[measure.Event] {
	return reader(func(line []byte, e *measure.Event) error {
		*e = measure.Event{}
		return decode(line, e)
	}, func(*measure.Event) error { return nil })
}

func readLinks() lineReader[LinkInterval] {
	return reader(func(line []byte, l *LinkInterval) error {
		*l = LinkInterval{}
		return decode(line, l)
	}, checkLink)
}

// piece is the number of bytes of lines that goroutines pass to each other.
const piece = 128 << 10

// A batch is a piece of a file in progress: its text, and the values decoded from it.
type batch[T any] struct {
	text   []byte
	values []T
	ends   []int // end of each value's row in rows
	rows   []byte
	n      int   // valid values
	lines  int   // lines that were read, including empty lines
	err    error // of the line after the last valid line
	ready  chan struct{}
}

// decode fills b's values from its text, and b's rows with the results of render.
func (b *batch[T]) decode(read lineReader[T], render func(out []byte, v *T) []byte) {
	b.n, b.lines, b.rows, b.ends, b.err = 0, 0, b.rows[:0], b.ends[:0], nil
	for rest := b.text; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		rest = after
		b.lines++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if b.n == len(b.values) {
			b.values = append(b.values, *new(T))
		}
		whole, err := read(line, &b.values[b.n])
		if err != nil && !ended && !whole {
			return // the incomplete last line of a writer that died
		}
		if err != nil {
			b.err = err
			return
		}
		if render != nil {
			b.rows = render(b.rows, &b.values[b.n])
		}
		b.n, b.ends = b.n+1, append(b.ends, len(b.rows))
	}
}

// stream reads path, decodes its lines on all cores and passes them to take in order, with the
// results of render, which may be nil. Each goroutine has its own reader. A missing file has no
// lines.
func stream[T any](path string, reader func() lineReader[T], render func(out []byte, v *T) []byte,
	take func(v *T, row []byte) error) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	workers := runtime.GOMAXPROCS(0)
	free, work, order := make(chan *batch[T], 2*workers), make(chan *batch[T], 2*workers), make(chan *batch[T], 2*workers)
	for range 2 * workers {
		free <- &batch[T]{ready: make(chan struct{}, 1)}
	}
	stop := make(chan struct{})
	var wait sync.WaitGroup
	defer wait.Wait()
	defer close(stop)
	for range workers {
		wait.Go(func() {
			read := reader()
			for b := range work {
				b.decode(read, render)
				b.ready <- struct{}{}
			}
		})
	}
	var broken error // read after order is closed
	wait.Go(func() {
		defer close(order)
		defer close(work)
		broken = cut(file, func(text []byte) bool {
			select {
			case b := <-free:
				b.text = append(b.text[:0], text...)
				work <- b // there is room for all batches
				order <- b
				return true
			case <-stop:
				return false
			}
		})
	})
	number := 0
	for b := range order {
		<-b.ready
		if err := b.give(take); err != nil {
			return err
		}
		if number += b.lines; b.err != nil {
			return fmt.Errorf("%s:%d: %w", path, number, b.err)
		}
		free <- b
	}
	if broken != nil {
		return fmt.Errorf("%s:%d: %w", path, number+1, broken)
	}
	return nil
}

// give passes b's values to take.
func (b *batch[T]) give(take func(v *T, row []byte) error) error {
	from := 0
	for i := range b.n {
		if err := take(&b.values[i], b.rows[from:b.ends[i]]); err != nil {
			return err
		}
		from = b.ends[i]
	}
	return nil
}

// cut calls give with r's content in pieces that end at line ends, except for the last piece, until
// give returns false.
func cut(r io.Reader, give func(text []byte) bool) error {
	buf := make([]byte, 0, 2*piece)
	for {
		n, err := io.ReadFull(r, buf[len(buf):min(cap(buf), len(buf)+piece)])
		fresh := buf[len(buf) : len(buf)+n]
		buf = buf[:len(buf)+n]
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return err
		}
		end := bytes.LastIndexByte(fresh, '\n')
		if end >= 0 {
			end += len(buf) - n + 1
			if !give(buf[:end]) {
				return nil
			}
			buf = buf[:copy(buf, buf[end:])]
		}
		if ended {
			if len(buf) > 0 {
				give(buf)
			}
			return nil
		}
		if len(buf) > longest {
			return tooLong()
		}
		if len(buf)+piece > cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
	}
}
