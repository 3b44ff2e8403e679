package slurm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weir/loadtest/cluster/batch"
)

// begin is the time at which a test reads the output of Slurm.
var begin = time.Date(2026, 11, 22, 13, 0, 0, 0, time.Local)

const queued = "JobId=4 ArrayJobId=4 ArrayTaskId=1-2,7-9:2%3 JobName=weir-abc UserId=root(0) GroupId=root(0) MCS_label=N/A " +
	"Priority=4294901758 Nice=0 Account=(null) QOS=(null) JobState=PENDING Reason=Resources Dependency=(null) Requeue=1 Restarts=0 " +
	"BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:00 TimeLimit=UNLIMITED StartTime=2027-11-22T12:54:22 EndTime=Unknown Deadline=N/A " +
	"NodeList=(null) Comment=a JobId=7 b\n"

// The output of Slurm 22.05.8 becomes changes.
func TestRecords(t *testing.T) {
	all := records(queued+strings.Replace(queued, "ArrayTaskId=1-2,7-9:2%3", "ArrayTaskId=0", 1), 9)
	if len(all) != 2 || !slices.Equal(all[0].Tasks, []int{1, 2, 7}) || all[0].Job != "4" || !slices.Equal(all[1].Tasks, []int{0}) {
		t.Fatalf("%+v", all)
	}
	ran := strings.NewReplacer("1-2,7-9:2%3", "5", "Reason=Resources", "Reason=None", "2027-11-22", "2026-11-22", "EndTime=Unknown",
		"EndTime=2026-11-22T12:58:00", "NodeList=(null)", "NodeList=n7 BatchHost=n7").Replace(queued)
	for _, c := range []struct {
		line, state, exit string
		want              batch.Change
	}{
		{queued, "PENDING", "0:0", batch.Change{State: batch.Queued, Reason: "Resources"}},
		{strings.Replace(queued, "=Resources", "=launch_failed_requeued_held", 1), "PENDING", "0:0",
			batch.Change{State: batch.Held, Reason: "launch_failed_requeued_held"}},
		{strings.Replace(queued, "=Resources", "=JobHeldUser", 1), "PENDING", "0:0", batch.Change{State: batch.Held, Reason: "JobHeldUser"}},
		{ran, "RUNNING", "0:0", batch.Change{State: batch.Running, Host: "n7"}},
		{ran, "COMPLETED", "0:0", batch.Change{State: batch.Ended, Host: "n7"}},
		{ran, "CANCELLED", "0:15", batch.Change{State: batch.Removed, Host: "n7"}},
		{ran, "FAILED", "3:0", batch.Change{State: batch.Failed, Host: "n7", Exit: 3, Reason: "failed, exit status 3"}},
		{ran, "OUT_OF_MEMORY", "0:9", batch.Change{State: batch.Failed, Host: "n7", Reason: "out of memory, killed by signal 9"}},
		{ran, "NODE_FAIL", "0:0", batch.Change{State: batch.Failed, Host: "n7", Reason: "node fail"}},
		{ran, "TIMEOUT", "0:0", batch.Change{State: batch.Failed, Host: "n7", Reason: "timeout"}},
	} {
		line := strings.NewReplacer("JobState=PENDING", "JobState="+c.state, "ExitCode=0:0", "ExitCode="+c.exit).Replace(c.line)
		all := records(line, 10)
		if len(all) != 1 {
			t.Fatalf("%s: %d records", line, len(all))
		}
		got := all[0].change(begin)
		if at := got.Time.Format("15:04:05"); got.State == batch.Running && at != "12:54:22" || got.State.Over() && at != "12:58:00" {
			t.Errorf("%s at %v", c.state, got.Time)
		}
		if c.want.Exit == 0 && c.want.State != batch.Ended {
			c.want.Exit = -1
		}
		if got.Time = c.want.Time; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.state, got, c.want)
		}
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(queued)
	f.Add("JobId=1 ArrayJobId=1 ArrayTaskId=0-99999999999 JobState=X\nJobId=1 ArrayTaskId=5-1:0,3- JobState= Reason=\x1b[2J\n")
	f.Fuzz(func(t *testing.T, said string) {
		for _, r := range records(said, 20) {
			for _, n := range r.Tasks {
				if n < 0 || n >= 20 {
					t.Errorf("task %d", n)
				}
			}
			if c := r.change(begin); c.State == "" || strings.ContainsAny(c.Reason+c.Host, "\n\x1b") {
				t.Errorf("%+v", c)
			}
		}
		if id, err := submitted(said); err == nil && !isNumber(id) {
			t.Errorf("%q", id)
		}
	})
}
