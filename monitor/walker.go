package monitor

import (
	"bytes"
	"fmt"
)

// A walker goes through the elements of a document and hands the text of
// those that hold nothing else to take, with a key of their names: of
// <stats id="a"><b><c>1</c></b></stats> the 1 with the key "a.b.c". Key and
// text are good until take returns.
type walker struct {
	take  func(key, text []byte)
	key   []byte
	ends  [deepest]int // lengths of the key before each open element
	depth int
}

// deepest is how many elements may be in each other; XRootD needs five.
const deepest = 16

// walk goes through b, which starts inside the outermost element. An end that
// belongs to none of the open elements is passed over.
func (w *walker) walk(b []byte) error {
	leaf := false
	for {
		at := bytes.IndexByte(b, '<')
		if at < 0 {
			return nil
		}
		text := b[:at]
		tag, rest, ok := bytes.Cut(b[at+1:], []byte{'>'})
		if !ok || string(tag) == "/statistics" {
			return nil
		}
		b = rest
		switch {
		case len(tag) == 0 || tag[0] == '!' || tag[0] == '?' || tag[len(tag)-1] == '/':
			continue
		case tag[0] != '/':
			if err := w.open(tag); err != nil {
				return err
			}
			leaf = true
			continue
		}
		if leaf && w.isOpen(w.depth-1, tag[1:]) {
			w.take(w.key, bytes.TrimSpace(text))
		}
		leaf = false
		w.close(tag[1:])
	}
}

func (w *walker) open(tag []byte) error {
	if w.depth == deepest {
		return fmt.Errorf("%w: more than %d elements are in each other", errNoStatistics, deepest)
	}
	name, _ := cutField(tag)
	if id := attribute(tag, "id"); w.depth == 0 && id != nil {
		name = id
	}
	w.ends[w.depth] = len(w.key)
	if w.depth > 0 {
		w.key = append(w.key, '.')
	}
	w.key = append(w.key, name...)
	w.depth++
	return nil
}

// isOpen tells whether the open element at this depth has the name. The
// outermost ones are all called stats.
func (w *walker) isOpen(depth int, name []byte) bool {
	if depth < 0 {
		return false
	}
	if depth == 0 {
		return string(name) == "stats"
	}
	end := len(w.key)
	if depth+1 < w.depth {
		end = w.ends[depth+1]
	}
	return bytes.Equal(w.key[w.ends[depth]+1:end], name)
}

// close leaves the innermost element with the name, and all that is in it.
func (w *walker) close(name []byte) {
	for d := w.depth - 1; d >= 0; d-- {
		if w.isOpen(d, name) {
			w.key, w.depth = w.key[:w.ends[d]], d
			return
		}
	}
}
