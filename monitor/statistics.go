package monitor

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// statistics has the counters of an XRootD server since its start, as in the response to kXR_query
// stats and in the packets of xrd.report.
type statistics struct {
	name       string // host:port, as the server calls itself
	program    string // xrootd, cmsd
	instance   string
	version    string
	role       string // manager, server, ...; "" unknown
	pid        int
	started    int64            // when the program started, seconds since 1970
	reportedAt int64            // the time of the report, by the server's clock
	values     map[string]int64 // by the id of the statistics and the elements in it, as in link.in
	past       past
}

// counted reports whether the value of a key is stored.
func counted(key []byte) bool {
	switch string(key) {
	case "proc.usr.s", "proc.usr.u", "proc.sys.s", "proc.sys.u", // CPU time
		"link.num", "link.maxn", "link.tot", "link.in", "link.out", "link.tmo", // connections, now and ever, and their bytes
		"sched.jobs", "sched.inq", "sched.maxinq", "sched.threads", "sched.idle", "sched.tlimr", // threads
		"sgen.as",                                                                    // 0: the traffic of open connections is counted
		"xrootd.aio.num", "xrootd.aio.rej", "xrootd.err", "xrootd.rdr", "xrootd.dly", // of the protocol
		"xrootd.lgn.num", "xrootd.lgn.af", "xrootd.lgn.au", "xrootd.lgn.ua": // logins: tried, refused, proven, anonymous
		return true
	}
	return bytes.HasPrefix(key, []byte("xrootd.ops."))
}

// ops returns the kinds of operations that an XRootD server counts: its name of each, and ours.
func ops() [][2]string {
	return [][2]string{
		{"open", "open"}, {"rf", "refresh"}, {"rd", "read"}, {"pr", "preread"}, {"rv", "readv"}, {"wv", "writev"},
		{"wr", "write"}, {"sync", "sync"}, {"getf", "getfile"}, {"putf", "putfile"}, {"misc", "other"},
	}
}

func (s *statistics) user() float64 {
	return float64(s.values["proc.usr.s"]) + float64(s.values["proc.usr.u"])/1e6
}
func (s *statistics) system() float64 {
	return float64(s.values["proc.sys.s"]) + float64(s.values["proc.sys.u"])/1e6
}

// late reports whether bytes, reads and writes are counted only when their connection ends.
func (s *statistics) late() bool {
	open, reported := s.values["sgen.as"]
	return !reported || open != 0
}

// identity distinguishes two runs of a server, and two servers.
type identity struct {
	name    string
	pid     int
	started int64
}

func (s *statistics) identity() identity { return identity{s.name, s.pid, s.started} }

// statisticsLimit is the largest response in bytes. Servers send at most 64 KiB, older versions
// more only if they export hundreds of paths.
const statisticsLimit = 256 << 10

// Errors of input that is not statistics.
var (
	errNoStatistics = errors.New("not statistics of XRootD")
	errAddOn        = errors.New("statistics of an add-on") // in JSON, from version 6 on; nothing in them is needed
)

// parseStatistics reads an XML document as XRootD writes it: not quite XML, for paths stand in it
// as they are. Unknown elements are ignored; from a document that ends early the complete values
// are used.
func parseStatistics(b []byte) (*statistics, error) {
	if len(b) > statisticsLimit {
		return nil, fmt.Errorf("%w: more than %d KiB", errNoStatistics, statisticsLimit>>10)
	}
	b = bytes.TrimSpace(bytes.TrimRight(b, "\x00"))
	if bytes.HasPrefix(b, []byte("{")) {
		return nil, errAddOn
	}
	tag, rest, ok := bytes.Cut(b, []byte(">"))
	if !ok || !bytes.HasPrefix(tag, []byte("<statistics ")) {
		return nil, fmt.Errorf("%w, but start with %s", errNoStatistics, firstWords(b))
	}
	s := &statistics{
		values: map[string]int64{}, name: label(tag, "src"), program: label(tag, "pgm"), instance: label(tag, "ins"), version: label(tag, "ver"),
		pid: int(whole(attribute(tag, "pid"))), started: whole(attribute(tag, "tos")), reportedAt: whole(attribute(tag, "tod")),
	}
	w := walker{take: s.take}
	if err := w.walk(rest); err != nil {
		return nil, err
	}
	if len(s.values) == 0 {
		return nil, fmt.Errorf("%w: no known value in %s", errNoStatistics, firstWords(b))
	}
	return s, nil
}

// attribute returns the value of an attribute in a tag, nil if it is missing.
func attribute(tag []byte, name string) []byte {
	_, rest, ok := bytes.Cut(tag, []byte(" "+name+`="`))
	if !ok {
		return nil
	}
	value, _, ok := bytes.Cut(rest, []byte{'"'})
	if !ok {
		return nil
	}
	return value
}

// label returns an attribute as a name that can be shown: short, and printable.
func label(tag []byte, name string) string {
	value := bytes.Clone(attribute(tag, name))
	value = value[:min(len(value), 256)]
	for i, c := range value {
		if c <= ' ' || c > '~' {
			value[i] = '?'
		}
	}
	return string(value)
}

// whole parses an integer; 0 if b is not an integer. Servers print some counters with a sign
// although they only grow, so that they continue below zero.
func whole(b []byte) int64 {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// take keeps the value of one element. Its key is made of the id of the statistics it stands in and of the elements
// on the way to it.
func (s *statistics) take(key, value []byte) {
	if string(key) == "ofs.role" {
		s.role = string(value[:min(len(value), 32)])
	}
	if !counted(key) {
		return
	}
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil && n <= 1<<62 && n >= -1<<31 {
		s.values[string(key)] = n
	}
}

// A walker visits the elements of a document and passes the text of elements without child elements
// to take, with a key of their names: of <stats id="a"><b><c>1</c></b></stats> the 1 with the key
// "a.b.c". Key and text are good until take returns.
type walker struct {
	take  func(key, text []byte)
	key   []byte
	ends  [deepest]int // lengths of the key before each open element
	depth int
}

// deepest is the largest depth of nested elements; XRootD needs five.
const deepest = 16

// walk goes through b, which starts inside the outermost element. An end tag without an open
// element is ignored.
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

// isOpen reports whether the open element at this depth has the name. The outermost elements are
// all called stats.
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
