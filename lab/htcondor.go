package lab

import (
	"context"
	_ "embed"
	"errors"
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

// MaxSlots is how many jobs a pool or a Slurm can be told to run at once.
const MaxSlots = 10_000

// HTCondorConfig says which pool is wanted; its zero value is a good one.
type HTCondorConfig struct {
	Config
	Slots int    // jobs of one processor that run at once; 0 means 200
	Extra string // lines of configuration, in HTCondor's own language
}

// HTCondor starts a personal pool of HTCondor: all its daemons, one machine that
// claims to have as many processors as there are slots, and jobs that run on this
// machine in truth, with its network. It is the HTCondor that `make needs` has
// unpacked, in namespaces of its own, so that nothing outlives it.
//
// Env has the PATH with which condor_submit and its companions are this pool's.
// They, the jobs and the machine outside see the same files at the same paths, but
// for /usr. Inside, whoever started the pool is the plain user that owns what is
// theirs outside; jobs have no privilege even where root started the pool.
func HTCondor(ctx context.Context, c HTCondorConfig) (*System, error) {
	if c.TLS {
		return nil, errors.New("lab: htcondor: TLS is not offered here: leave it off")
	}
	c.ours = true
	if c.Ready <= 0 {
		c.Ready = time.Minute // six daemons, on a machine that may be busy
	}
	return c.launch(ctx, "htcondor", "unshare", func(s *System, _ string) { s.htcondor(c) },
		"pool/log", "pool/spool", "pool/execute", "pool/run", "pool/lock", "etc", "root", "bin")
}

// condorPrograms are what a pool needs beside what is unpacked.
func condorPrograms() []string {
	return []string{"unshare", "nsenter", "mount", "condor_master", namespaces}
}

type condorValues struct {
	Dir, Port, User, Extra string
	Slots, Memory          int
	UID, GID               int
	Root                   bool
}

func (s *System) htcondor(c HTCondorConfig) {
	_, err := c.programs(condorPrograms())
	s.fail(err)
	unpacked, err := unpackedCondor()
	s.fail(err)
	v := condorValues{Dir: s.Dir, Port: s.newPort(false).String(), Extra: c.Extra, Slots: c.Slots, Root: os.Geteuid() == 0, User: "weir", UID: plainUser, GID: plainUser}
	if !v.Root {
		v.User, v.UID, v.GID = s.me().Username, os.Geteuid(), os.Getegid()
	}
	if v.Slots <= 0 {
		v.Slots = 200
	}
	v.Memory = v.Slots * 64 // MB, which nothing checks
	s.condorFiles(v, unpacked)
	s.Env = append(s.Env, "PATH="+filepath.Join(s.Dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	s.Batch = "htcondor"
	s.settled = s.poolReady(v.Slots)
	s.part("pool", askFiles(filepath.Join(s.Dir, "pool/spool/.schedd_address"), filepath.Join(s.Dir, "pool/log/.startd_address")),
		"/bin/sh", "-c", poolScript, "pool", unpacked, s.Dir, fmt.Sprint(v.UID), fmt.Sprint(v.GID)).apart = true
}

// condorFiles writes the pool's configuration, what it sees in /etc, and the programs with which it is used from outside.
func (s *System) condorFiles(v condorValues, unpacked string) {
	host, err := os.Hostname()
	s.fail(err)
	for name, text := range map[string]string{
		"etc/passwd":        "root:x:0:0:root:/root:/bin/bash\n{{.User}}:x:{{.UID}}:{{.GID}}:weir:{{.Dir}}:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n",
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

// poolReady returns a question that is answered when the pool's collector knows
// of all slots and of the daemon that takes jobs.
func (s *System) poolReady(slots int) question {
	return func(ctx context.Context) error {
		out, err := exec.CommandContext(ctx, filepath.Join(s.Dir, "bin/condor_status"), "-any", "-af", "MyType", "TotalCpus").CombinedOutput()
		if err != nil {
			return fmt.Errorf("condor_status: %w: %s", err, out)
		}
		said := strings.Fields(string(out))
		for i, word := range said[:max(0, len(said)-1)] {
			if n, err := strconv.ParseFloat(said[i+1], 64); word == "Machine" && err == nil && int(n) == slots && strings.Contains(string(out), "Scheduler") {
				return nil
			}
		}
		return fmt.Errorf("the pool knows only of %q", said)
	}
}

// askFiles returns a question that is answered when all of these files are there.
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

// unpackedCondor is the folder in which `make needs` has unpacked HTCondor.
func unpackedCondor() (string, error) {
	dir, err := built("condor")
	if err != nil {
		return "", &MissingError{Program: "condor_master", How: "make needs (where the source of weir is)"}
	}
	return dir, nil
}
