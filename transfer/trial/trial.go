// Package trial starts a coordinator and some sites on this machine, each in its own process: for
// demonstrations, scenarios, campaigns of faults and benchmarks. Closing the trial ends all of them
// and removes their files; they also end if this process is killed.
package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/internal/ports"
	"weir/link"
	"weir/link/emulator"
	"weir/transfer/client"
)

// Options describe the processes of a trial. The zero value is three sites A, B and C, with SQLite.
type Options struct {
	Program     []string     // weir, and the arguments before its own arguments; nil is this program
	Dir         string       // an existing folder for everything; "": a temporary folder, which Close removes
	Sites       []Site       // nil: A, B and C
	DB          string       // the value of weir coordinator --db; "": SQLite in Dir
	Coordinator []string     // more arguments of weir coordinator
	Agent       []string     // more arguments of each weir agent
	Env         []string     // more variables of the processes
	Log         io.Writer    // standard error of the processes, from several goroutines; nil: a file of each, in Dir
	Links       []link.Named // emulated links of the sites of these names to the coordinator and all other sites; see Links
	Idle        bool         // nothing is started: the caller starts the processes
}

// A Site is a site of a trial.
type Site struct {
	Name       string
	Root       string   // "": a folder with its name below Dir
	NoEndpoint bool     // other sites cannot connect to it
	Args       []string // more arguments of its agent
	Env        []string // more variables of its agent
}

// A Trial is a coordinator with its sites.
type Trial struct {
	o           Options
	dir         string
	made        bool // the trial has created the folder
	logs        []io.Closer
	ports       []*ports.Port
	coordinator *Process
	sites       map[string]*Process
	roots       map[string]string
	network     *emulator.Network // nil: there are no links

	mu     sync.Mutex
	client *client.Client
}

