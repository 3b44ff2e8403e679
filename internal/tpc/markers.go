package tpc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

const (
	maxLine    = 8 << 10 // of an answer to COPY; what is longer is cut
	maxStripes = 1024
)

// follow reads the body of an answer to COPY until its verdict, and tells the bytes
// moved so far whenever a marker is whole. It returns nil on success, else an *Error.
func follow(body io.Reader, tell func(moved int64)) error {
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

// cut is an answer that ended before its verdict.
func cut(err error) *Error {
	if errors.Is(err, io.EOF) {
		return &Error{Kind: Broken, Begun: true, Text: "the answer ended without telling whether the copy succeeded"}
	}
	return &Error{Kind: Broken, Begun: true, Err: err,
		Text: fmt.Sprintf("the connection broke before it was told whether the copy succeeded: %v", err)}
}

func sum(stripes map[int]int64) (all int64) {
	for _, n := range stripes {
		all += n
	}
	return max(all, 0) // an endpoint that counts beyond what there is
}

// readLine returns a line without its end; of one that is too long, the start. The
// last line may have no end: then there is an error beside it.
func readLine(r *bufio.Reader) (string, error) {
	part, err := r.ReadSlice('\n')
	line := string(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return strings.TrimSpace(line), err
}

// judge tells whether a line is a verdict, and which.
func judge(line string) (done bool, verdict error) {
	word, text, _ := strings.Cut(line, ":")
	text = firstLine(text)
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "success":
		return true, nil
	case "failure", "failed", "aborted":
		return true, failure(text)
	}
	return false, nil
}

// failure makes the error of what an endpoint says went wrong. Endpoints have no
// codes for that, but their words mostly have the passive one's status in them.
func failure(text string) *Error {
	if text == "" {
		text = "no reason given"
	}
	e := &Error{Kind: Failed, Begun: true, Text: "the endpoint says that the copy failed: " + text}
	low := strings.ToLower(text)
	// a number of three digits that is no port and no part of an address
	if m := regexp.MustCompile(`(?:^|[^:.\w-])([45]\d\d)(?:[^\w.:]|[.:](?:\s|$)|$)`).FindStringSubmatch(low); m != nil {
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
	case says("no space", "disk quota", "quota exceeded"):
		e.Kind = Full
	case says("cancel", "aborted by client"):
		e.Kind = Broken
	}
	return e
}
