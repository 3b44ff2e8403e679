package results

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
)

// longest is the longest line that is read, in bytes. A sample of a machine
// with a thousand disks stays far below it.
const longest = 16 << 20

func tooLong() error { return fmt.Errorf("line is longer than %d bytes", longest) }

// lines yields each line of path as a T that check finds possible. A file that
// is missing has no lines. A last line that has no end and is not whole is left out.
func lines[T any](path string, check func(*T) error) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		err := eachLine(path, func(number int, line []byte, whole bool) (bool, error) {
			v := new(T)
			err := decode(line, v)
			if err != nil && !whole {
				return false, nil
			}
			if err == nil {
				err = check(v)
			}
			if err != nil {
				return false, fmt.Errorf("results: %s:%d: %w", path, number, err)
			}
			return yield(v, nil), nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// eachLine calls f with each line of path until f returns false or an error.
// whole is false for a last line without a newline. Empty lines are passed over.
func eachLine(path string, f func(number int, line []byte, whole bool) (bool, error)) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 64<<10)
	for number := 1; ; number++ {
		line, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("results: %s:%d: %w", path, number, err)
		}
		ended := err != nil
		if line = bytes.TrimSpace(line); len(line) > 0 {
			more, err := f(number, line, !ended)
			if err != nil || !more {
				return err
			}
		}
		if ended {
			return nil
		}
	}
}

// readLine returns the next line, and io.EOF with one that has no newline.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > longest {
			return nil, tooLong()
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// decode reads one line. A histogram of impossible shape makes the decoder
// that reads it panic; that is turned into the error that it should be.
func decode(line []byte, v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("damaged line: %v", r)
		}
	}()
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("damaged line: %w", err)
	}
	return nil
}

// torn describes the end of path if it is not the end of a line, else "".
func torn(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, tail, err := lastLine(f)
	if rest := bytes.TrimSpace(tail); err != nil || len(rest) == 0 || json.Valid(rest) {
		return "", err
	}
	return fmt.Sprintf("%s: the last line is not whole (%d bytes of it) and was left out", filepath.Base(path), len(tail)), nil
}

// lastLine returns what follows f's last newline, the longest line at most, and
// where it begins.
func lastLine(f *os.File) (at int64, text []byte, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, nil, err
	}
	at = info.Size()
	for buf := make([]byte, 4096); at > 0; {
		from := max(0, at-int64(len(buf)))
		part := buf[:at-from]
		if _, err := f.ReadAt(part, from); err != nil && !errors.Is(err, io.EOF) {
			return 0, nil, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			at = from + int64(i) + 1
			break
		}
		at = from
	}
	text = make([]byte, min(info.Size()-at, longest))
	_, err = f.ReadAt(text, at)
	return at, text, err
}

// cutTail removes what follows f's last newline.
func cutTail(f *os.File) error {
	at, text, err := lastLine(f)
	if err != nil || len(text) == 0 {
		return err
	}
	return f.Truncate(at)
}
