package monitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"
)

// Transfers has the entries of a backend's own log on transfers that ended in the span. Their bytes
// moved before the end: Spans has the times.
type Transfers struct {
	Done   int64           `json:"done"`
	Failed int64           `json:"failed,omitempty"`
	Spans  []TransfersSpan `json:"spans"`
}

// A TransfersSpan is a part of the time in which transfers ran: the part within one second of the
// wall clock, or the whole time of a transfer that took longer than a minute. Spans overlap, and
// the figures of spans at the same time add up.
type TransfersSpan struct {
	Begin   time.Time `json:"begin"`
	Seconds float64   `json:"duration_seconds"`
	Moved   int64     `json:"moved_bytes"`
	Running float64   `json:"running"` // transfers, mean over the span
}

const (
	leastSpan    = time.Millisecond   // of a transfer that took no time
	longTransfer = time.Minute        // longer transfers have spans of their own
	mostTransfer = 7 * 24 * time.Hour // a longer time is an error in the log
	mostOfLog    = 16 << 20           // bytes of a log that are read in one look
)

// transferLog follows the log that globus-gridftp-server -log-transfer writes, as tail -F does:
// from its end on, over rotations, and from its beginning if it is created later.
type transferLog struct {
	path   string
	file   *os.File // nil: it is not there yet
	offset int64
	rest   []byte // the begin of a line
	buffer []byte
	clock  func() moment
	lastAt moment
	noted  bool // a missing log, or invalid lines, have been reported
}

func newTransferLog(path string, clock func() moment) (*transferLog, error) {
	t := &transferLog{path: path, clock: clock, lastAt: clock(), buffer: make([]byte, 64<<10)}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("transfer_log: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err == nil {
		t.offset, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("transfer_log: %w", err)
	}
	t.file = f
	return t, nil
}

func (t *transferLog) close() {
	if t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}

func (t *transferLog) look(ctx context.Context) (*Sample, error) {
	at := t.clock()
	sums := spans{seconds: map[int64]*TransfersSpan{}}
	var odd error
	err := t.read(ctx, func(line []byte) {
		x, err := parseTransfer(line)
		switch {
		case err != nil && odd == nil:
			odd = fmt.Errorf("%s: %w", t.path, err)
		case err == nil:
			sums.add(x)
		}
	})
	if err == nil && !t.noted {
		err = odd
	}
	if t.noted {
		err = nil
	} else {
		t.noted = err != nil
	}
	if sums.out.Done+sums.out.Failed == 0 {
		return nil, err
	}
	s := &Sample{Time: at.wall, Seconds: (at.mono - t.lastAt.mono).Seconds(), Transfers: sums.whole()}
	t.lastAt = at
	return s, err
}

// read hands on the lines that are new.
func (t *transferLog) read(ctx context.Context, line func([]byte)) error {
	if t.file == nil {
		f, err := os.Open(t.path)
		if err != nil {
			return fmt.Errorf("transfer_log: %w", err)
		}
		t.file, t.offset, t.noted = f, 0, false
	}
	if err := t.news(ctx, line); err != nil {
		return fmt.Errorf("transfer_log: %w", err)
	}
	now, err := os.Stat(t.path)
	if err != nil {
		return nil // it was moved away, and its successor is not there yet
	}
	if own, err := t.file.Stat(); err == nil && !os.SameFile(own, now) {
		_ = t.file.Close()
		t.file, t.rest = nil, t.rest[:0]
		return t.read(ctx, line)
	}
	if now.Size() < t.offset { // it was emptied
		t.offset, t.rest = 0, t.rest[:0]
		return t.news(ctx, line)
	}
	return nil
}

// news reads the part of the open file that was appended since the last look.
func (t *transferLog) news(ctx context.Context, line func([]byte)) error {
	for sum := 0; sum < mostOfLog && ctx.Err() == nil; {
		n, err := t.file.ReadAt(t.buffer, t.offset)
		t.offset += int64(n)
		sum += n
		t.cut(t.buffer[:n], line)
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// longestLine limits the length that is stored of an unfinished line.
const longestLine = 64 << 10

// cut passes the lines in b to line. The first line begins with the rest of the last call.
func (t *transferLog) cut(b []byte, line func([]byte)) {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			if t.rest = append(t.rest, b...); len(t.rest) > longestLine {
				t.rest = t.rest[:0]
			}
			return
		}
		if len(t.rest) > 0 {
			t.rest = append(t.rest, b[:i]...)
			line(t.rest)
			t.rest = t.rest[:0]
		} else if i > 0 {
			line(b[:i])
		}
		b = b[i+1:]
	}
}

// A logged is one line of a log.
type logged struct {
	from, to time.Time
	moved    int64
	done     bool // its code is one of success
	file     bool // it is the transfer of a file, not of a listing
}

