package htcondor

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"weir/cluster/batch"
	"weir/internal/say"
)

// why asks why a job is queued: what room the pool has, and whether any machine is
// what the job asks for.
func (j *job) why(ctx context.Context, worker int) string {
	said, err := batch.Run(ctx, nil, "condor_status", "-af", "Cpus", "State")
	if err != nil {
		return batch.Words(err.Error(), nil)
	}
	all, free := room(said)
	pool := fmt.Sprintf("the pool has room for %s of one processor, %d of it free", say.Plural(all, "job"), free)
	switch {
	case all == 0:
		return "the pool has no machines that run jobs"
	case free == 0:
		return fmt.Sprintf("the pool has room for %s of one processor, and all of it is taken, %d by this run", say.Plural(all, "job"), j.Counts().Running)
	}
	said, err = batch.Run(ctx, nil, "condor_q", "-better-analyze", j.Last(worker).JobID)
	if err != nil {
		return pool
	}
	if m := analyzed(said); m.machines > 0 && m.refused == m.machines {
		return fmt.Sprintf("none of the pool's %s is what the job asks for; condor_q -better-analyze %s tells more", say.Plural(m.machines, "machine"), j.Last(worker).JobID)
	}
	return pool
}

// room sums the processors of all slots, and of those that are free, from lines
// such as "49 Unclaimed". Parts of a slot are slots of their own, which it then has not.
func room(said string) (all, free int) {
	for line := range strings.Lines(said) {
		words := strings.Fields(line)
		if len(words) != 2 {
			continue
		}
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 0 || n > 1<<20 {
			continue
		}
		if all += n; words[1] == "Unclaimed" {
			free += n
		}
	}
	return all, free
}

// analysis is how many machines there are, and how many of them a job's requirements refuse.
type analysis struct{ machines, refused int }

// analyzed reads the summary of condor_q -better-analyze:
//
//	004.000:  Run analysis summary ignoring user priority.  Of 1 machines,
//	      1 are rejected by your job's requirements
func analyzed(said string) (a analysis) {
	for line := range strings.Lines(said) {
		if _, of, ok := strings.Cut(line, "Of "); ok && strings.Contains(line, "analysis summary") {
			a.machines, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(of), " machines,"))
		}
		if n, ok := strings.CutSuffix(strings.TrimSpace(line), " are rejected by your job's requirements"); ok {
			a.refused, _ = strconv.Atoi(n)
		}
	}
	return a
}
