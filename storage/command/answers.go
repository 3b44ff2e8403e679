package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"weir/storage"
)

func notUnderstood(what string, text []byte) error {
	return fmt.Errorf("%w: no %s in %q", storage.ErrProtocol, what, tidy(text, nil))
}

// lastNumber returns the number at the end of the output.
func lastNumber(stdout []byte) (int64, bool) {
	fields := bytes.Fields(stdout)
	if len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(fields[len(fields)-1]), 10, 64)
	return n, err == nil && n >= 0
}

// lastWord returns the last word of the output if it is a checksum in hexadecimal.
func lastWord(stdout []byte) (string, bool) {
	fields := bytes.Fields(stdout)
	if len(fields) == 0 {
		return "", false
	}
	word := strings.ToLower(string(fields[len(fields)-1]))
	ok := len(word) >= 8 && strings.Trim(word, "0123456789abcdef") == ""
	return word, ok
}

// sizePattern matches the size in the output of gfal-stat and of xrdfs stat.
var sizePattern = regexp.MustCompile(`(?m)^(?:  Size: (\d+)\s|Size: +(\d+)$)`)

// statSize parses the output of gfal-stat and of xrdfs stat.
func statSize(stdout []byte) (int64, error) {
	if found := sizePattern.FindSubmatch(stdout); found != nil {
		if n, err := strconv.ParseInt(string(found[1])+string(found[2]), 10, 64); err == nil {
			return n, nil
		}
	}
	return -1, notUnderstood("size", stdout)
}

// headerSize returns the Content-Length of the last response, -1 if it has no such header.
func headerSize(stdout []byte) (int64, error) {
	text := strings.TrimSpace(strings.ReplaceAll(string(stdout), "\r\n", "\n"))
	if i := strings.LastIndex(text, "\n\n"); i >= 0 {
		text = text[i+2:] // after redirects
	}
	size := int64(-1)
	for l := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(l), ":")
		if strings.EqualFold(name, "content-length") {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err != nil || n < 0 {
				return -1, notUnderstood("size", []byte(l))
			}
			size = n
		}
	}
	return size, nil
}

type entries = []storage.Entry

// Lines of listings. Their groups are "d" for a folder, size, and name.
var (
	gfalLine  = regexp.MustCompile(`^(.)\S{9}\s+\d+\s+\S+\s+\S+\s+(\d+)\s+\S+\s+\S+\s+\S+ (.*?)\t.*$`)
	xrdfsLine = regexp.MustCompile(`^(.)\S{9}\s+\S+\s+\S+\s+(\d+)\s+\S+ \S+ (/.*)$`)
)

// table parses listings with one entry per line, all of which must match.
func table(line *regexp.Regexp, stdout []byte, name func(string) string) (entries, error) {
	list := entries{}
	for l := range bytes.Lines(stdout) {
		l = bytes.TrimSuffix(l, []byte("\n"))
		if len(bytes.TrimSpace(l)) == 0 {
			continue
		}
		found := line.FindSubmatch(l)
		if found == nil {
			return nil, notUnderstood("listing", l)
		}
		size, err := strconv.ParseInt(string(found[2]), 10, 64)
		if err != nil {
			return nil, notUnderstood("listing", l)
		}
		e := storage.Entry{Name: name(string(found[3])), Size: size, Dir: string(found[1]) == "d"}
		if e.Dir {
			e.Size = -1
		}
		switch e.Name {
		case "":
			return nil, fmt.Errorf("listing: %w", syscall.ENOTDIR) // the file itself was listed
		case ".", "..":
		default:
			list = append(list, e)
		}
	}
	return list, nil
}

// gfalSize matches the first line of gfal-copy's output.
var gfalSize = regexp.MustCompile(`(?m)^Copying (\d{1,18}) bytes `)

// gfalCopying returns the size that gfal-copy found before it copied.
func gfalCopying(stdout []byte) (int64, bool) {
	m := gfalSize.FindSubmatch(stdout)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	return n, err == nil
}

// gfalList parses the output of gfal-ls -l, which of a file is its URL.
func gfalList(stdout []byte, _, _ string) (entries, error) {
	return table(gfalLine, stdout, func(name string) string {
		if strings.Contains(name, "://") {
			return ""
		}
		return name
	})
}

// xrdfsList parses the output of xrdfs ls -l, which has full paths.
func xrdfsList(stdout []byte, at, _ string) (entries, error) {
	at = "/" + strings.Trim(at, "/")
	return table(xrdfsLine, stdout, func(path string) string {
		path = "/" + strings.TrimLeft(path, "/")
		if at == "/" {
			return path[1:]
		}
		name, ok := strings.CutPrefix(path, at+"/")
		if !ok {
			return "" // of a file: itself
		}
		return name
	})
}

