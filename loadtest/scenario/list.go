package scenario

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"weir/internal/document"
	"weir/internal/redact"
	"weir/internal/unit"
	"weir/loadtest/workload"
)

// A List is the content of a list file.
type List struct {
	Files    []workload.File
	Repeated int // lines left out because their path was there before
}

// Bounds of a list file.
const (
	longestLine = 16 << 10
	mostLines   = 20_000_000
)

// ReadList reads the list file at path: one file a line, its path below
// target (a leading slash, and parts that are a dot, as find writes them,
// change nothing) or its full URL, and optionally, after a space or tab, its
// size in bytes or with a unit. Blank lines and lines that start with # are
// skipped, repeated paths are read once. Its error is of type document.Mistakes if
// lines are wrong.
func ReadList(path, target string) (List, error) {
	f, err := os.Open(path)
	if err != nil {
		return List{}, fmt.Errorf("files.list: %w", err)
	}
	defer f.Close()
	l := &lister{path: path, target: withoutQuery(target), seen: map[string]int64{}}
	if err := l.read(f); err != nil {
		return List{}, err
	}
	if len(l.list.Files) == 0 {
		return List{}, fmt.Errorf("files.list: %s contains no path; write one path a line", path)
	}
	return l.list, nil
}

// withoutQuery returns the prefix of the URLs of files below target, with a slash at its end.
func withoutQuery(target string) string {
	target, _, _ = strings.Cut(target, "?")
	return strings.TrimSuffix(target, "/") + "/"
}

type lister struct {
	path, target string
	list         List
	seen         map[string]int64 // size by path
	mistakes     document.Mistakes
}

func (l *lister) read(r io.Reader) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 4<<10), longestLine)
	number := 0
	for scanner.Scan() {
		number++
		text := scanner.Text()
		if number == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		if err := l.line(strings.TrimSpace(text)); err != nil {
			l.mistakes = append(l.mistakes, &document.Mistake{File: l.path, Line: number, Column: 1, Text: err.Error()})
		}
		if len(l.mistakes) > document.MaxMistakes || number > mostLines {
			break
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		l.mistakes = append(l.mistakes, &document.Mistake{File: l.path, Line: number + 1, Column: 1,
			Text: fmt.Sprintf("longer than %d bytes: write one path a line", longestLine)})
	} else if err != nil {
		return fmt.Errorf("files.list: %w", err)
	}
	if number > mostLines {
		l.mistakes = append(l.mistakes, &document.Mistake{File: l.path, Line: number, Column: 1,
			Text: fmt.Sprintf("more than %d lines", mostLines)})
	}
	return l.mistakes.Err()
}

func (l *lister) line(text string) error {
	if text == "" || text[0] == '#' {
		return nil
	}
	name, size := text, int64(-1)
	if i := strings.LastIndexAny(text, " \t"); i > 0 {
		if n, ok := listSize(text[i+1:]); ok {
			name, size = strings.TrimSpace(text[:i]), n
		}
	}
	name, err := l.below(name)
	if err != nil {
		return err
	}
	if known, twice := l.seen[name]; twice {
		if size >= 0 && known >= 0 && size != known {
			return fmt.Errorf("%s has %d bytes here and %d above: a path has one size", document.Quote(name), size, known)
		}
		l.list.Repeated++
		return nil
	}
	l.seen[name] = size
	l.list.Files = append(l.list.Files, workload.File{Path: name, Size: size})
	return nil
}

func listSize(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return n, true
	}
	n, err := unit.ParseSize(text)
	return int64(n), err == nil
}

// withoutDots removes the parts of a path that are a dot: find . writes ./name.
func withoutDots(name string) string {
	for strings.HasPrefix(name, "./") {
		name = strings.TrimLeft(name[2:], "/")
	}
	for strings.Contains(name, "/./") {
		name = strings.ReplaceAll(name, "/./", "/")
	}
	return name
}

// below returns name as a path below the target.
func (l *lister) below(name string) (string, error) {
	if strings.Contains(name, "://") {
		rest, ok := strings.CutPrefix(name, l.target)
		if !ok {
			return "", fmt.Errorf("%s is not below the target %s", document.Quote(redact.Text(name)), redact.URL(l.target))
		}
		if strings.ContainsAny(rest, "?#") {
			return "", fmt.Errorf("%s has a query or a fragment: what all files share stands in the target; "+
				"? and # in names are written %%3F and %%23", document.Quote(redact.Text(name)))
		}
		plain, err := url.PathUnescape(rest)
		if err != nil {
			return "", fmt.Errorf("%s is not a URL: %w", document.Quote(name), err)
		}
		name = plain
	}
	if name == "" || name == "." || strings.HasSuffix(name, "/") || strings.HasSuffix(name, "/.") {
		return "", fmt.Errorf("%s is a folder: name a file", document.Quote(name))
	}
	name = withoutDots(strings.TrimLeft(name, "/"))
	if strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%s is not a path: this looks like no text file", document.Quote(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("%s leaves the target: dots like these have no place in a path", document.Quote(name))
		}
	}
	return name, nil
}
