package stomp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Limits of the frames that a broker sends.
const (
	longestLine = 16 << 10 // also of a body without content-length
	longestBody = 1 << 20
	mostHeaders = 100
)

// A frame is a message of the STOMP protocol from a broker.
type frame struct {
	command string
	header  map[string]string // of repeated headers the first
	body    []byte
}

// refusal returns the error that an ERROR frame reports.
func (f *frame) refusal() error {
	text := strings.TrimSpace(f.header["message"] + ": " + strings.TrimSpace(string(f.body)))
	return fmt.Errorf("the broker refuses: %.500q", strings.Trim(text, ": "))
}

// readFrame reads the next frame. Line breaks before it are heart-beats.
func readFrame(in *bufio.Reader) (f frame, err error) {
	for f.command == "" {
		if f.command, err = readLine(in); err != nil {
			return f, err
		}
	}
	f.header = map[string]string{}
	plain := f.command == "CONNECTED" // its headers are not escaped
	for n := 0; ; n++ {
		line, err := readLine(in)
		if err != nil {
			return f, noEnd(err)
		}
		if line == "" {
			break
		}
		name, value, found := strings.Cut(line, ":")
		if !found || n >= mostHeaders {
			return f, fmt.Errorf("header %d of a frame %.40q: no colon, or too many headers", n+1, f.command)
		}
		if !plain {
			if name, err = unescape(name); err == nil {
				value, err = unescape(value)
			}
			if err != nil {
				return f, err
			}
		}
		if _, known := f.header[name]; !known {
			f.header[name] = value
		}
	}
	f.body, err = readBody(in, f.header)
	return f, noEnd(err)
}

// readLine reads a line, without its end.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", fmt.Errorf("a line is longer than %d bytes", in.Size())
	case err != nil && len(line) > 0:
		return "", noEnd(err)
	case err != nil:
		return "", err
	}
	return strings.TrimSuffix(string(line[:len(line)-1]), "\r"), nil
}

// readBody reads a body and the NUL at its end.
func readBody(in *bufio.Reader, header map[string]string) ([]byte, error) {
	length, has := header["content-length"]
	if !has {
		body, err := in.ReadSlice(0)
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, fmt.Errorf("a body without content-length is longer than %d bytes", in.Size())
		}
		return append([]byte{}, body[:max(0, len(body)-1)]...), err
	}
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > longestBody {
		return nil, fmt.Errorf("content-length %.40q: a number up to %d was expected", length, longestBody)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(in, body); err != nil {
		return nil, err
	}
	if end, err := in.ReadByte(); err != nil {
		return nil, err
	} else if end != 0 {
		return nil, errors.New("no NUL after a body")
	}
	return body, nil
}

// noEnd returns err, but an end of the stream within a frame is unexpected.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func unescape(text string) (string, error) {
	if !strings.Contains(text, `\`) {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			continue
		}
		i++
		if i == len(text) {
			return "", errors.New("a header ends with a backslash")
		}
		c, known := map[byte]byte{'r': '\r', 'n': '\n', 'c': ':', '\\': '\\'}[text[i]]
		if !known {
			return "", fmt.Errorf("unknown escape \\%c in a header", text[i])
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}
