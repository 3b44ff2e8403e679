// Package batch starts the workers of a run on other machines through an existing system: HTCondor,
// Slurm, ssh, Kubernetes, or processes of this machine. It submits, follows and removes workers and
// brings their outputs back; it does not depend on the program that they run.
//
// A System returns Jobs: submissions of a number of equal workers, numbered from 0. Each worker
// runs in a private, empty working folder with the Files of its Work. The variable WEIR_WORKER
// contains its number, and WEIR_JOB its name in the system. The files that Submit writes to the
// folder of the Work are enough to Find the submission again after a kill. Nothing stays anywhere
// after the end, and nothing that a submission did not make is ever removed.
package batch

import (
	"context"
	"time"
)

// A System is a place where workers can be started.
type System interface {
	Name() string // as people write it: HTCondor, Slurm, ssh
	// Submit starts w.Count workers, now or when there is room. The Job must be followed to its
	// end, or removed. If the system does not transfer files, workers start only while it is
	// followed. ctx bounds the submission only.
	Submit(ctx context.Context, w Work) (Job, error)
	// Find returns the submission that a killed run has made from the folder dir (Work.Dir). The
	// error is fs.ErrNotExist if no submission was made there.
	Find(ctx context.Context, dir string) (Job, error)
}

// A Work is a submission to be made: the same program, Count times.
type Work struct {
	Name string // name of the run, which the queue shows
	// Dir is the folder of the submission: its description, logs, and out/N/ with the outputs of
	// worker N. It is made if missing.
	Dir     string
	Program string   // path of an executable, which is transferred
	Args    []string // its arguments
	// Files are paths of files that are transferred to the worker's working folder beside the
	// program. They may contain secrets, and are never copied into Dir.
	Files   []string
	Count   int
	Options []string // lines for the submission, in the system's own words
	Hosts   []string // machines, if the system does not choose them; workers are assigned in turn
}

// A Job is a submission.
type Job interface {
	// Follow reports each change from the first on, one after the other, and returns nil when no
	// worker is left and all outputs are in Dir. When ctx ends it returns ctx's error, and the
	// workers go on.
	Follow(ctx context.Context, tell func(Change)) error
	// Remove ends the remaining workers and removes everything that the submission has made outside
	// Dir. It may be called while Follow runs, which then reports the removal and returns, and more
	// than once.
	Remove(ctx context.Context) error
	Counts() Counts // current counts; safe for concurrent use
}

// A Change is a new state of one worker.
type Change struct {
	Time   time.Time // by the clock of the machine that recorded it
	Worker int
	State  State
	Host   string // where it runs or ran, "" if not known
	Reason string // why it is in this state, as the system reports it; "" if there is no reason
	Exit   int    // exit status of a worker that ended or failed, -1 if unknown
	JobID  string // the system's name of its job: 12.3, 45_6, node7
}

// A State is a stage in the life of a worker.
type State string

// A worker is queued, may be held, runs, and is over: it ended by itself, was removed, or failed,
// which is any end but exit status 0.
const (
	Queued  State = "queued"
	Running State = "running"
	Held    State = "held" // by the system: it will not run without intervention
	Ended   State = "ended"
	Removed State = "removed"
	Failed  State = "failed"
)

// Over reports whether the state is final.
func (s State) Over() bool { return s == Ended || s == Removed || s == Failed }

// Counts are the numbers of workers in each state.
type Counts struct {
	Queued, Running, Held, Ended, Removed, Failed int
	// Away lists the reasons why workers are queued, held, removed or failed: a sentence for each
	// reason, with the number of workers.
	Away []string
}

// All returns the number of workers.
func (c Counts) All() int { return c.Left() + c.Ended + c.Removed + c.Failed }

// Left returns the number of workers that are not over.
func (c Counts) Left() int { return c.Queued + c.Running + c.Held }
