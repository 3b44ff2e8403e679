// Package shell starts workers in shells: on machines that ssh reaches, in processes of this
// machine, or on the nodes of an allocation. Any program can be used that runs a command line in a
// shell and connects its standard streams. The machines need only programs that every Unix has: sh,
// tar, mktemp.
//
// On each machine program and files are placed in one private folder. Each worker has a connection
// of its own. A word on the connection ends the worker, and so does the end of the connection,
// after which nothing of the worker stays. So the workers of a killed run end with it.
package shell

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/loadtest/cluster/batch"
)

// A System starts workers in shells.
type System struct {
	name string
	// reach returns the program with its arguments to which a command line for the shell of a host
	// is added.
	reach func(host string, options []string) []string
	here  bool // the workers run on this machine only
	// unpack returns the command line that unpacks the transferred archive on a host and prints its
	// folder.
	unpack func(host, tag string) string
	id     func(worker int) string // nil: from its host
}

// SSH reaches machines with the ssh on PATH and the user's own configuration (keys, ports, known
// hosts), and never with a password prompt. Work.Options are further lines of ssh_config, such as
// "Port 2222".
func SSH() *System {
	return &System{name: "ssh", unpack: unpackLine, reach: func(host string, options []string) []string {
		// ssh uses the first value of an option: users cannot change these, but the options below.
		argv := []string{"ssh", "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "ControlPath=none", "-o", "ClearAllForwardings=yes", "-o",
			"RemoteCommand=none"}
		for _, o := range append(slices.Clone(options), "ConnectTimeout=20", "ServerAliveInterval=15") {
			argv = append(argv, "-o", o)
		}
		return append(argv, "--", host)
	}}
}

// Local starts processes of this machine.
func Local() *System {
	return &System{name: "local", here: true, unpack: unpackLine, reach: func(string, []string) []string { return []string{"/bin/sh", "-c"} }}
}

// Name implements batch.System.
func (s *System) Name() string { return s.name }

// Submit implements batch.System. Machines that cannot be reached are reported by the Job; it is an
// error if no machine can be reached.
func (s *System) Submit(ctx context.Context, w batch.Work) (batch.Job, error) {
	switch {
	case s.here:
		w.Hosts, w.Options = []string{"localhost"}, nil
	case len(w.Hosts) == 0:
		return nil, fmt.Errorf("%s needs to know the machines", s.name)
	}
	sub, err := batch.Begin(s.name, &w)
	if err != nil {
		return nil, err
	}
	j := newJob(s, sub)
	hosts := machines(sub)
	errs := make([]error, len(hosts))
	var wait sync.WaitGroup
	atOnce := make(chan struct{}, 16)
	for i, h := range hosts {
		wait.Go(func() {
			atOnce <- struct{}{}
			errs[i] = batch.Retry(ctx, s.name, func() error { return j.prepare(ctx, h, &w) }, nil)
			<-atOnce
		})
	}
	wait.Wait()
	for i, h := range hosts {
		if errs[i] != nil {
			j.lost(h, errs[i])
		}
	}
	err = errors.Join(sub.Write(), ctx.Err())
	if !slices.Contains(errs, nil) {
		err = errors.Join(append(errs, err)...)
	}
	if err != nil {
		clearing, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearPatience)
		defer cancel()
		return nil, errors.Join(err, j.clear(clearing))
	}
	for i, h := range hosts {
		if errs[i] == nil {
			j.wait.Go(func() {
				err := j.host(h)
				j.mu.Lock()
				defer j.mu.Unlock()
				j.failed = errors.Join(j.failed, err)
			})
		}
	}
	go j.end()
	return j, nil
}

// clearPatience is the time limit for removing a folder on a machine.
const clearPatience = 30 * time.Second

// Find implements batch.System. The workers of a killed run have ended with it; the Job only serves
// to Remove folders that a worker may have left.
func (s *System) Find(_ context.Context, dir string) (batch.Job, error) {
	sub, err := batch.ReadSubmission(dir, s.name)
	if err != nil {
		return nil, err
	}
	if len(sub.Hosts) == 0 {
		return nil, fmt.Errorf("%s: not a submission of weir: no machines", dir)
	}
	j := newJob(s, sub)
	j.found = true
	for i := range sub.Count {
		j.Note(batch.Change{Worker: i, State: batch.Removed, Host: sub.Hosts[i%len(sub.Hosts)],
			Reason: "it ended with the run that had started it"})
	}
	go j.end()
	return j, nil
}

// machines returns the hosts of a submission that have workers, each once.
func machines(sub *batch.Submission) []string {
	var all []string
	for _, h := range sub.Hosts[:min(sub.Count, len(sub.Hosts))] {
		if !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	return all
}

// folder matches the path of a folder that mktemp made; its group is the template without the random suffix.
var folder = regexp.MustCompile(`^/[A-Za-z0-9_./+@-]*/([^/]+)\.[A-Za-z0-9]+$`)

// isFolder reports whether the path that a machine has printed is such a folder: the path is used
// in command lines.
func isFolder(path, tag string) bool {
	m := folder.FindStringSubmatch(path)
	return m != nil && m[1] == tag && !strings.Contains(path, "/../")
}
