package lab

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed slurm.conf
var slurmConf string

//go:embed slurm.sh
var slurmScript string

// SlurmConfig says which Slurm is wanted; its zero value is a good one.
type SlurmConfig struct {
	Config
	CPUs  int    // that its one machine claims to have: tasks that run at once; 0 means 256
	Extra string // lines of configuration, in Slurm's own language
}

// Slurm starts a Slurm of one machine, this one, with a munged of its own. Jobs
// run as whoever started it, root, too, and end with it.
//
// Env has SLURM_CONF, with which sbatch and its companions are this Slurm's.
func Slurm(ctx context.Context, c SlurmConfig) (*System, error) {
	if c.TLS {
		return nil, errors.New("lab: slurm: TLS is not offered here: leave it off")
	}
	c.ours = true
	if c.Ready <= 0 {
		c.Ready = time.Minute
	}
	return c.launch(ctx, "slurm", "slurmctld", func(s *System, program string) { s.slurm(c, program) }, "state", "spool", "log", "run")
}

// slurmPrograms are what Slurm needs.
func slurmPrograms() []string {
	return []string{"slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "sinfo", "mount", "unshare", namespaces}
}

type slurmValues struct {
	Dir, Host, User, Extra string
	Control, Node          *port
	CPUs, Memory           int
}

func (s *System) slurm(c SlurmConfig, slurmctld string) {
	found, err := c.programs(slurmPrograms())
	s.fail(err)
	host, err := os.Hostname()
	s.fail(err)
	host, _, _ = strings.Cut(host, ".")
	v := slurmValues{Dir: s.Dir, Host: host, User: s.me().Username, Extra: c.Extra, CPUs: c.CPUs, Control: s.newPort(false), Node: s.newPort(false)}
	if v.CPUs <= 0 {
		v.CPUs = 256
	}
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
	s.part("slurm", s.askSlurm(found["sinfo"]), argv...).apart = true
}

// askSlurm returns a question that is answered when the machine takes jobs.
func (s *System) askSlurm(sinfo string) question {
	return func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, sinfo, "--noheader", "--format=%t")
		cmd.Env = append(os.Environ(), s.Env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("sinfo: %w: %s", err, out)
		}
		if state := strings.TrimSpace(string(out)); state != "idle" && state != "mix" && state != "alloc" {
			return fmt.Errorf("the machine is %q", state)
		}
		return nil
	}
}
