package monitor

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// statistics is what an XRootD server has counted since it was started, as
// the answer to kXR_query stats and the packets of xrd.report tell it.
type statistics struct {
	name     string // host:port, as the server calls itself
	program  string // xrootd, cmsd
	instance string
	version  string
	role     string // manager, server, ...; "" unknown
	pid      int
	started  int64 // when the program started, seconds since 1970
	told     int64 // when this was told, by the server's clock

	unsettled int64 // 0: with what connections did that are still open
	known     int   // values that were understood

	userSeconds, userMicros, systemSeconds, systemMicros int64

	links, linksMost, linksAll, received, sent, timeouts int64
	threads, idle, queue, queueMost, jobs, limited       int64
	logins, authenticated, anonymous, refused            int64
	redirects, errors, waits, async, asyncRefused        int64
	segments, writeSegments                              int64
	ops                                                  [opKinds]int64
}

// opKinds is how many kinds of operations an XRootD server counts.
const opKinds = 11

// opNames returns our names of these kinds, opTags the server's.
func opNames() [opKinds]string {
	return [...]string{"open", "refresh", "read", "preread", "readv", "writev", "write", "sync", "getfile", "putfile", "other"}
}

func opTags() [opKinds]string {
	return [...]string{"open", "rf", "rd", "pr", "rv", "wv", "wr", "sync", "getf", "putf", "misc"}
}

func (s *statistics) user() float64   { return float64(s.userSeconds) + float64(s.userMicros)/1e6 }
func (s *statistics) system() float64 { return float64(s.systemSeconds) + float64(s.systemMicros)/1e6 }

// identity tells two runs of a server, and two servers, from each other.
type identity struct {
	name    string
	pid     int
	started int64
}

func (s *statistics) identity() identity { return identity{s.name, s.pid, s.started} }

// statisticsLimit bounds an answer in bytes. Servers fill at most 64 KiB, the
// older ones more only if they export hundreds of paths.
const statisticsLimit = 256 << 10

// Errors of what is no statistics.
var (
	errNoStatistics = errors.New("these are no statistics of XRootD")
	errAddOn        = errors.New("statistics of an add-on") // in JSON, from version 6 on; nothing in them is needed
)

// parseStatistics reads an XML document as XRootD writes it: not quite XML,
// for paths stand in it as they are. What is not known is passed over; a
// document that ends early gives what was whole.
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
		unsettled: 1, // unless it is told
		name:      label(tag, "src"), program: label(tag, "pgm"), instance: label(tag, "ins"), version: label(tag, "ver"),
		pid: int(whole(attribute(tag, "pid"))), started: whole(attribute(tag, "tos")), told: whole(attribute(tag, "tod")),
	}
	w := walker{take: s.take}
	if err := w.walk(rest); err != nil {
		return nil, err
	}
	if s.known == 0 {
		return nil, fmt.Errorf("%w: there is no figure in %s", errNoStatistics, firstWords(b))
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

// whole reads a whole number; 0 if it is none. Servers print some counters
// with a sign although they only grow, so that they go on below zero.
func whole(b []byte) int64 {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// take keeps the value of one element. Its key is made of the id of the
// statistics it stands in and of the elements on the way to it.
func (s *statistics) take(key, value []byte) {
	if string(key) == "ofs.role" {
		s.role = string(value[:min(len(value), 32)])
		return
	}
	p := s.process(key)
	if p == nil {
		p = s.protocol(key)
	}
	if p == nil {
		return
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n > 1<<62 || n < -1<<31 {
		return
	}
	*p = n
	s.known++
}

// process returns the place of a figure of the process and its connections.
func (s *statistics) process(key []byte) *int64 {
	switch string(key) {
	case "proc.usr.s":
		return &s.userSeconds
	case "proc.usr.u":
		return &s.userMicros
	case "proc.sys.s":
		return &s.systemSeconds
	case "proc.sys.u":
		return &s.systemMicros
	case "link.num":
		return &s.links
	case "link.maxn":
		return &s.linksMost
	case "link.tot":
		return &s.linksAll
	case "link.in":
		return &s.received
	case "link.out":
		return &s.sent
	case "link.tmo":
		return &s.timeouts
	case "sched.jobs":
		return &s.jobs
	case "sched.inq":
		return &s.queue
	case "sched.maxinq":
		return &s.queueMost
	case "sched.threads":
		return &s.threads
	case "sched.idle":
		return &s.idle
	case "sched.tlimr":
		return &s.limited
	case "sgen.as":
		return &s.unsettled
	}
	return nil
}

// protocol returns the place of a figure of the protocol.
func (s *statistics) protocol(key []byte) *int64 {
	switch string(key) {
	case "xrootd.aio.num":
		return &s.async
	case "xrootd.aio.rej":
		return &s.asyncRefused
	case "xrootd.err":
		return &s.errors
	case "xrootd.rdr":
		return &s.redirects
	case "xrootd.dly":
		return &s.waits
	case "xrootd.lgn.num":
		return &s.logins
	case "xrootd.lgn.af":
		return &s.refused
	case "xrootd.lgn.au":
		return &s.authenticated
	case "xrootd.lgn.ua":
		return &s.anonymous
	case "xrootd.ops.rs":
		return &s.segments
	case "xrootd.ops.ws":
		return &s.writeSegments
	}
	if name, ok := bytes.CutPrefix(key, []byte("xrootd.ops.")); ok {
		for i, tag := range opTags() {
			if string(name) == tag {
				return &s.ops[i]
			}
		}
	}
	return nil
}
