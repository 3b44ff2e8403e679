package lab

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed condor.conf
var condorConf string

//go:embed pool.sh
var poolScript string

//go:embed condor-tool.sh
var condorTool string

// MaxSlots is the largest number of concurrent jobs that a pool or a Slurm can be configured for.
const MaxSlots = 10_000

// HTCondorConfig configures an HTCondor pool; its zero value is a valid configuration.
type HTCondorConfig struct {
	Config
	Slots int    // jobs of one processor that run at once; 0 means 200
	Extra string // lines of configuration, in HTCondor's own language
}

// Start starts a personal HTCondor pool: all its daemons and one machine that claims to have as many processors as
// there are slots. The jobs run on this machine and use its network. The pool is the HTCondor that `make needs` has
// unpacked, in its own namespaces, so that nothing outlives it.
//
// Env has the PATH on which condor_submit and the other tools are this pool's. The tools, the jobs and the machine
// see the same files at the same paths, except /usr. In the pool, the user that started it is the plain user that
// owns that user's files; jobs have no privilege even if root started the pool.
func (c HTCondorConfig) Start(ctx context.Context) (*System, error) {
	c.ours = true
	c.Ready = cmp.Or(c.Ready, time.Minute)
	return c.launch(ctx, "htcondor", "unshare", func(s *System, _ string) { c.build(s) },
		"pool/log", "pool/spool", "pool/execute", "pool/run", "pool/lock", "etc", "root", "bin")
}

// Needs returns the programs that it needs.
func (HTCondorConfig) Needs() []string {
	return []string{"unshare", "nsenter", "mount", "condor_master", namespaces}
}

type condorValues struct {
	Dir, Port, User, Extra string
	Slots, Memory          int
	UID, GID               int
	Root                   bool
}

