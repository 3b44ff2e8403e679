package htcondor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/loadtest/cluster/batch"
)

// begin is the time at which the jobs of the logs below were submitted.
var begin = time.Date(2026, 12, 31, 23, 59, 50, 0, time.UTC)

const oneLife = `000 (012.003.000) 2026-12-31 23:59:51.792Z Job submitted from host: <127.0.0.1:29618?addrs=127.0.0.1-29618&alias=a.weir.test&noUDP&sock=schedd_1_43af>
...
040 (012.003.000) 2026-12-31 23:59:54.912Z Started transferring input files
	Transferring to host: <127.0.0.1:29618?addrs=127.0.0.1-29618>
...
012 (012.003.000) 2026-12-31 23:59:55.034Z Job was held.
	Transfer input files failure at access point schedd while sending files to execution point slot1_1@a.weir.test. Details: reading from file /x/pass.json: (errno 2) No such file or directory
	Code 13 Subcode 2
...
013 (012.003.000) 2026-12-31 23:59:56Z Job was released.
	via condor_release (by user weir)
...
001 (012.003.000) 2026-12-31 23:59:57.922Z Job executing on host: <127.0.0.1:29618?addrs=127.0.0.1-29618>
	SlotName: slot1_1@node7.weir.test
	CondorScratchDir = "/pool/execute/dir_820"
	Cpus = 1
...
022 (012.003.000) 2026-12-31 23:59:58Z Job disconnected, attempting to reconnect
    Socket between submit and execute hosts closed unexpectedly
    Trying to reconnect to slot1_1@node7.weir.test <127.0.0.1:29618>
...
023 (012.003.000) 2027-01-01 00:00:01Z Job reconnected to slot1_1@node7.weir.test
    startd address: <127.0.0.1:29618>
    starter address: <127.0.0.1:29618>
...
004 (012.003.000) 2027-01-01 00:00:02Z Job was evicted.
	(0) CPU times
		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage
	0  -  Run Bytes Sent By Job
...
001 (012.003.000) 2027-01-01 00:00:03Z Job executing on host: <10.0.0.9:9618?addrs=10.0.0.9-9618>
...
005 (012.003.000) 2027-01-01 00:00:04Z Job terminated.
	(1) Normal termination (return value 3)
		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage
	556  -  Run Bytes Sent By Job

	Job terminated of its own accord at 2026-11-22T12:35:25Z with exit-code 3.
...
005 (012.004.000) 2027-01-01 00:00:04Z Job terminated.
	(0) Abnormal termination (signal 9)
	(0) No core file
...
009 (012.005.000) 2027-01-01 00:00:05Z Job was aborted.
	via condor_rm (by user weir)
	Job terminated by <127.0.0.1:46825> at 2026-11-22T12:47:59Z (using method 1: DEACTIVATE_CLAIM).
...
`

