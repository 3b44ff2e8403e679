package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/loadtest/cluster/batch"
)

// A record is the output of scontrol for a task of an array, or for several tasks that are queued.
type record struct {
	Job    string // the task's own number
	Array  string // number of the array
	Tasks  []int  // places in the array
	State  string
	Reason string
	Node   string
	Exit   int
	Signal int
	Start  time.Time // zero if it has not started
	End    time.Time
}

// records reads the output of scontrol --oneliner show job.
func records(said string, most int) (all []record) {
	for line := range strings.Lines(said) {
		r := record{
			Job: value(line, "JobId"), Array: value(line, "ArrayJobId"), Tasks: places(value(line, "ArrayTaskId"), most),
			State: value(line, "JobState"), Reason: between(line, " Reason=", " Dependency="), Node: value(line, "BatchHost"),
			Start: clock(value(line, "StartTime")), End: clock(value(line, "EndTime")),
		}
		code, signal, _ := strings.Cut(value(line, "ExitCode"), ":")
		r.Exit, _ = strconv.Atoi(code)
		r.Signal, _ = strconv.Atoi(signal)
		if isNumber(r.Job) && len(r.Tasks) > 0 && r.State != "" {
			all = append(all, r)
		}
	}
	return all
}

// value returns the word after key=, or "" if there is no value. Text of users comes after the keys
// that are read, except for the job's name, which weir sets.
func value(line, key string) string {
	v := between(" "+line, " "+key+"=", " ")
	if v == "(null)" || v == "Unknown" || v == "N/A" || v == "None" {
		return ""
	}
	return v
}

func between(line, from, to string) string {
	_, rest, _ := strings.Cut(line, from)
	v, _, _ := strings.Cut(rest, to)
	return strings.TrimSpace(v)
}

func clock(s string) time.Time {
	at, err := time.ParseInLocation("2006-01-02T15:04:05", s, time.Local)
	if err != nil {
		return time.Time{}
	}
	return at
}

// places reads places in an array, as in 3, 1-5,9 or 0-8:2%4, less than most.
func places(s string, most int) (all []int) {
	s, _, _ = strings.Cut(s, "%")
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		to, by, _ := strings.Cut(to, ":")
		a, err := strconv.Atoi(from)
		if err != nil || a < 0 || a >= most {
			continue
		}
		b, step := a, 1
		if isRange {
			if b, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		if by != "" {
			if step, err = strconv.Atoi(by); err != nil || step < 1 {
				continue
			}
		}
		for ; a <= b && a < most && len(all) < most; a += step {
			all = append(all, a)
		}
	}
	return all
}

// change returns the state that a record means for each of its workers; the caller sets the worker
// (https://slurm.schedmd.com/job_state_codes.html).
func (r *record) change(now time.Time) batch.Change {
	c := batch.Change{Time: now, Exit: -1, Host: batch.Words(r.Node, nil), Reason: batch.Words(r.Reason, nil)}
	if c.Reason == "None" {
		c.Reason = ""
	}
	if !r.End.IsZero() && r.End.Before(now) {
		c.Time = r.End // of a task that runs, End is its time limit
	}
	switch state := strings.TrimSuffix(r.State, "+"); state {
	case "PENDING", "REQUEUED", "REQUEUE_FED", "CONFIGURING", "RESV_DEL_HOLD", "REQUEUE_HOLD", "SPECIAL_EXIT":
		c.State, c.Host = batch.Queued, ""
		if strings.HasSuffix(state, "HOLD") || state == "SPECIAL_EXIT" || isHold(r.Reason) {
			c.State = batch.Held
		}
	case "RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING":
		c.State, c.Reason = batch.Running, ""
		if !r.Start.IsZero() {
			c.Time = r.Start
		}
	case "SUSPENDED", "STOPPED", "RESIZING":
		c.State, c.Reason = batch.Running, strings.ToLower(state)+" by Slurm"
	case "COMPLETED":
		c.State, c.Reason, c.Exit = batch.Ended, "", 0
	case "CANCELLED":
		c.State, c.Reason = batch.Removed, ""
	default: // FAILED, TIMEOUT, NODE_FAIL, OUT_OF_MEMORY, BOOT_FAIL, DEADLINE, PREEMPTED
		c.State = batch.Failed
		words := []string{strings.ToLower(strings.ReplaceAll(batch.Words(state, nil), "_", " "))}
		if r.Signal > 0 {
			words = append(words, fmt.Sprintf("killed by signal %d", r.Signal))
		} else if r.Exit != 0 {
			c.Exit = r.Exit
			words = append(words, fmt.Sprintf("exit status %d", r.Exit))
		}
		if c.Reason != "" && c.Reason != "NonZeroExitCode" {
			words = append(words, c.Reason)
		}
		c.Reason = strings.Join(words, ", ")
	}
	return c
}

// isHold reports whether Slurm will not start a job that waits for this reason without intervention
// (https://slurm.schedmd.com/job_reason_codes.html).
func isHold(reason string) bool {
	return strings.Contains(strings.ToLower(reason), "held") ||
		slices.Contains([]string{"BadConstraints", "PartitionInactive", "PartitionDown", "PartitionNodeLimit", "PartitionTimeLimit",
			"InvalidAccount", "InvalidQOS", "DependencyNeverSatisfied"}, reason)
}
