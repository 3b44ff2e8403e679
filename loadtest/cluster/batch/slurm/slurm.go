// Package slurm starts workers as the tasks of Slurm job arrays. Small files are part of the batch
// script, which Slurm transfers. The program is read from the submission's folder if the nodes see
// it. Other nodes receive it, and return outputs, through a job step that srun makes in their
// allocation; nothing needs to be installed there. The workers on those nodes end with the process
// that has submitted them.
package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/loadtest/cluster/batch"
	"weir/loadtest/cluster/batch/shell"
)

// A System submits to the Slurm that sbatch on PATH submits to.
type System struct{}

// New returns the system.
func New() *System { return &System{} }

const system = "Slurm"

// Name implements batch.System.
func (*System) Name() string { return system }

// A job is a submission: one job array, or several if Slurm's MaxArraySize is less than the number
// of workers.
type job struct {
	*batch.Ledger
	sub      *batch.Submission
	launcher *shell.Launcher // nil if another process has submitted
	// overlap is overlaps, called once.
	overlap func() bool

	mu      sync.Mutex      // guards the fields below
	tasks   map[int]string  // Slurm's number of the job of each worker that runs
	tries   map[int]try     // attempts of the launcher, for each worker that it has tried to start
	carried map[int]bool    // workers that run in a step, so that Slurm does not see their ends
	sees    map[string]bool // nodes that are known to see the submission's folder
	freed   map[int]int     // number of releases of each worker that Slurm could not start
	busy    int             // workers that the launcher works on
	failed  error           // missing outputs
}

func newJob(sub *batch.Submission) *job {
	return &job{Ledger: batch.NewLedger(sub.Count), sub: sub, overlap: sync.OnceValue(overlaps), tasks: map[int]string{}, tries: map[int]try{},
		carried: map[int]bool{}, sees: map[string]bool{}, freed: map[int]int{}}
}

// shared returns the path of the copy of the program that nodes may see.
func shared(sub *batch.Submission) string { return filepath.Join(sub.Dir(), "."+sub.Tag) }

// Submit implements batch.System. Work.Options are options of sbatch, one on a line.
func (*System) Submit(ctx context.Context, w batch.Work) (batch.Job, error) {
	if err := checkOptions(w.Options); err != nil {
		return nil, err
	}
	most, err := arraySize(ctx)
	if err != nil {
		return nil, err
	}
	sub, err := batch.Begin(system, &w)
	if err != nil {
		return nil, err
	}
	j := newJob(sub)
	j.launcher = shell.NewLauncher(j.Ledger, sub, &w, shell.Reach{ID: j.id, Argv: j.step})
	sub.Step = min(most, w.Count)
	if err := j.submit(ctx, &w); err != nil {
		clearing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return nil, errors.Join(err, j.Remove(clearing))
	}
	return j, nil
}

func (j *job) submit(ctx context.Context, w *batch.Work) error {
	if err := copyProgram(w.Program, shared(j.sub)); err != nil {
		return err
	}
	for i := range w.Count {
		if err := os.MkdirAll(j.sub.Out(i), 0o755); err != nil {
			return err
		}
		j.clearSigns(i)
	}
	for first := 0; first < w.Count && ctx.Err() == nil; first += j.sub.Step {
		s, err := script(w, j.sub, first)
		if err == nil && first == 0 {
			err = os.WriteFile(filepath.Join(w.Dir, "job.sh"), []byte(s.kept), 0o644)
		}
		if err != nil {
			return err
		}
		last := min(first+j.sub.Step, w.Count) - first - 1
		id, err := j.array(ctx, s.sent, w.Name, last)
		if err != nil {
			return err
		}
		j.sub.IDs = append(j.sub.IDs, id)
		if err := j.sub.Write(); err != nil {
			return err
		}
		for i := first; i <= first+last; i++ {
			j.Note(batch.Change{Worker: i, State: batch.Queued, JobID: j.id(i)})
		}
	}
	return ctx.Err()
}

// array submits one job array, once: if a response does not show whether Slurm has accepted it, the
// queue is checked before it is submitted again.
func (j *job) array(ctx context.Context, text, name string, last int) (id string, err error) {
	// Ctrl-C must not leave it open whether there are jobs: it does not end the submission.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
	defer cancel()
	err = batch.Retry(ctx, system, func() error {
		said, err := batch.Run(ctx, strings.NewReader(text), "sbatch", "--parsable", "--array=0-"+strconv.Itoa(last),
			"--job-name="+j.sub.Tag, "--comment="+comment(name), "--input=/dev/null", "--output=/dev/null", "--error=/dev/null", "--chdir=/")
		if err == nil {
			id, err = submitted(said)
		}
		return err
	}, func() (bool, error) {
		fresh, err := j.unnoted(ctx)
		if err == nil && len(fresh) > 0 {
			id = fresh[0]
		}
		return len(fresh) > 0, err
	})
	return id, err
}