// The output of HTCondor 23.9.6 is parsed into events, also with the dates of older versions.
func TestUserLog(t *testing.T) {
	utc := func(s string) time.Time {
		at, err := time.Parse("06-01-02 15:04:05.999", s)
		require.NoError(t, err)
		return at
	}
	change := func(at string, worker int, s batch.State, host, reason string, exit int) batch.Change {
		return batch.Change{Time: utc(at), Worker: worker, State: s, Host: host, Reason: reason, Exit: exit, JobID: "12." +
			string(rune('0'+worker))}
	}
	want := []batch.Change{
		change("26-12-31 23:59:51.792", 3, batch.Queued, "", "", -1),
		change("26-12-31 23:59:55.034", 3, batch.Held, "", "Transfer input files failure at access point schedd while sending files to "+
			"execution point slot1_1@a.weir.test. Details: reading from file /x/pass.json: (errno 2) No such file or directory (code 13, subcode 2)",
			-1),
		change("26-12-31 23:59:56", 3, batch.Queued, "", "released", -1),
		change("26-12-31 23:59:57.922", 3, batch.Running, "node7.weir.test", "", -1),
		change("26-12-31 23:59:58", 3, batch.Running, "", "HTCondor has lost the connection and tries to get it back", -1),
		change("27-01-01 00:00:01", 3, batch.Running, "", "", -1),
		change("27-01-01 00:00:02", 3, batch.Queued, "", "Job was evicted.", -1),
		change("27-01-01 00:00:03", 3, batch.Running, "10.0.0.9", "", -1),
		change("27-01-01 00:00:04", 3, batch.Failed, "", "exit status 3", 3),
		change("27-01-01 00:00:04", 4, batch.Failed, "", "killed by signal 9", -1),
		change("27-01-01 00:00:05", 5, batch.Removed, "", "via condor_rm (by user weir)", -1),
	}
	local, old := strings.ReplaceAll(oneLife, "Z ", " "), oneLife
	for _, year := range []string{"2026-", "2027-"} {
		old = strings.ReplaceAll(old, ") "+year, ") ")
	}
	for _, day := range []string{"12-31", "01-01"} {
		old = strings.ReplaceAll(old, ") "+day, ") "+strings.ReplaceAll(day, "-", "/"))
	}
	for what, text := range map[string]string{
		"ISO, UTC": oneLife, "ISO with T": strings.ReplaceAll(strings.ReplaceAll(oneLife, "-31 23", "-31T23"), "-01 00", "-01T00"),
		"old": old, "Windows": strings.ReplaceAll(oneLife, "\n", "\r\n"),
	} {
		if diff := cmp.Diff(want, changes(text)); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
	got := changes(local)
	if at := got[0].Time; !at.Equal(time.Date(2026, 12, 31, 23, 59, 51, 792e6, time.Local)) {
		t.Errorf("local time: %v", at)
	}
}

func changes(text string) (all []batch.Change) {
	events, _ := parse(text, begin)
	for _, e := range events {
		if c, ok := e.change(); ok {
			c.Time = c.Time.UTC()
			all = append(all, c)
		}
	}
	return all
}

// A log that grows is read as it comes, and each event once.
func TestLogGrows(t *testing.T) {
	l := userLog{path: filepath.Join(t.TempDir(), "log"), since: begin}
	if all, err := l.next(); len(all) > 0 || err != nil {
		t.Fatal(all, err)
	}
	f, err := os.Create(l.path)
	require.NoError(t, err)
	defer f.Close()
	got := 0
	for i := 0; i < len(oneLife); i += 7 {
		if _, err := f.WriteString(oneLife[i:min(i+7, len(oneLife))]); err != nil {
			t.Fatal(err)
		}
		all, err := l.next()
		require.NoError(t, err)
		got += len(all)
	}
	if want := strings.Count(oneLife, "...\n"); got != want {
		t.Errorf("%d events, want %d", got, want)
	}
	for range 20_000 {
		if _, err := f.WriteString(oneLife); err != nil {
			t.Fatal(err)
		}
	}
	all, err := l.next()
	if want := strings.Count(oneLife, "...\n") * 20_000; len(all) != want || err != nil {
		t.Errorf("%d events, want %d (%v)", len(all), want, err)
	}
}

func FuzzUserLog(f *testing.F) {
	f.Add(oneLife)
	for block := range strings.SplitAfterSeq(oneLife, "...\n") {
		f.Add(block)
	}
	f.Fuzz(func(t *testing.T, text string) {
		events, used := parse(text, begin)
		if used < 0 || used > len(text) {
			t.Fatalf("%d of %d bytes", used, len(text))
		}
		for _, e := range events {
			if c, ok := e.change(); ok && (c.Worker < 0 || c.State == "" || strings.ContainsAny(c.Reason+c.Host, "\n\x1b")) {
				t.Errorf("%+v", c)
			}
		}
		if again, rest := parse(text[used:], begin); len(again) > 0 || rest > 0 {
			t.Errorf("%q has more events", text[used:])
		}
	})
}

func FuzzAnswers(f *testing.F) {
	f.Add("200 Unclaimed\n1 Claimed\n", "004.000:  Run analysis summary ignoring user priority.  Of 1 machines,\n      1 are rejected by "+
		"your job's requirements\n", "5.0 - 5.3\n")
	f.Fuzz(func(t *testing.T, status, analysis, submitted string) {
		if all, free := room(status); all < free || free < 0 {
			t.Errorf("%d of %d are free", free, all)
		}
		analyzed(analysis)
		if id, err := clusterOf(submitted); err == nil && strings.Trim(id, "0123456789") != "" {
			t.Errorf("cluster %q", id)
		}
	})
}

func TestAnswers(t *testing.T) {
	if all, free := room("49 Unclaimed\n150 Claimed\n1 Claimed\nundefined Unclaimed\n"); all != 200 || free != 49 {
		t.Errorf("%d, %d", all, free)
	}
	if a := analyzed("004.000:  Run analysis summary ignoring user priority.  Of 12 machines,\n     11 are rejected by your job's " +
		"requirements\n      0 reject your job\n"); a.machines != 12 || a.refused != 11 {
		t.Errorf("%+v", a)
	}
}
