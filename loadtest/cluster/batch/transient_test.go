package batch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Responses of the real programs on busy machines, and other responses that must not be repeated.
func TestTransientAnswers(t *testing.T) {
	for _, c := range []struct {
		system, answer string
		transient      bool
	}{
		{"Slurm", "srun: error: Unable to confirm allocation for job 429: Job is pending execution", true},
		{"Slurm", "127: srun: error: Task launch for StepId=429.0 failed on node weir: Job credential revoked; srun: error: " +
			"Application launch failed: Job credential revoked", true},
		{"Slurm", "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", true},
		{"Slurm", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", true},
		{"Slurm", "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified", false},
		{"Slurm", "slurm_load_jobs error: Invalid job id specified", false},
		{"HTCondor", "ERROR: Failed to connect to local queue manager; SECMAN:2007:Failed to end classad message.", true},
		{"HTCondor", "Error: ; Extra Info: You probably saw this error because the condor_schedd is not running", false},
		{"HTCondor", "ERROR: Can't find address of local schedd", true},
		{"ssh", "kex_exchange_identification: Connection closed by remote host; Connection closed by 127.0.0.1 port 22", true},
		{"ssh", "ssh: Could not resolve hostname no-such-node.invalid: Name or service not known", false},
		{"ssh", "ssh: connect to host 127.0.0.1 port 9: Connection refused", false},
		{"ssh", "alice@node1: Permission denied (publickey).", false},
		{"Kubernetes", "kubectl: Error from server (ServiceUnavailable): apiserver not ready", true},
		{"Kubernetes", "kubectl: Unable to connect to the server: net/http: TLS handshake timeout", true},
		{"Kubernetes", `kubectl: Error from server (Forbidden): pods is forbidden: User "ada" cannot list resource "pods"`, false},
		{"Kubernetes", "kubectl: The connection to the server 127.0.0.1:9 was refused - did you specify the right host or port?", false},
		{"local", "srun: error: Unable to confirm allocation for job 429: Job is pending execution", false},
	} {
		if _, got := TransientAnswer(c.system, c.answer); got != c.transient {
			t.Errorf("%s: %q: transient %v, want %v", c.system, c.answer, got, c.transient)
		}
	}
	for _, e := range transients() {
		if e.Answer != strings.ToLower(e.Answer) || e.Means == "" || e.System == "" {
			t.Errorf("%+v: an answer is in lower case, and means something", e)
		}
		if first, _ := TransientAnswer(e.System, e.Answer); first != e {
			t.Errorf("%q is covered by %q", e.Answer, first.Answer)
		}
	}
}

func TestRetry(t *testing.T) {
	pending, unsure, refused := errors.New("Job is pending execution"), errors.New("Socket timed out on send/recv operation"),
		errors.New("Invalid qos")
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx     context.Context
		answers []error // the last error stays
		done    bool    // the request was carried out although it failed
		want    error
		asked   int
		took    time.Duration
	}{
		"at once":      {answers: []error{nil}, asked: 1},
		"refused":      {answers: []error{refused}, want: refused, asked: 1},
		"transient":    {answers: []error{pending, unsure, nil}, asked: 3, took: firstWait + 2*firstWait},
		"then refused": {answers: []error{pending, refused}, want: refused, asked: 2, took: firstWait},
		"done":         {answers: []error{unsure}, done: true, asked: 1, took: firstWait},
		"ended":        {ctx: ended, answers: []error{pending}, want: pending, asked: 1},
		"for ever":     {answers: []error{pending}, want: pending, asked: 20, took: 7750*time.Millisecond + 14*longestWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := c.ctx
				if ctx == nil {
					ctx = t.Context()
				}
				begin, asked := time.Now(), 0
				err := Retry(ctx, "Slurm", func() error {
					asked++
					return c.answers[min(asked, len(c.answers))-1]
				}, func() (bool, error) { return c.done, nil })
				if !errors.Is(err, c.want) || asked != c.asked || time.Since(begin) != c.took {
					t.Errorf("%v after %d attempts in %v, want %v after %d in %v", err, asked, time.Since(begin), c.want, c.asked, c.took)
				}
			})
		})
	}
}
