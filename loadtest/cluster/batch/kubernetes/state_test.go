package kubernetes

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"weir/loadtest/cluster/batch"
)

// The states of pods are mapped to the states of their workers.
func TestStates(t *testing.T) {
	const owner = `{"kind": "Job", "status": {"completedIndexes": "0,7-8", "failedIndexes": "9"}}, `
	change := func(state batch.State, reason string, exit int) batch.Change {
		return batch.Change{State: state, Host: "n1", Reason: reason, Exit: exit}
	}
	bare := func(state batch.State, reason string, exit int) batch.Change {
		return batch.Change{State: state, Reason: reason, Exit: exit}
	}
	for name, c := range map[string]struct {
		items  string
		worker int
		want   batch.Change
	}{
		"no pod yet":  {owner, 1, bare(batch.Queued, "", 0)},
		"no Job":      {"", 1, bare(batch.Removed, "its Job is gone", -1)},
		"completed":   {owner, 7, bare(batch.Ended, "", 0)},
		"failed":      {owner, 9, bare(batch.Failed, "its pod is gone", -1)},
		"pending":     {owner + pod(`"phase": "Pending"`), 1, change(batch.Queued, "", -1)},
		"creating":    {owner + pod(`"phase": "Pending", `+waiting("ContainerCreating")), 1, change(batch.Queued, "", -1)},
		"first pull":  {owner + pod(waiting("ErrImagePull")), 1, change(batch.Queued, "ErrImagePull", -1)},
		"no image":    {owner + pod(waiting("ImagePullBackOff")), 1, change(batch.Held, "ImagePullBackOff", -1)},
		"bad image":   {owner + pod(waiting("InvalidImageName")), 1, change(batch.Held, "InvalidImageName", -1)},
		"ended":       {owner + pod(ended(0, "Completed")), 1, change(batch.Ended, "", 0)},
		"exit status": {owner + pod(ended(3, "Error")), 1, change(batch.Failed, "exit status 3", 3)},
		"memory":      {owner + pod(ended(137, "OOMKilled")), 1, change(batch.Failed, "OOMKilled, exit status 137", 137)},
		"evicted": {owner + pod(`"phase": "Failed", "reason": "Evicted", "message": "low on disk"`), 1,
			change(batch.Failed, "Evicted: low on disk", -1)},
		"lost node": {owner + pod(`"phase": "Failed", `+conditions("DisruptionTarget", "DeletionByTaintManager")), 1,
			change(batch.Failed, "DeletionByTaintManager", -1)},
		"deadline": {`{"kind": "Job", "status": {` + conditions("Failed", "DeadlineExceeded") + `}}, `, 1,
			bare(batch.Failed, "DeadlineExceeded", -1)},
		"ended by the deadline": {`{"kind": "Job", "status": {` + conditions("FailureTarget", "DeadlineExceeded") + `}}, ` +
			pod(ended(7, "Error")), 1, change(batch.Failed, "DeadlineExceeded, exit status 7", 7)},
	} {
		o, pods, err := parse(`{"items": [` + c.items + `null]}`)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		j := newJob(&batch.Submission{Count: 10}, options{})
		if got := j.change(c.worker, o, pods[c.worker]); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	for _, text := range []string{"", "[]", `{"items": [{"kind": "Pod", "status": 3}]}`} {
		if _, _, err := parse(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// pod returns the pod of worker 1.
func pod(status string) string {
	return `{"kind": "Pod", "metadata": {"annotations": {"` + indexAnnotation + `": "1"}, "deletionTimestamp": "2026-01-01T00:00:00Z"},
		"spec": {"nodeName": "n1"}, "status": {` + status + `}}, `
}

func conditions(kind, reason string) string {
	return `"conditions": [{"type": "` + kind + `", "status": "True", "reason": "` + reason + `"}]`
}

func waiting(reason string) string {
	return `"containerStatuses": [{"state": {"waiting": {"reason": "` + reason + `"}}}]`
}

func ended(status int, reason string) string {
	return `"containerStatuses": [{"state": {"terminated": {"exitCode": ` + strconv.Itoa(status) + `, "reason": "` + reason +
		`"}}}]`
}

// The outputs of a worker are found in the log of its pod, and nothing else is taken from it.
func TestOutputs(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"stdout": "said", "stderr": "\x00\xff", "secret": "not asked for"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	log.WriteString("said before, without an end of line")
	if err := writeOutputs(from, &log); err != nil {
		t.Fatal(err)
	}
	if err := readOutputs(log.Bytes(), to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"stdout": "said", "stderr": "\x00\xff"} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if all, err := os.ReadDir(to); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	if err := readOutputs(log.Bytes()[:log.Len()-40], t.TempDir()); !errors.Is(err, errNotWhole) {
		t.Errorf("cut off: %v", err)
	}
}

// Reading the log of a pod is safe for any content.
func FuzzOutputs(f *testing.F) {
	var log bytes.Buffer
	if err := writeOutputs(f.TempDir(), &log); err != nil {
		f.Fatal(err)
	}
	f.Add(log.Bytes())
	f.Add([]byte("-----BEGIN WEIR OUTPUTS-----\nH4sIAAAA\n-----END WEIR OUTPUTS-----\n"))
	f.Fuzz(func(t *testing.T, log []byte) { _ = readOutputs(log, t.TempDir()) })
}

// The latest warning counts, and only warnings of the submission.
func TestWarnings(t *testing.T) {
	said := `{"items": [
		{"involvedObject": {"name": "weir-a-0-x"}, "reason": "New", "message": "now", "lastTimestamp": "2026-01-01T00:00:09Z"},
		{"involvedObject": {"name": "weir-a-0-x"}, "reason": "Old", "message": "then", "lastTimestamp": "2026-01-01T00:00:08Z"},
		{"involvedObject": {"name": "weir-a"}, "reason": "FailedCreate", "message": "exceeded quota",
			"eventTime": "2026-01-01T00:00:00.000001Z"},
		{"involvedObject": {"name": "weir-ab"}, "reason": "Other"}]}`
	got := latest(said, "weir-a")
	if len(got) != 2 || got["weir-a-0-x"] != "New: now" || got["weir-a"] != "FailedCreate: exceeded quota" {
		t.Errorf("%v", got)
	}
	if got := latest("no JSON", "weir-a"); got != nil {
		t.Errorf("%v", got)
	}
}