// unnoted returns the arrays of the submission that Slurm has and the submission does not list yet.
func (j *job) unnoted(ctx context.Context) (ids []string, err error) {
	said, err := batch.Ask(ctx, system, "squeue", "--noheader", "--states=all", "--name="+j.sub.Tag, "--format=%F")
	if err != nil {
		return nil, err
	}
	for id := range strings.FieldsSeq(said) {
		if isNumber(id) && !slices.Contains(j.sub.IDs, id) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// comment returns the comment that the queue shows.
func comment(run string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune("='\"`$\\", r) {
			return '_'
		}
		return r
	}, batch.Words("weir "+run, nil))
}

// submitted reads the output of sbatch --parsable: NUMBER, or NUMBER;CLUSTER.
func submitted(said string) (string, error) {
	lines := strings.Fields(said)
	if len(lines) > 0 {
		id, _, _ := strings.Cut(lines[len(lines)-1], ";")
		if isNumber(id) {
			return id, nil
		}
	}
	return "", fmt.Errorf("no job number in the output of sbatch: %q", batch.Words(said, nil))
}

func isNumber(s string) bool {
	n, err := strconv.ParseUint(s, 10, 32)
	return err == nil && n > 0
}

// id returns Slurm's name of the job of a worker: 45_6.
func (j *job) id(worker int) string {
	if k := worker / max(1, j.sub.Step); k < len(j.sub.IDs) {
		return j.sub.IDs[k] + "_" + strconv.Itoa(worker%j.sub.Step)
	}
	return ""
}

// step returns the command that runs a shell in the allocation of a worker.
func (j *job) step(worker int) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	argv := []string{"srun", "--quiet", "--jobid=" + j.tasks[worker], "--nodes=1", "--ntasks=1", "--mpi=none"}
	if j.overlap() {
		argv = append(argv, "--overlap") // else a step waits for the end of the previous step
	}
	return append(argv, "/bin/sh", "-c")
}

// overlaps reports whether this srun supports steps that share the resources of other steps: since
// 20.11.
func overlaps() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	said, _ := batch.Run(ctx, nil, "srun", "--help")
	return strings.Contains(said, "--overlap")
}

// maxArraySize matches the setting in the output of scontrol show config.
var maxArraySize = regexp.MustCompile(`(?m)^MaxArraySize\s*=\s*(\d{1,8})\s*$`)

// arraySize requests the largest number of tasks of an array.
func arraySize(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	said, err := batch.Ask(ctx, system, "scontrol", "show", "config")
	if err != nil {
		return 0, err
	}
	found := maxArraySize.FindStringSubmatch(said)
	if found == nil {
		return 1000, nil // one less than Slurm's default
	}
	n, _ := strconv.Atoi(found[1])
	if n < 2 {
		return 0, errors.New("this Slurm takes no job arrays (MaxArraySize)")
	}
	return n - 1, nil
}

// Find implements batch.System.
func (*System) Find(ctx context.Context, dir string) (batch.Job, error) {
	sub, err := batch.ReadSubmission(dir, system)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(sub.IDs, func(id string) bool { return !isNumber(id) }) || sub.Step < 0 || sub.Step == 0 && len(sub.IDs) > 0 {
		return nil, fmt.Errorf("%s: this is not what weir has written", dir)
	}
	j := newJob(sub)
	if !sub.Over {
		// A kill may have come between sbatch and the note of its number.
		fresh, err := j.unnoted(ctx)
		if err != nil {
			return nil, err
		}
		sub.IDs = append(sub.IDs, fresh...)
		if sub.Step == 0 {
			sub.Step = sub.Count
		}
		if err := sub.Write(); err != nil {
			return nil, err
		}
	}
	for i := range sub.Count {
		state := batch.Queued
		if sub.Over || j.id(i) == "" {
			state = batch.Removed
		}
		j.Note(batch.Change{Time: sub.Begin, Worker: i, State: state, JobID: j.id(i), Exit: -1})
	}
	if !sub.Over {
		return j, j.poll(ctx)
	}
	return j, nil
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// checkOptions checks that each line is an option of sbatch.
func checkOptions(lines []string) error {
	for _, line := range lines {
		if !strings.HasPrefix(line, "-") || bytes.ContainsAny([]byte(line), "\n\r\x00") {
			return fmt.Errorf("on.submit: %q: write options of sbatch, as in --partition=short", line)
		}
	}
	return nil
}
