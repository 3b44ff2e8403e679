package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

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
	defer file.Close() //nolint:errcheck // only read from
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
			if _, _, err := t.read(trimmed, &t.value, nil); err != nil {
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
	_, whole, err := t.read(trimmed, &t.value, nil)
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
