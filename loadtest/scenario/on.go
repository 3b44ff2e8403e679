package scenario

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"weir/internal/document"
	"weir/internal/say"
	"weir/internal/tags"
	"weir/internal/unit"
)

// A Batch is the system that starts the workers of a run; "" if the run has no workers.
type Batch string

// The values of On.Batch.
const (
	LocalBatch      Batch = "local" // processes of this machine, which connect over the network as the workers of a batch system do
	HTCondorBatch   Batch = "htcondor"
	SlurmBatch      Batch = "slurm"
	KubernetesBatch Batch = "kubernetes"
	SSHBatch        Batch = "ssh"
)

// Batches returns the names of the batch systems.
func Batches() []string { return tags.Words[On]("batch") }

// Queues reports whether workers wait in the queue of a batch system before they start.
func (b Batch) Queues() bool { return b == HTCondorBatch || b == SlurmBatch || b == KubernetesBatch }

// Elsewhere reports whether workers may be on other machines.
func (b Batch) Elsewhere() bool { return b != "" && b != LocalBatch }

// On describes the machines of the virtual clients. With the zero value all clients are on this
// machine.
type On struct {
	Batch        Batch         `json:"batch,omitempty" enum:"local,htcondor,slurm,kubernetes,ssh" doc:"How workers are started; local: processes of this machine."`
	Workers      int           `json:"workers,omitempty" doc:"Number of workers; each has a share of each step's clients."`
	JobPerClient bool          `json:"job_per_client,omitempty" doc:"Each client is a job of the batch system, active once it has a slot."`
	Hosts        []string      `json:"hosts,omitempty" doc:"Machines to start workers on by ssh, in turn."`
	Address      string        `json:"address,omitempty" doc:"HOST or HOST:PORT at which workers reach this machine. Default: detected."`
	Submit       []string      `json:"submit,omitempty" doc:"Lines for the batch system, fields of the pod, or options of ssh."`
	Wait         unit.Duration `json:"wait,omitempty" default:"5m" when:"with batch" doc:"Longest wait for workers before the first step begins without the missing ones."`
	Kubernetes   Kubernetes    `json:"kubernetes,omitzero" doc:"Pods of batch: kubernetes."`
}

// completeOn fills in the values that follow from the other keys.
func (s *Scenario) completeOn() {
	if s.On.Batch == "" {
		return
	}
	if s.On.Workers == 0 && !s.On.JobPerClient {
		s.On.Workers = max(1, len(s.On.Hosts), len(s.Links.Sites()))
	}
	format().SetDefault(&s.On, "wait")
	if s.On.Batch == KubernetesBatch {
		format().SetDefault(&s.On.Kubernetes, "deadline")
	}
}

// on checks the description of the machines.
func (c *checker) on() {
	o := c.On
	if o.Batch == "" {
		c.refuse(o.Workers != 0 || o.JobPerClient || o.Address != "" || len(o.Hosts)+len(o.Submit) > 0 || !o.Kubernetes.isZero(),
			"on.batch", "missing; name what starts the workers, one of %s", strings.Join(Batches(), ", "))
		return
	}
	c.refuse(!slices.Contains(Batches(), string(o.Batch)),
		"on.batch", "unknown batch system %s; use one of %s", document.Quote(string(o.Batch)), strings.Join(Batches(), ", "))
	c.refuse(o.Workers < 0, "on.workers", "%d: use 1 or more", o.Workers)
	if ssh := o.Batch == SSHBatch; ssh != (len(o.Hosts) > 0) {
		if ssh {
			c.say("on.hosts", "missing; name the machines to log in to, as in [node1, user@node2]")
		} else {
			c.say("on.hosts", "applies to batch: ssh only; %s chooses its machines itself (see on.submit)", o.Batch)
		}
	}
	for _, h := range o.Hosts {
		c.refuse(h == "" || strings.HasPrefix(h, "-") || strings.ContainsFunc(h, func(r rune) bool { return r <= ' ' }),
			"on.hosts", "%s is not a machine; write it as in node1, or user@node1", document.Quote(h))
	}
	c.refuse(slices.ContainsFunc(o.Submit, func(line string) bool { return strings.ContainsAny(line, "\n\r\x00") }),
		"on.submit", "write one line for each")
	if o.Address != "" && !isAddress(o.Address) {
		c.say("on.address", "%s; write the name or address of this machine, with a port or without, as in login1.example.org:9999",
			document.Quote(o.Address))
	}
	c.onKubernetes(o)
	c.onlyHere(o)
}

// onlyHere reports settings that do not work on the machines of a batch system.
func (c *checker) onlyHere(o On) {
	switch {
	case len(c.Links) > 0 && len(c.Client.Command) > 0 && slices.Contains([]string{"ftp", "gsiftp"}, c.scheme()):
		c.say("client.command", "with on and link: the data connections that GridFTP servers name to a program would go past the link; omit "+
			"client, so that weir's own client makes them over it")
	case len(c.Links) > 0 && !o.JobPerClient && o.Workers < len(c.Links.Sites()):
		c.say("on.workers", "%d: each worker is at one site; use at least %d, one for each link", o.Workers, len(c.Links.Sites()))
	case o.JobPerClient && (len(c.Load.Rate) > 0 || c.Load.Jobs > 0):
		c.say("on.job_per_client", "each job does one client's work for the measurement time: leave load.rate and load.jobs out")
	case o.JobPerClient && o.Workers > 0:
		c.say("on.workers", "cannot be combined with job_per_client; omit it")
	}
}

// isAddress reports whether s is HOST or HOST:PORT.
func isAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = strings.Trim(s, "[]"), "1"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && host != "" && !strings.ContainsAny(host, " /@\t") &&
		(net.ParseIP(host) != nil || !strings.Contains(host, ":"))
}

// Text describes the machines of so many clients. It returns "" if all clients are on this machine.
func (o On) Text(most int) string {
	if o.Batch == "" {
		return ""
	}
	with := map[Batch]string{LocalBatch: "of this machine", HTCondorBatch: "by HTCondor", SlurmBatch: "by Slurm",
		KubernetesBatch: "by Kubernetes", SSHBatch: "by ssh on " + strings.Join(o.Hosts, ", ")}[o.Batch]
	if o.JobPerClient {
		return say.Plural(most, "worker") + " " + with + ", one for each client; each counts from when it comes"
	}
	return fmt.Sprintf("%s %s, up to %s each; the first step waits for them, up to %v", say.Plural(o.Workers, "worker"), with,
		say.Plural((most+o.Workers-1)/max(o.Workers, 1), "client"), o.Wait)
}