// Start starts the processes of o and waits until each site has registered with the coordinator.
// The caller closes the Trial.
func Start(ctx context.Context, o Options) (*Trial, error) {
	t := &Trial{o: o, dir: o.Dir, sites: map[string]*Process{}, roots: map[string]string{}}
	if len(t.o.Sites) == 0 {
		t.o.Sites = []Site{{Name: "A"}, {Name: "B"}, {Name: "C"}}
	}
	if err := t.start(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Trial) start(ctx context.Context) (err error) {
	if t.dir == "" {
		t.made = true
		if t.dir, err = os.MkdirTemp("", "weir-trial-"); err != nil {
			return err
		}
	}
	if len(t.o.Program) == 0 {
		exe, err := os.Executable()
		if err != nil {
			return fmt.Errorf("where is this program? %w", err)
		}
		t.o.Program = []string{exe}
	}
	if err := t.openLinks(ctx); err != nil {
		return err
	}
	var secret []string // on a command line all users could see the password
	if t.o.DB != "" {
		secret = append(secret, "WEIR_DB="+t.o.DB)
	}
	at, err := t.listen("")
	if err != nil {
		return err
	}
	if t.coordinator, err = t.process("coordinator", t.coordinatorArgs(at), secret); err != nil {
		return err
	}
	for _, s := range t.o.Sites {
		if err := t.addSite(s); err != nil {
			return err
		}
	}
	if t.o.Idle {
		return nil
	}
	if err := t.coordinator.Start(ctx); err != nil {
		return err
	}
	for _, s := range t.o.Sites {
		if err := t.sites[s.Name].Start(ctx); err != nil {
			return err
		}
	}
	return t.Ready(ctx)
}

// addSite creates the folder of a site, and its process.
func (t *Trial) addSite(s Site) (err error) {
	root := s.Root
	if root == "" {
		root = filepath.Join(t.dir, "site-"+s.Name)
		if err := os.MkdirAll(root, 0o750); err != nil {
			return err
		}
	}
	t.roots[s.Name] = root
	args, err := t.agentArgs(s)
	if err != nil {
		return err
	}
	t.sites[s.Name], err = t.process("agent-"+s.Name, args, s.Env)
	if at := t.at(s.Name); at != nil && err == nil {
		t.sites[s.Name].begin = at.Start
	}
	return err
}

func (t *Trial) process(name string, args, env []string) (*Process, error) {
	log := t.o.Log
	if log == nil {
		f, err := os.OpenFile(filepath.Join(t.dir, name+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		t.logs, log = append(t.logs, f), f
	}
	return &Process{name: name, program: t.o.Program, args: args, env: slices.Concat(t.Env(), t.o.Env, env), log: log}, nil
}

// Env returns the environment in which weir finds this coordinator.
func (t *Trial) Env() []string {
	mine := func(v string) bool { return strings.HasPrefix(v, "WEIR_") }
	return append(slices.DeleteFunc(os.Environ(), mine), "WEIR_CONFIG="+t.ConfigFile())
}

// ConfigFile returns the file in which the coordinator writes its address, in the format of
// [client.Read].
func (t *Trial) ConfigFile() string { return filepath.Join(t.dir, "coordinator.json") }

func (t *Trial) coordinatorArgs(at string) []string {
	args := []string{"coordinator", "--while-stdin", "--state", filepath.Join(t.dir, "coordinator"), "--listen", at}
	return append(args, t.o.Coordinator...)
}

func (t *Trial) agentArgs(s Site) ([]string, error) {
	args := []string{"agent", "--while-stdin", "--site", s.Name, "--root", t.roots[s.Name]}
	if s.NoEndpoint {
		args = append(args, "--no-endpoint")
	} else {
		at, err := t.listen(s.Name)
		if err != nil {
			return nil, err
		}
		args = append(args, "--listen", at)
	}
	return append(append(args, t.o.Agent...), s.Args...), nil
}

// Ready waits until the coordinator responds and all running sites have registered.
func (t *Trial) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for {
		up, err := t.up(ctx)
		if err == nil && up {
			return nil
		}
		last = err
		if !pause.For(ctx, 20*time.Millisecond) {
			return errors.Join(fmt.Errorf("the trial is not ready: %w", ctx.Err()), last)
		}
	}
}

func (t *Trial) up(ctx context.Context) (bool, error) {
	c, err := t.Client()
	if err != nil {
		return false, err
	}
	sites, err := c.Sites(ctx)
	if err != nil {
		return false, err
	}
	known := map[string]bool{}
	for _, s := range sites {
		known[s.Name] = s.Up
	}
	for name, p := range t.sites {
		if p.Running() && !known[name] {
			return false, nil
		}
	}
	return true, nil
}

// Client returns a client of the coordinator with all rights. Close ends it. It may be called by
// several goroutines at once.
func (t *Trial) Client() (*client.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client != nil {
		return t.client, nil
	}
	conf, err := client.Read(t.ConfigFile())
	if err != nil {
		return nil, err
	}
	t.client, err = client.New(conf)
	return t.client, err
}

// Coordinator returns the coordinator's process.
func (t *Trial) Coordinator() *Process { return t.coordinator }

// Site returns the process of a site's agent, or nil if there is no such site.
func (t *Trial) Site(name string) *Process { return t.sites[name] }

// Root returns the folder of a site.
func (t *Trial) Root(name string) string { return t.roots[name] }

// Dir returns the folder that contains everything.
func (t *Trial) Dir() string { return t.dir }

// Close ends all processes and removes the folder, if the trial has made it.
func (t *Trial) Close() error {
	var errs []error
	if t.client != nil {
		t.client.Close()
	}
	for _, p := range t.sites {
		if p != nil {
			errs = append(errs, p.Kill())
		}
	}
	if t.coordinator != nil {
		errs = append(errs, t.coordinator.Kill())
	}
	if t.network != nil {
		errs = append(errs, t.network.Close())
	}
	for _, p := range t.ports {
		p.Free()
	}
	for _, f := range t.logs {
		errs = append(errs, f.Close())
	}
	if t.made && t.dir != "" {
		errs = append(errs, os.RemoveAll(t.dir))
	}
	return errors.Join(errs...)
}
