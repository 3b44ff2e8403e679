package results

import (
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

// longest is the maximum length of a line, in bytes. A sample of a machine with a thousand disks
// stays far below it.
const longest = 16 << 20

func tooLong() error { return fmt.Errorf("line is longer than %d bytes", longest) }

// errStop ends a stream whose remaining lines are not used.
var errStop = errors.New("stop")

// lines yields each line of path as a new T that check accepts. A missing file has no lines. A last
// line that is neither terminated nor complete is left out.
func lines[T any](path string, check func(*T) error) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		read := reader(func(line []byte, v *T) error {
			*v = *new(T)
			return decode(line, v)
		}, check)
		err := stream(path, func() lineReader[T] { return read }, nil, func(v *T, _ []byte) error {
			if one := *v; !yield(&one, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}

// decode decodes one line. A histogram of impossible shape makes its decoder panic; the panic is
// converted to an error.
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

// torn returns a description of the end of path if it is not the end of a line, else "".
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

// lastLine returns the text after f's last newline, up to the length of the longest line, and its
// position.
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

// cutTail removes the text after f's last newline.
func cutTail(f *os.File) error {
	at, text, err := lastLine(f)
	if err != nil || len(text) == 0 {
		return err
	}
	return f.Truncate(at)
}
