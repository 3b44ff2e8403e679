package command

import (
	"os"
	"strings"
	"unicode"
)

// An output keeps what a program writes to one of its streams: the first max
// bytes, or the last. It is read by one goroutine until the stream ends.
type output struct {
	r, w *os.File
	max  int
	head bool // keep the first bytes instead of the last
	kept []byte
	done chan struct{}
}

func newOutput(limit int, head bool) (*output, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &output{r: r, w: w, max: limit, head: head, done: make(chan struct{})}, nil
}

// follow starts to read. It ends with the stream, or when the read end gets a
// deadline.
func (o *output) follow() {
	go func() {
		defer close(o.done)
		buf := make([]byte, 4096)
		for {
			n, err := o.r.Read(buf)
			o.keep(buf[:n])
			if err != nil {
				return
			}
		}
	}()
}

func (o *output) keep(b []byte) {
	if o.head {
		o.kept = append(o.kept, b[:min(len(b), o.max-len(o.kept))]...)
		return
	}
	o.kept = append(o.kept, b...)
	if len(o.kept) > 2*o.max {
		o.kept = append(o.kept[:0], o.kept[len(o.kept)-o.max:]...)
	}
}

func (o *output) closeWrite() { _ = o.w.Close() }

func (o *output) close() {
	_ = o.w.Close()
	_ = o.r.Close()
}

// tidy makes the end of a program's words fit for one line of an error:
// control characters and empty lines away, secrets blackened, bounded.
func tidy(text []byte, secrets []string) string {
	const most = 500
	var lines []string
	for l := range strings.Lines(strings.ToValidUTF8(string(text), "?")) {
		l = strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return ' '
		}, l))
		if l != "" {
			lines = append(lines, l)
		}
	}
	lines = lines[max(0, len(lines)-4):]
	s := strings.Join(lines, "; ")
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	if r := []rune(s); len(r) > most {
		s = "…" + string(r[len(r)-most:])
	}
	return s
}
