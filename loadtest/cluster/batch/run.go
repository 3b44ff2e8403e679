package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"weir/internal/pause"
	"weir/internal/say"
)

// Run runs a program of the system, found on PATH, and returns its output. If the program fails,
// the error has its last lines.
func Run(ctx context.Context, in io.Reader, argv ...string) (string, error) {
	cmd := Command(ctx, argv...)
	var out, words bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &words
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s is not on this machine: workers are submitted where users of the system do so", argv[0])
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s: %w", argv[0], ctx.Err())
	}
	if err != nil {
		return out.String(), fmt.Errorf("%s: %s", argv[0], Words(words.String()+"\n"+out.String(), err))
	}
	return out.String(), nil
}

// Command returns a program with English output, which does not get the terminal's Ctrl-C and is
// killed when ctx ends.
func Command(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = 5 * time.Second
	Detach(cmd)
	return cmd
}

// Quote makes s one word of a POSIX shell.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Words returns the last lines of a program's output, as one line that can be displayed. Without
// output it returns the text of err.
func Words(text string, err error) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = say.Plain(strings.TrimSpace(line)); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	words := strings.Join(lines[max(0, len(lines)-3):], "; ")
	if len(words) > 600 {
		words = strings.ToValidUTF8(words[len(words)-600:], "")
	}
	return words
}

// A Transient is a response of a batch system that means "not now": the same request may succeed a
// moment later.
type Transient struct {
	System string // as System.Name returns it
	Answer string // part of the response, in lower case
	Means  string
	Unsure bool // the request may have succeeded: check before it is repeated
}

// transients returns the known transient responses. The texts of Slurm are from
// src/common/slurm_errno.c and src/srun/allocate.c, the texts of HTCondor from
// src/condor_daemon_client and src/condor_io (SECMAN, AUTHENTICATE and CEDAR codes), and the texts
// of ssh from its client and the C library.
func transients() []Transient {
	return append([]Transient{
		{System: "Slurm", Answer: "job is pending execution", Means: "the job was requeued, or its start is not confirmed yet"},
		{System: "Slurm", Answer: "job is not running", Means: "the job is starting or was requeued"},
		{System: "Slurm", Answer: "job credential revoked", Means: "the node ended this start of the job, which is queued again"},
		{System: "Slurm", Answer: "job credential expired", Means: "the node was too busy to accept the credential in time"},
		{System: "Slurm", Answer: "prolog is still running", Means: "the job is not set up yet"},
		{System: "Slurm", Answer: "are still not ready", Means: "nodes are starting"},
		{System: "Slurm", Answer: "step creation temporarily disabled", Means: "the job has no room for a step yet"},
		{System: "Slurm", Answer: "step creation still disabled", Means: "the job has no room for a step yet"},
		{System: "Slurm", Answer: "requested nodes are busy", Means: "the job has no room for a step yet"},
		{System: "Slurm", Answer: "job can not be altered now, try again later", Means: "the job changes its state"},
		{System: "Slurm", Answer: "unable to create job record, try again", Means: "the controller is short of memory"},
		{System: "Slurm", Answer: "the db index is being set, try again", Means: "the controller waits for its database"},
		{System: "Slurm", Answer: "temporarily unable to accept job", Means: "the queue is full"},
		{System: "Slurm", Answer: "backup controller in standby mode", Means: "the controllers change over"},
		{System: "Slurm", Answer: "controller is in standby mode", Means: "the controllers change over"},
		{System: "Slurm", Answer: "unable to contact slurm controller (connect failure)", Means: "the controller does not answer"},
		{System: "Slurm", Answer: "unable to contact slurm controller", Means: "the controller did not answer in time", Unsure: true},
		{System: "Slurm", Answer: "socket timed out on send/recv operation", Means: "a daemon did not answer in time", Unsure: true},
		{System: "Slurm", Answer: "zero bytes were transmitted or received", Means: "a daemon closed the connection", Unsure: true},
		{System: "Slurm", Answer: "communication connection failure", Means: "a daemon does not answer"},
		{System: "Slurm", Answer: "message send failure", Means: "the connection to a daemon broke", Unsure: true},
		{System: "Slurm", Answer: "message receive failure", Means: "the connection to a daemon broke", Unsure: true},
		{System: "Slurm", Answer: "slurm is busy", Means: "the controller has too much to do"},
		{System: "Slurm", Answer: "resource temporarily unavailable", Means: "the machine is short of processes or memory", Unsure: true},

		{System: "HTCondor", Answer: "can't find address of local schedd", Means: "the schedd has not written its address yet"},
		{System: "HTCondor", Answer: "can't find address of schedd", Means: "the collector does not know the schedd yet"},
		{System: "HTCondor", Answer: "can't find address of queue manager", Means: "the schedd has not written its address yet"},
		{System: "HTCondor", Answer: "failed to connect to local queue manager", Means: "the schedd does not answer"},
		{System: "HTCondor", Answer: "failed to connect to queue manager", Means: "the schedd does not answer"},
		{System: "HTCondor", Answer: "can't connect to queue manager", Means: "the schedd does not answer"},
		{System: "HTCondor", Answer: "failed to connect to schedd", Means: "the schedd does not answer"},
		{System: "HTCondor", Answer: "failed to fetch ads from", Means: "the schedd is busy"},
		{System: "HTCondor", Answer: "couldn't contact the condor_collector", Means: "the collector is busy"},
		{System: "HTCondor", Answer: "cedar:6001", Means: "a daemon does not answer: failed to connect"},
		{System: "HTCondor", Answer: "cedar:6002", Means: "a daemon stopped answering: end of message failed", Unsure: true},
		{System: "HTCondor", Answer: "cedar:6004", Means: "a daemon stopped answering: no bytes to read", Unsure: true},
		{System: "HTCondor", Answer: "secman:2003", Means: "a daemon does not answer: TCP connection failed"},
		{System: "HTCondor", Answer: "secman:2007", Means: "a daemon stopped answering: end of message failed"},
		{System: "HTCondor", Answer: "authenticate:1004", Means: "a daemon did not answer in time while authenticating"},
		{System: "HTCondor", Answer: "failed to commit job submission", Means: "the schedd did not confirm the jobs", Unsure: true},
		{System: "HTCondor", Answer: "resource temporarily unavailable", Means: "the machine is short of processes or memory", Unsure: true},

		{System: "ssh", Answer: "timed out during banner exchange", Means: "its sshd is busy"},
		{System: "ssh", Answer: "kex_exchange_identification", Means: "its sshd has too many connections that are not authenticated " +
			"yet (MaxStartups)"},
		{System: "ssh", Answer: "ssh_exchange_identification", Means: "its sshd has too many connections that are not authenticated " +
			"yet (MaxStartups)"},
		{System: "ssh", Answer: "temporary failure in name resolution", Means: "the name server does not answer"},
		{System: "ssh", Answer: "connection reset by", Means: "its sshd dropped the connection", Unsure: true},
		{System: "ssh", Answer: "resource temporarily unavailable", Means: "a machine is short of processes or memory", Unsure: true},
		{System: "local", Answer: "resource temporarily unavailable", Means: "this machine is short of processes or memory", Unsure: true},
	}, kubernetesTransients()...)
}

