package tpc

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// MarkerEvery is the interval at which a copying server reports its progress. Clients wait for at
// least half a minute.
const MarkerEvery = 5 * time.Second

// A Marker is a report on the progress of a copy.
type Marker struct {
	At     time.Time
	Moved  int64    // bytes
	Remote net.Addr // the passive endpoint's address; nil is not known
}

// Write writes the marker as an answer to COPY has it: one stripe of one.
func (m Marker) Write(w io.Writer) error {
	remote := ""
	if m.Remote != nil {
		remote = "RemoteConnections: tcp:" + m.Remote.String() + "\n"
	}
	_, err := fmt.Fprintf(w, "Perf Marker\nTimestamp: %d\nStripe Index: 0\nStripe Bytes Transferred: %d\nTotal Stripe Count: 1\n%sEnd\n",
		m.At.Unix(), m.Moved, remote)
	return err
}

// Success writes the last line of an answer whose copy is there.
func Success(w io.Writer) error {
	_, err := io.WriteString(w, "success: Created\n")
	return err
}

// Failure writes the last line of an answer whose copy is not there, and why, on
// one line.
func Failure(w io.Writer, why string) error {
	if why = FirstLine(strings.Join(strings.Fields(why), " ")); why == "" {
		why = "no reason known"
	}
	_, err := io.WriteString(w, "failure: "+why+"\n")
	return err
}

// PinHeader is the header in which the client of a COPY may send the fingerprint (SHA-256 in hex)
// of the passive endpoint's certificate, if no authority has signed that certificate. Only weir
// supports it; other servers ignore it.
const PinHeader = "Weir-Pin"

// Forwarded reports whether a header of a COPY is meant for the passive endpoint, and returns the
// name that it has there. Headers that make up the request itself are not passed on.
func Forwarded(name string) (string, bool) {
	const prefix = "TransferHeader"
	if len(name) <= len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
		return "", false
	}
	name = http.CanonicalHeaderKey(name[len(prefix):])
	switch name {
	case "Host", "Content-Length", "Content-Range", "Transfer-Encoding", "Connection", "Expect", "Range", "Te", "Trailer", "Upgrade",
		"Keep-Alive", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "Accept-Encoding",
		"Want-Digest", "Want-Repr-Digest", "Digest", "Repr-Digest":
		return "", false
	}
	return name, !strings.HasPrefix(name, "Proxy-")
}

const (
	maxLine    = 8 << 10 // of a response to COPY; longer lines are cut
	maxStripes = 1024
)

// Follow reads the body of a response to COPY until its result, and calls tell with the bytes moved
// so far whenever a marker is complete. It returns nil on success, else an *Error.
func Follow(body io.Reader, tell func(moved int64)) error {
	lines := bufio.NewReaderSize(body, maxLine)
	stripes := map[int]int64{}
	index, moved := 0, int64(-1)
	for {
		line, err := readLine(lines)
		if done, verdict := judge(line); done {
			return verdict
		}
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); strings.ToLower(strings.TrimSpace(name)) {
		case "perf marker":
			index, moved = 0, -1
		case "stripe index":
			if index = -1; len(value) < 5 {
				if n, err := strconv.ParseUint(value, 10, 16); err == nil && n < maxStripes {
					index = int(n)
				}
			}
		case "stripe bytes transferred":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
				moved = n
			}
		case "end":
			if index >= 0 && moved >= 0 {
				stripes[index] = moved
				tell(sum(stripes))
			}
			moved = -1
		}
		if err != nil {
			return cut(err)
		}
	}
}

// cut returns the error of a response that ended before its result.
func cut(err error) *Error {
	if errors.Is(err, io.EOF) {
		return &Error{Kind: Broken, Begun: true, Text: "the answer ended without telling whether the copy succeeded"}
	}
	return &Error{Kind: Broken, Begun: true, Err: err,
		Text: fmt.Sprintf("the connection broke before the result of the copy was reported: %v", err)}
}

func sum(stripes map[int]int64) (all int64) {
	for _, n := range stripes {
		all += n
	}
	return max(all, 0) // an endpoint may count more than the size of the file
}

// readLine returns a line without its end; of a line that is too long, it returns the start. The
// last line may have no end: then the error is not nil.
func readLine(r *bufio.Reader) (string, error) {
	part, err := r.ReadSlice('\n')
	line := string(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return strings.TrimSpace(line), err
}

// judge reports whether a line is a verdict, and which.
func judge(line string) (done bool, verdict error) {
	word, text, _ := strings.Cut(line, ":")
	text = FirstLine(text)
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "success":
		return true, nil
	case "failure", "failed", "aborted":
		return true, failure(text)
	}
	return false, nil
}

// httpStatus matches an HTTP status in a text: three digits that are neither a port nor part of an
// address.
var httpStatus = regexp.MustCompile(`(?:^|[^:.\w-])([45]\d\d)(?:[^\w.:]|[.:](?:\s|$)|$)`)

// failure returns the error for an endpoint's failure message. Endpoints have no codes for
// failures, but most messages contain the passive endpoint's status.
func failure(text string) *Error {
	text = cmp.Or(text, "no reason given")
	e := &Error{Kind: Failed, Begun: true, Text: "the endpoint says that the copy failed: " + text}
	low, _, _ := strings.Cut(strings.ToLower(text), ", local=") // names of files follow, at XRootD
	if m := httpStatus.FindStringSubmatch(low); m != nil {
		e.Remote, _ = strconv.Atoi(m[1])
		e.Kind = kindOfStatus(e.Remote)
	}
	says := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	switch {
	case says("checksum", "digest", "adler"):
		e.Kind = Mismatch
	case says("file exists"):
		e.Kind = Exists
	case says("unable to open") && says("no such file"): // XRootD; a missing folder of a new file is "unable to create"
		e.Kind = Missing
	case says("permission denied"):
		e.Kind = Denied
	case says("no space", "disk quota", "quota exceeded"):
		e.Kind = Full
	case says("cancel", "aborted by client"):
		e.Kind = Broken
	}
	return e
}
