// Package batch starts the workers of a run on other machines, through what is there: HTCondor, Slurm, ssh, or
// processes of this machine. It submits, follows, brings outputs back and removes; what a worker does it does not
// know.
//
// A System hands out Jobs: a submission of so many equal workers, numbered from 0. Each worker runs in a private,
// empty working folder with the Files of its Work, and finds its number in the variable WEIR_WORKER, what the system
// calls it in WEIR_JOB. What Submit leaves in the folder of the Work is enough to Find the submission again after a
// kill. Nothing stays anywhere after the end, and nothing that a submission did not make is ever removed.
package batch

import (
	"context"
	"time"
)

// A System is a place where workers can be started.
type System interface {
	Name() string // as people write it: HTCondor, Slurm, ssh
	// Submit starts w.Count workers, now or when there is room. The Job must be followed to its end, or removed;
	// where the system does not carry files, workers start only while it is followed. ctx is for submitting only.
	Submit(ctx context.Context, w Work) (Job, error)
	// Find returns the submission that a killed run has made from the folder dir (Work.Dir). The error is
	// fs.ErrNotExist if there was none.
	Find(ctx context.Context, dir string) (Job, error)
}

// A Work is what is submitted: Count times the same program.
type Work struct {
	Name    string   // of the run, for those who look at queues
	Dir     string   // folder for what is kept: the submit description, logs, out/N/ with the outputs of worker N; made if missing
	Program string   // path of an executable; travels
	Args    []string // its arguments
	// paths of files that travel beside it, to the worker's working folder; secrets may be among them, and are never copied into
	// Dir
	Files   []string
	Count   int
	Options []string // lines for the submission, in the system's own words
	Hosts   []string // machines, where the system does not choose them itself; workers are dealt in turn
}

// A Job is a submission.
type Job interface {
	// Follow reports on each change from the first on, one after the other, and returns nil when no worker is left and
	// all outputs are in Dir. When ctx ends it returns ctx's error, and the workers go on.
	Follow(ctx context.Context, tell func(Change)) error
	// Remove ends the workers that are left and clears away what the submission has left anywhere but in Dir. It may
	// be called while Follow runs, which then tells it and returns, and more than once.
	Remove(ctx context.Context) error
	Counts() Counts // now; for many callers at once
}

// A Change is news of one worker.
type Change struct {
	Time   time.Time // by the clock of whoever saw it
	Worker int
	State  State
	Host   string // where it runs or ran, "" if not known
	Reason string // why it is in this state, in the system's own words; "" if there is nothing to say
	Exit   int    // exit status of one that has ended or failed; -1 if there is none
	JobID  string // what the system calls it: 12.3, 45_6, node7
}

// A State is where a worker is in its life.
type State string

// A worker is queued, may be held, runs, and is over: it ended by itself, was removed, or failed, which is any end
// but exit status 0.
const (
	Queued  State = "queued"
	Running State = "running"
	Held    State = "held" // by the system: it will not run unless somebody helps
	Ended   State = "ended"
	Removed State = "removed"
	Failed  State = "failed"
)

// Over reports whether no more is to come of a worker.
func (s State) Over() bool { return s == Ended || s == Removed || s == Failed }

// Counts say how many workers are in which state.
type Counts struct {
	Queued, Running, Held, Ended, Removed, Failed int
	// Away says of those that are queued, held, removed or failed why that is: a sentence for each reason, with the
	// number of workers.
	Away []string
}

// All is how many there are.
func (c Counts) All() int { return c.Left() + c.Ended + c.Removed + c.Failed }

// Left is how many are not over.
func (c Counts) Left() int { return c.Queued + c.Running + c.Held }
