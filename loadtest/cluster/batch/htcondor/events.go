package htcondor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"weir/loadtest/cluster/batch"
)

// evicted is the code of a job that ran and does not run any more.
const evicted = 4

// change returns the state that an event means for its worker; false if it means no change.
func (e *event) change() (c batch.Change, ok bool) {
	c = batch.Change{Time: e.Time, Worker: e.Proc, Exit: -1, JobID: fmt.Sprintf("%d.%d", e.Cluster, e.Proc)}
	reason := batch.Words(strings.Join(e.Lines, "\n"), nil)
	switch e.Code {
	case 0: // submitted
		c.State = batch.Queued
	case 1: // executing
		c.State, c.Host = batch.Running, e.host()
	case 23: // reconnected
		c.State = batch.Running
	case 2, evicted, 7, 24: // not executable, evicted, shadow exception, reconnect failed: retried
		c.State, c.Reason = batch.Queued, batch.Words(e.Text, nil)
		if reason != "" && e.Code != evicted { // an evicted job has a table of resources
			c.Reason += " " + reason
		}
	case 5: // terminated
		c.State, c.Exit, c.Reason = e.outcome()
	case 9: // aborted
		c.State = batch.Removed
		if len(e.Lines) > 0 {
			c.Reason = batch.Words(e.Lines[0], nil)
		}
	case 10: // suspended
		c.State, c.Reason = batch.Running, "suspended by HTCondor"
	case 11: // unsuspended
		c.State = batch.Running
	case 12: // held
		c.State, c.Reason = batch.Held, e.hold()
	case 13: // released
		c.State, c.Reason = batch.Queued, "released"
	case 22: // disconnected
		c.State, c.Reason = batch.Running, "HTCondor has lost the connection and tries to get it back"
	default:
		return c, false
	}
	return c, true
}

// host returns the machine of an event 001, from "SlotName: slot1_2@node7.example.org".
func (e *event) host() string {
	for _, line := range e.Lines {
		if slot, ok := strings.CutPrefix(line, "SlotName: "); ok {
			_, machine, found := strings.Cut(slot, "@")
			if !found {
				machine = slot
			}
			return batch.Words(machine, nil)
		}
	}
	// Older versions have only the address: <10.0.0.7:9618?addrs=...>
	_, address, _ := strings.Cut(e.Text, "<")
	end := strings.IndexAny(address, ":?>")
	if end < 0 {
		return ""
	}
	return batch.Words(address[:end], nil)
}

// outcome reads "(1) Normal termination (return value 3)" or "(0) Abnormal termination (signal 9)".
func (e *event) outcome() (batch.State, int, string) {
	for _, line := range e.Lines {
		if n, ok := number(line, "(return value "); ok {
			if n == 0 {
				return batch.Ended, 0, ""
			}
			return batch.Failed, n, fmt.Sprintf("exit status %d", n)
		}
		if n, ok := number(line, "(signal "); ok {
			return batch.Failed, -1, fmt.Sprintf("killed by signal %d", n)
		}
	}
	return batch.Failed, -1, "HTCondor's log does not say how it ended"
}

func number(line, after string) (int, bool) {
	_, rest, ok := strings.Cut(line, after)
	digits, _, closed := strings.Cut(rest, ")")
	n, err := strconv.Atoi(digits)
	return n, ok && closed && err == nil
}

// hold returns HTCondor's reason for holding a job, with its code
// (https://htcondor.readthedocs.io/en/latest/codes-other-values/hold-reason-codes.html).
func (e *event) hold() string {
	var words []string
	code := ""
	for _, line := range e.Lines {
		if strings.HasPrefix(line, "Code ") {
			code = " (" + strings.ToLower(strings.Replace(line, " Subcode", ", subcode", 1)) + ")"
		} else {
			words = append(words, line)
		}
	}
	return batch.Words(strings.Join(words, "\n")+code, nil)
}

// An event is an entry of a job's event log
// (https://htcondor.readthedocs.io/en/latest/codes-other-values/job-event-log-codes.html).
type event struct {
	Code          int
	Cluster, Proc int
	Time          time.Time
	Text          string   // the rest of its first line
	Lines         []string // the following lines, without surrounding spaces
}

