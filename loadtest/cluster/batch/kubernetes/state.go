package kubernetes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/loadtest/cluster/batch"
)

// An object has the fields that are read of a Job or of a pod.
type object struct {
	Kind     string
	Metadata struct {
		Name, UID         string
		CreationTimestamp time.Time
		DeletionTimestamp *time.Time
		Annotations       map[string]string
	}
	Spec struct {
		NodeName             string
		BackoffLimitPerIndex *int
	}
	Status struct {
		Phase, Reason, Message string
		Conditions             []condition
		ContainerStatuses      []struct{ State containerState }
		CompletedIndexes       string // of a Job
		FailedIndexes          string // of a Job
	}
}

type condition struct{ Type, Status, Reason, Message string }

// A containerState is the state of the container of a pod: one of these fields is set.
type containerState struct {
	Waiting    *struct{ Reason, Message string }
	Running    *struct{ StartedAt time.Time }
	Terminated *terminated
}

type terminated struct {
	ExitCode              int
	Reason, Message       string
	StartedAt, FinishedAt time.Time
}

// indexAnnotation has the index of a pod.
const indexAnnotation = "batch.kubernetes.io/job-completion-index"

// parse reads a list of a Job and its pods. owner is nil if there is no Job. Of several pods of an
// index it returns the newest.
func parse(said string) (owner *object, pods map[int]*object, err error) {
	var list struct{ Items []*object }
	if err := json.Unmarshal([]byte(said), &list); err != nil {
		return nil, nil, fmt.Errorf("unexpected output of kubectl get: %w", err)
	}
	pods = map[int]*object{}
	for _, o := range list.Items {
		switch {
		case o == nil:
		case o.Kind == "Job":
			owner = o
		case o.Kind == "Pod":
			n, err := strconv.Atoi(o.Metadata.Annotations[indexAnnotation])
			if err == nil && (pods[n] == nil || o.Metadata.CreationTimestamp.After(pods[n].Metadata.CreationTimestamp)) {
				pods[n] = o
			}
		}
	}
	return owner, pods, nil
}

// has returns the condition of a type that is true, or nil.
func (o *object) has(kind string) *condition {
	i := slices.IndexFunc(o.Status.Conditions, func(c condition) bool { return c.Type == kind && c.Status == "True" })
	if i < 0 {
		return nil
	}
	return &o.Status.Conditions[i]
}

// ending returns Kubernetes' reason for ending a Job as a whole, such as DeadlineExceeded, or nil.
func (o *object) ending() *condition {
	if o == nil {
		return nil
	}
	if is := cmp.Or(o.has("FailureTarget"), o.has("Failed")); is != nil && is.Reason != "FailedIndexes" {
		return is
	}
	return nil
}

// container returns the state of a pod's container.
func (o *object) container() (s containerState) {
	if len(o.Status.ContainerStatuses) > 0 {
		s = o.Status.ContainerStatuses[0].State
	}
	return s
}

// ended returns the end of the container of a pod, or nil.
func (o *object) ended() *terminated { return o.container().Terminated }

// because joins a reason with its explanation.
func because(reason, message string) string {
	message = batch.Words(message, nil)
	switch {
	case reason == "":
		return message
	case message == "":
		return reason
	}
	return reason + ": " + message
}

// change returns the state of a worker from its pod, which may be nil, and from the Job, which may
// be gone.
func (j *job) change(n int, owner, pod *object) batch.Change {
	switch {
	case pod != nil:
		c := pod.change()
		if is := owner.ending(); is != nil && c.State == batch.Failed && pod.Metadata.DeletionTimestamp != nil {
			c.Reason = because(is.Reason, is.Message) + ", " + c.Reason
		}
		return c
	case owner == nil:
		return batch.Change{State: batch.Removed, Reason: "its Job is gone", Exit: -1}
	case includes(owner.Status.CompletedIndexes, n):
		return batch.Change{State: batch.Ended}
	}
	if is := owner.ending(); is != nil {
		return batch.Change{State: batch.Failed, Reason: because(is.Reason, is.Message), Exit: -1}
	}
	if j.seen[n] || includes(owner.Status.FailedIndexes, n) {
		return batch.Change{State: batch.Failed, Reason: "its pod is gone", Exit: -1}
	}
	return batch.Change{State: batch.Queued}
}

// change returns the state of the worker in a pod.
func (o *object) change() batch.Change {
	c := batch.Change{State: batch.Queued, Host: o.Spec.NodeName, Exit: -1}
	s := o.container()
	switch t := s.Terminated; {
	case t != nil && t.ExitCode == 0 && o.Status.Phase != "Failed":
		c.State, c.Exit, c.Time = batch.Ended, 0, t.FinishedAt
	case t != nil:
		c.State, c.Exit, c.Time, c.Reason = batch.Failed, t.ExitCode, t.FinishedAt, o.failure(t)
	case o.Status.Phase == "Failed":
		c.State, c.Reason = batch.Failed, o.failure(nil)
	case s.Running != nil:
		c.State, c.Time = batch.Running, s.Running.StartedAt
	case s.Waiting != nil && !starts(s.Waiting.Reason):
		c.Reason = because(s.Waiting.Reason, s.Waiting.Message)
		if s.Waiting.Reason != "ErrImagePull" { // it is tried again at once
			c.State = batch.Held
		}
	default:
		for _, is := range o.Status.Conditions {
			if is.Type == "PodScheduled" && is.Status == "False" {
				c.Reason = because(is.Reason, is.Message)
			}
		}
	}
	return c
}

// starts reports whether a container that waits for this reason is starting.
func starts(reason string) bool { return reason == "ContainerCreating" || reason == "PodInitializing" }

// failure returns the reason why a pod has failed.
func (o *object) failure(t *terminated) string {
	reason := ""
	if is := o.has("DisruptionTarget"); is != nil { // preempted, or its node was drained or lost
		reason = because(is.Reason, is.Message)
	} else if o.Status.Reason != "" { // such as Evicted, DeadlineExceeded
		reason = because(o.Status.Reason, o.Status.Message)
	}
	if t == nil {
		return reason
	}
	if reason == "" && t.Reason != "Error" {
		reason = because(t.Reason, t.Message) // such as OOMKilled
	}
	return strings.TrimPrefix(reason+", exit status "+strconv.Itoa(t.ExitCode), ", ")
}

// includes reports whether a list of indexes such as 1,3-5 has n.
func includes(list string, n int) bool {
	for part := range strings.SplitSeq(list, ",") {
		from, to, several := strings.Cut(part, "-")
		if !several {
			to = from
		}
		a, err := strconv.Atoi(from)
		b, failed := strconv.Atoi(to)
		if err == nil && failed == nil && a <= n && n <= b {
			return true
		}
	}
	return false
}