// parseTransfer reads a line as globus_i_gfs_log_transfer of globus_i_gfs_log.c writes it:
//
//	DATE=20190809091437.927804 HOST=... PROG=globus-gridftp-server NL.EVNT=FTP_INFO START=20190809091437.884224
//	USER=... FILE=... BUFFER=... BLOCK=... NBYTES=35616 VOLUME=/ STREAMS=4 STRIPES=1 DEST=[...] TYPE=RETR CODE=226
//
// on one line. DATE is the time of the end, the two times are UTC, and the digits behind their dot
// are microseconds, which old servers write without leading zeros. The names of users and files may
// have spaces and any other characters in them, so the fields before them are searched from the
// left, and the fields after them from the right.
func parseTransfer(line []byte) (t logged, err error) {
	date, start := word(line, "DATE=", false), word(line, " START=", false)
	moved, kind, code := word(line, " NBYTES=", true), word(line, " TYPE=", true), word(line, " CODE=", true)
	if date == nil || start == nil || moved == nil || kind == nil || code == nil {
		return t, fmt.Errorf("%.80q is not a transfer of globus-gridftp-server -log-transfer", line)
	}
	if t.to, err = globusTime(date); err != nil {
		return t, err
	}
	if t.from, err = globusTime(start); err != nil {
		return t, err
	}
	if d := t.to.Sub(t.from); d < 0 || d > mostTransfer {
		t.from = t.to // the clock was set, or the line is wrong: all bytes count at the end
	}
	n, ok := number(moved)
	if !ok || n > mostCounted {
		return t, fmt.Errorf("invalid NBYTES=%.20q", moved)
	}
	t.moved, t.done = n, code[0] == '2'
	t.file = bytes.Equal(kind, []byte("RETR")) || bytes.Equal(kind, []byte("STOR")) || bytes.Equal(kind, []byte("ERET")) ||
		bytes.Equal(kind, []byte("ESTO")) || bytes.Equal(kind, []byte("APPE"))
	return t, nil
}

// word returns the word that follows key, or nil if line does not contain key: the first occurrence
// of key in line, or the last.
func word(line []byte, key string, last bool) []byte {
	i := bytes.Index(line, []byte(key))
	if last {
		i = bytes.LastIndex(line, []byte(key))
	}
	if i < 0 || key[0] != ' ' && i > 0 {
		return nil
	}
	w, _ := cutField(line[i+len(key):])
	if len(w) == 0 {
		return nil
	}
	return w
}

// globusTime reads 20190809091437.927804.
func globusTime(b []byte) (time.Time, error) {
	whole, fraction, _ := bytes.Cut(b, []byte{'.'})
	t, err := time.Parse("20060102150405", string(whole))
	if err != nil {
		return t, fmt.Errorf("invalid time %.30q, expected one such as 20190809091437.927804", b)
	}
	if len(fraction) > 0 {
		micro, err := strconv.ParseUint(string(fraction), 10, 32)
		if err != nil || micro >= 1e6 {
			return t, fmt.Errorf("invalid time %.30q, expected one such as 20190809091437.927804", b)
		}
		t = t.Add(time.Duration(micro) * time.Microsecond)
	}
	return t, nil
}

// spans adds up transfers.
type spans struct {
	out     Transfers
	seconds map[int64]*TransfersSpan // by their begin, in seconds since 1970
}

func (s *spans) add(t logged) {
	if !t.done {
		s.out.Failed++
	} else {
		s.out.Done++
	}
	took := t.to.Sub(t.from)
	switch {
	case !t.file:
	case took > longTransfer:
		s.out.Spans = append(s.out.Spans, TransfersSpan{Begin: t.from, Seconds: took.Seconds(), Moved: t.moved, Running: 1})
	default:
		s.spread(t, took)
	}
}

// spread puts a transfer's bytes evenly into the seconds in which it ran. The last second gets the
// rounding error.
func (s *spans) spread(t logged, took time.Duration) {
	left := t.moved
	for from := t.from; ; {
		second := from.Unix()
		to := time.Unix(second+1, 0)
		last := !to.Before(t.to)
		if last {
			to = t.to
		}
		part := left
		if !last {
			part = min(left, int64(float64(t.moved)*(to.Sub(from).Seconds()/took.Seconds())))
		}
		s.put(second, from, to, part)
		if left -= part; last {
			return
		}
		from = to
	}
}

// put adds the bytes moved between two moments of a second.
func (s *spans) put(second int64, from, to time.Time, moved int64) {
	span := s.seconds[second]
	if span == nil {
		span = &TransfersSpan{Begin: from.UTC()}
		s.seconds[second] = span
	}
	end := span.Begin.Add(time.Duration(span.Seconds * float64(time.Second)))
	if to.After(end) {
		end = to
	}
	if from.Before(span.Begin) {
		span.Begin = from.UTC()
	}
	span.Seconds = max(end.Sub(span.Begin).Seconds(), leastSpan.Seconds())
	span.Moved = min(span.Moved+moved, mostCounted)
	span.Running += to.Sub(from).Seconds() // divided by the span when that is known
}

// whole returns all of it, in order of time.
func (s *spans) whole() *Transfers {
	for _, one := range s.seconds {
		one.Running /= one.Seconds
		s.out.Spans = append(s.out.Spans, *one)
	}
	slices.SortFunc(s.out.Spans, func(a, b TransfersSpan) int { return a.Begin.Compare(b.Begin) })
	if s.out.Spans == nil {
		s.out.Spans = []TransfersSpan{}
	}
	return &s.out
}