// globusList parses the output of globus-url-copy -list: the URL, then indented names, folders with a slash, some
// of them behind the URL.
func globusList(stdout []byte, _, url string) (entries, error) {
	list := entries{}
	first := true
	for l := range strings.Lines(string(stdout)) {
		if first {
			first = false
			continue
		}
		name, ok := strings.CutPrefix(strings.TrimRight(l, "\n"), "    ")
		if !ok {
			if strings.TrimSpace(l) == "" {
				continue
			}
			return nil, notUnderstood("listing", []byte(l))
		}
		name = strings.TrimPrefix(strings.TrimSuffix(name, " "), url+"/")
		name, dir := strings.CutSuffix(name, "/")
		if name != "" && name != "." && name != ".." {
			list = append(list, storage.Entry{Name: name, Size: -1, Dir: dir})
		}
	}
	return list, nil
}

// byWords returns the sentinel error for a program's message in the words of the C library, HTTP,
// FTP, XRootD or Globus, nil if the message is unknown.
func byWords(text string) error {
	text = strings.ToLower(text)
	for _, w := range []struct {
		sentinel error
		words    []string
	}{
		{storage.ErrChecksum, []string{"checksum mismatch", "checksum does not match", "checksums do not match"}},
		{fs.ErrNotExist, []string{"no such file", "file not found", "path_not_found", "does not exist on the server"}},
		{fs.ErrExist, []string{"file exists", "path_exists", "already exists"}},
		{syscall.ECONNREFUSED, []string{"connection refused", "failed to connect", "couldn't connect", "could not connect",
			"[fatal] connection error", "no route to host", "network is unreachable", "could not resolve", "name or service not known",
			"name resolution", "invalid address"}},
		{fs.ErrPermission, []string{"permission denied", "operation not permitted", "not authorized", "unauthorized", "authentication failed",
			"auth failed", "no protocols left to try", "530 login incorrect", "access denied", "forbidden", "the proxy credential"}},
		{storage.ErrBusy, []string{"too many connections", "421 service busy", "server is busy", "overloaded", "too many requests",
			"service unavailable"}},
		{context.DeadlineExceeded, []string{"timed out", "timeout", "operation expired"}},
		{syscall.ECONNRESET, []string{"connection reset", "broken pipe", "end-of-file was reached", "end of file occurred", "empty reply",
			"closed by server", "socket disconnected", "socket error", "stream disconnect", "socket operation on non-socket", "connection closed"}},
	} {
		for _, word := range w.words {
			if strings.Contains(text, word) {
				return w.sentinel
			}
		}
	}
	return nil
}

// Numbers in the messages of programs.
var (
	curlStatus = regexp.MustCompile(`returned error: (\d+)`)
	gfalStatus = regexp.MustCompile(`HTTP (\d{3})`)
	gfalErrno  = regexp.MustCompile(`error: (\d+) \(`)
	xrdCode    = regexp.MustCompile(`\[(3\d{3})\]`)
)

// number returns the number that a pattern captures, -1 if the pattern does not match.
func number(pattern *regexp.Regexp, text string) int {
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return -1
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return -1
	}
	return n
}

// curlFailure returns the sentinel error for an exit status of curl.
func curlFailure(status int, text string) error {
	if status == 22 {
		return storage.HTTPError(number(curlStatus, text))
	}
	return map[int]error{
		5: syscall.ECONNREFUSED, 6: syscall.ECONNREFUSED, 7: syscall.ECONNREFUSED, 9: fs.ErrPermission, 67: fs.ErrPermission,
		18: storage.ErrShort, 33: storage.ErrShort, 28: context.DeadlineExceeded, 78: fs.ErrNotExist, 8: storage.ErrProtocol,
		1: errors.ErrUnsupported, 4: errors.ErrUnsupported,
		16: syscall.ECONNRESET, 52: syscall.ECONNRESET, 55: syscall.ECONNRESET, 56: syscall.ECONNRESET, 92: syscall.ECONNRESET,
	}[status]
}

// gfalFailure returns the sentinel error for a failure of gfal2. Its exit status is an errno; if an
// HTTP status caused it, the message has that status.
func gfalFailure(status int, text string) error {
	if err := storage.HTTPError(number(gfalStatus, text)); err != nil {
		return err
	}
	if status == 2 && strings.Contains(text, "\tMISSING") {
		return fs.ErrNotExist
	}
	switch err := syscall.Errno(number(gfalErrno, text)); err {
	case syscall.ENOENT, syscall.EPERM, syscall.EACCES, syscall.EEXIST, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ETIMEDOUT,
		syscall.EISDIR, syscall.ENOTEMPTY, syscall.EHOSTUNREACH:
		return err
	case syscall.ENOSYS, syscall.EPROTONOSUPPORT, syscall.EOPNOTSUPP:
		return errors.ErrUnsupported
	}
	return nil
}

// xrdFailure returns the sentinel error for an error code of the XRootD protocol, which clients print in brackets.
func xrdFailure(_ int, text string) error {
	_, err := storage.XRootDError(number(xrdCode, text))
	return err
}