// A userLog reads the event log as far as it is written.
type userLog struct {
	path   string
	since  time.Time // dates without a year are near this time
	offset int64     // of the first event that was not read
}

// skip skips the events that are already in the log.
func (l *userLog) skip() {
	if info, err := os.Stat(l.path); err == nil {
		l.offset = info.Size()
	}
}

// next returns the events that were written since the last call. An event whose last line is not
// written yet waits.
func (l *userLog) next() ([]event, error) {
	f, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing has happened yet
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []event
	for {
		// Logs of thousands of jobs are read in pieces; an event is far shorter than a piece.
		piece := make([]byte, 1<<20)
		n, err := f.ReadAt(piece, l.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return all, err
		}
		events, used := parse(string(piece[:n]), l.since)
		all = append(all, events...)
		if used == 0 && n == len(piece) {
			used = n // this is no log of events
		}
		l.offset += int64(used)
		if used == 0 || n < len(piece) {
			return all, nil
		}
	}
}

// parse reads the whole events at the beginning of text and returns the length of this part of the
// text. Text that is not an event is left out.
func parse(text string, since time.Time) (all []event, used int) {
	for {
		block, rest, ok := cutEvent(text[used:])
		if !ok {
			return all, used
		}
		used = len(text) - len(rest)
		if e, ok := parseEvent(block, since); ok {
			all = append(all, e)
		}
	}
}

// cutEvent cuts text after its first line that is "...".
func cutEvent(text string) (block, rest string, ok bool) {
	for from := 0; ; {
		line, after, ok := strings.Cut(text[from:], "\n")
		if !ok {
			return "", text, false
		}
		end := len(text) - len(after)
		if strings.TrimRight(line, "\r ") == "..." {
			return text[:from], text[end:], true
		}
		from = end
	}
}

// parseEvent reads "012 (5.1.0) 2026-11-22 12:44:25 Job was held." and the lines that follow.
func parseEvent(block string, since time.Time) (e event, ok bool) {
	lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
	code, rest, _ := strings.Cut(lines[0], " (")
	ids, rest, ok := strings.Cut(rest, ") ")
	parts := strings.Split(ids, ".")
	if !ok || len(parts) != 3 {
		return e, false
	}
	var errs [3]error
	e.Code, errs[0] = strconv.Atoi(strings.TrimSpace(code))
	e.Cluster, errs[1] = strconv.Atoi(parts[0])
	e.Proc, errs[2] = strconv.Atoi(parts[1])
	e.Time, e.Text, ok = eventTime(rest, since)
	if errors.Join(errs[:]...) != nil || !ok || e.Cluster < 0 || e.Proc < 0 {
		return e, false
	}
	for _, line := range lines[1:] {
		e.Lines = append(e.Lines, strings.TrimSpace(line))
	}
	return e, true
}

// eventTime reads the time at the beginning of text, which has one of the forms of
// EVENT_LOG_FORMAT_OPTIONS: with a date in ISO 8601, or only month and day; with or without parts
// of a second; in the time zone of the machine, or with Z in UTC.
func eventTime(text string, since time.Time) (at time.Time, rest string, ok bool) {
	date, rest, _ := strings.Cut(text, " ")
	var clock string
	if day, hour, ok := strings.Cut(date, "T"); ok {
		date, clock = day, hour
	} else {
		clock, rest, _ = strings.Cut(rest, " ")
	}
	zone := time.Local
	if c, ok := strings.CutSuffix(clock, "Z"); ok {
		clock, zone = c, time.UTC
	}
	if at, err := time.ParseInLocation("2006-01-02 15:04:05.999999", date+" "+clock, zone); err == nil {
		return at, rest, true
	}
	at, err := time.ParseInLocation("2006/01/02 15:04:05.999999", strconv.Itoa(since.Year())+"/"+date+" "+clock, zone)
	switch {
	case err != nil:
		return at, "", false
	case at.Sub(since) > 183*24*time.Hour: // around New Year
		at = at.AddDate(-1, 0, 0)
	case since.Sub(at) > 183*24*time.Hour:
		at = at.AddDate(1, 0, 0)
	}
	return at, rest, true
}
