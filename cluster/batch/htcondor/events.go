package htcondor

import (
	"fmt"
	"strconv"
	"strings"

	"weir/cluster/batch"
)

// evicted is the code of a job that ran and does no more.
const evicted = 4

// change says what an event means for its worker; false if nothing.
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
	case 2, evicted, 7, 24: // not executable, evicted, shadow exception, reconnect failed: it will be tried again
		c.State, c.Reason = batch.Queued, batch.Words(e.Text, nil)
		if reason != "" && e.Code != evicted { // an evicted one has a table of what it used
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

// host is the machine of an event 001, from "SlotName: slot1_2@node7.example.org".
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

// outcome reads "(1) Normal termination (return value 3)" or
// "(0) Abnormal termination (signal 9)".
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

// hold says why HTCondor holds a job, with its code
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