func (c HTCondorConfig) build(s *System) {
	_, err := c.programs(c.Needs())
	s.fail(err)
	unpacked, err := unpackedCondor()
	s.fail(err)
	v := condorValues{Dir: s.Dir, Port: s.newPort(false).String(), Extra: c.Extra, Slots: c.Slots, Root: os.Geteuid() == 0, User: "weir",
		UID: plainUser, GID: plainUser}
	if !v.Root {
		v.User, v.UID, v.GID = s.me().Username, os.Geteuid(), os.Getegid()
	}
	v.Slots = cmp.Or(v.Slots, 200)
	s.Slots = v.Slots
	s.Note = fmt.Sprintf("The pool runs %d jobs at once. condor_status shows one partitionable slot with %d processors.", s.Slots, s.Slots)
	v.Memory = v.Slots * 64 // MB, which nothing checks
	condorFiles(s, v, unpacked)
	s.Env = append(s.Env, "PATH="+filepath.Join(s.Dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	s.Batch = "htcondor"
	s.settled = poolReady(s, v.Slots)
	s.part("pool", askFiles(filepath.Join(s.Dir, "pool/spool/.schedd_address"), filepath.Join(s.Dir, "pool/log/.startd_address")),
		"/bin/sh", "-c", poolScript, "pool", unpacked, s.Dir, fmt.Sprint(v.UID), fmt.Sprint(v.GID)).apart = true
}

// condorFiles writes the pool's configuration, its files in /etc, and the commands with which it is
// used from outside.
func condorFiles(s *System, v condorValues, unpacked string) {
	host, err := os.Hostname()
	s.fail(err)
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/bash\n{{.User}}:x:{{.UID}}:{{.GID}}:weir:{{.Dir}}:/bin/bash\n" +
			"nobody:x:65534:65534::/:/bin/false\n",
		"etc/group":         "root:x:0:\n{{.User}}:x:{{.GID}}:\nnogroup:x:65534:\n",
		"etc/hosts":         "127.0.0.1 localhost " + host + ".weir.test " + host + "\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
		"condor_config":     condorConf,
	} {
		s.config(name, text, v)
	}
	tool := s.openFile("bin/condor_submit", s.render(condorTool, v), 0o755)
	tools, err := filepath.Glob(filepath.Join(unpacked, "usr/bin/condor_*"))
	s.fail(err)
	for _, t := range tools {
		if name := filepath.Base(t); name != filepath.Base(tool) && s.err == nil {
			s.fail(os.Symlink(filepath.Base(tool), filepath.Join(s.Dir, "bin", name)))
		}
	}
}

// poolReady returns a question that succeeds when the pool's collector lists all slots and the
// schedd.
func poolReady(s *System, slots int) question {
	return func(ctx context.Context) error {
		out, err := outputOf(exec.CommandContext(ctx, filepath.Join(s.Dir, "bin/condor_status"), "-any", "-af", "MyType", "TotalCpus"))
		if err != nil {
			return err
		}
		said := strings.Fields(out)
		for i, word := range said[:max(0, len(said)-1)] {
			if n, err := strconv.ParseFloat(said[i+1], 64); word == "Machine" && err == nil && int(n) == slots &&
				strings.Contains(out, "Scheduler") {
				return nil
			}
		}
		return fmt.Errorf("the pool knows only of %q", said)
	}
}

// askFiles returns a question that succeeds when all of these files exist.
func askFiles(paths ...string) question {
	return func(context.Context) error {
		for _, p := range paths {
			if _, err := os.Stat(p); err != nil {
				return err
			}
		}
		return nil
	}
}

// unpackedCondor returns the folder in which `make needs` has unpacked HTCondor.
func unpackedCondor() (string, error) {
	dir, err := Built("condor")
	if err != nil {
		return "", &MissingError{Program: "condor_master", Target: "needs"}
	}
	return dir, nil
}

//go:embed slurm.conf
var slurmConf string

//go:embed slurm.sh
var slurmScript string

// SlurmConfig configures a Slurm; its zero value is a valid configuration.
type SlurmConfig struct {
	Config
	CPUs  int    // that its one machine claims to have: tasks that run at once; 0 means 256
	Extra string // lines of configuration, in Slurm's own language
}

// Start starts a Slurm with this machine as its only node, with its own munged. Jobs run as the
// user that started it, which may be root, and end with it. Env has SLURM_CONF, by which sbatch and
// the other tools find it.
func (c SlurmConfig) Start(ctx context.Context) (*System, error) {
	c.ours = true
	c.Ready = cmp.Or(c.Ready, time.Minute)
	return c.launch(ctx, "slurm", "slurmctld", func(s *System, program string) { c.build(s, program) }, "state", "spool", "log", "run")
}

// Needs returns the programs that it needs.
func (SlurmConfig) Needs() []string {
	return []string{"slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "sinfo", "mount", "unshare", namespaces}
}

type slurmValues struct {
	Dir, Host, User, Extra string
	Control, Node          *port
	CPUs, Memory           int
}

func (c SlurmConfig) build(s *System, slurmctld string) {
	found, err := c.programs(c.Needs())
	s.fail(err)
	host, err := os.Hostname()
	s.fail(err)
	host, _, _ = strings.Cut(host, ".")
	v := slurmValues{Dir: s.Dir, Host: host, User: s.me().Username, Extra: c.Extra, CPUs: c.CPUs, Control: s.newPort(false),
		Node: s.newPort(false)}
	v.CPUs = cmp.Or(v.CPUs, 256)
	s.Slots = v.CPUs
	v.Memory = v.CPUs * 64 // MB, which nothing checks
	key := make([]byte, 128)
	_, _ = rand.Read(key) // never fails
	s.config("slurm.conf", slurmConf, v)
	s.file("cgroup.conf", nil)
	s.file("munge.key", key)
	argv := []string{"/bin/sh", "-c", slurmScript, "slurm", s.Dir, found["munged"], slurmctld, found["slurmd"]}
	if os.Geteuid() != 0 {
		argv = append(argv, found["unshare"], fmt.Sprint(os.Geteuid()), fmt.Sprint(os.Getegid()))
	}
	s.Batch = "slurm"
	s.Env = append(s.Env, "SLURM_CONF="+filepath.Join(s.Dir, "slurm.conf"))
	s.part("slurm", askSlurm(s, found["sinfo"]), argv...).apart = true
}

// askSlurm returns a question that succeeds when the machine accepts jobs.
func askSlurm(s *System, sinfo string) question {
	return func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, sinfo, "--noheader", "--format=%t")
		cmd.Env = append(os.Environ(), s.Env...)
		state, err := outputOf(cmd)
		if err != nil {
			return err
		}
		if state != "idle" && state != "mix" && state != "alloc" {
			return fmt.Errorf("the machine is %q", state)
		}
		return nil
	}
}