// kubernetesTransients returns the transient responses of Kubernetes: reasons of metav1.Status and
// texts of etcd and of Go's net/http.
func kubernetesTransients() []Transient {
	return []Transient{
		{System: "Kubernetes", Answer: "(toomanyrequests)", Means: "the API server has too much to do"},
		{System: "Kubernetes", Answer: "(serviceunavailable)", Means: "the API server is not ready", Unsure: true},
		{System: "Kubernetes", Answer: "(servertimeout)", Means: "the API server did not answer in time", Unsure: true},
		{System: "Kubernetes", Answer: "(timeout)", Means: "the API server did not answer in time", Unsure: true},
		{System: "Kubernetes", Answer: "the server is currently unable to handle", Means: "the API server is not ready", Unsure: true},
		{System: "Kubernetes", Answer: "etcdserver: leader changed", Means: "the database of the cluster changes over", Unsure: true},
		{System: "Kubernetes", Answer: "etcdserver: request timed out", Means: "the database of the cluster is busy", Unsure: true},
		{System: "Kubernetes", Answer: "tls handshake timeout", Means: "the API server does not answer"},
		{System: "Kubernetes", Answer: "http2: client connection lost", Means: "the connection to the API server broke", Unsure: true},
	}
}

// TransientAnswer returns the meaning of a system's response if the response is transient.
func TransientAnswer(system, answer string) (Transient, bool) {
	answer = strings.ToLower(answer)
	all := transients()
	i := slices.IndexFunc(all, func(t Transient) bool { return t.System == system && strings.Contains(answer, t.Answer) })
	if i < 0 {
		return Transient{}, false
	}
	return all[i], true
}

// The waits between the attempts of a request that got a transient response double from the first
// to the longest.
const (
	firstWait   = 250 * time.Millisecond
	longestWait = 8 * time.Second
	// Patience is the time for which a request is repeated that gets only transient responses.
	Patience = 2 * time.Minute
)

// Backoff returns the wait before attempt number n, which counts from 0: nothing before the first.
func Backoff(n int) time.Duration {
	if n <= 0 {
		return 0
	}
	return min(firstWait<<min(n-1, 10), longestWait)
}

// Retry repeats ask, which sends a request to a system, while it fails with a transient response,
// for up to Patience. again is called before each repetition of a request that may have been
// carried out despite the error. It returns true if the request was carried out, which ends Retry
// without an error. again may be nil for requests that change nothing.
func Retry(ctx context.Context, system string, ask func() error, again func() (done bool, err error)) error {
	until := time.Now().Add(Patience)
	for n := 1; ; n++ {
		err := ask()
		if err == nil {
			return nil
		}
		t, transient := TransientAnswer(system, err.Error())
		switch {
		case !transient || errors.Is(err, exec.ErrNotFound):
			return err
		case time.Now().Add(Backoff(n)).After(until):
			return fmt.Errorf("%w (%s; repeated %d times)", err, t.Means, n-1)
		case !pause.For(ctx, Backoff(n)):
			return err
		}
		if t.Unsure && again != nil {
			if done, failed := again(); done || failed != nil {
				return failed
			}
		}
	}
}

// Ask runs a program of the system as Run does, and repeats it after transient responses. It is for
// requests that may be made twice.
func Ask(ctx context.Context, system string, argv ...string) (said string, err error) {
	err = Retry(ctx, system, func() (err error) {
		said, err = Run(ctx, nil, argv...)
		return err
	}, nil)
	return said, err
}
