package batchtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/loadtest/cluster/batch"
)

// A Place describes a system under test to the suite.
type Place struct {
	System  batch.System
	Folder  string   // for submissions; "": any temporary folder
	Hosts   []string // of each submission
	Options []string
	Dies    bool // whether workers end with the process that submitted them
}

const (
	secret   = `{"token": "a secret that stays where it belongs"}`
	patience = 2 * time.Minute
)

// Run runs the suite.
func Run(t *testing.T, p Place) {
	t.Run("Ends", func(t *testing.T) { ends(t, p) })
	t.Run("Removed", func(t *testing.T) { removed(t, p) })
	t.Run("Killed", func(t *testing.T) { killed(t, p) })
	t.Run("Wrong", func(t *testing.T) { wrong(t, p) })
}

// A Case is a submission of the suite.
type Case struct {
	batch.Work
	Traces string // folder where workers leave their traces
}

// Work returns a submission of count workers that carry out the words.
func (p Place) Work(t *testing.T, count int, words ...string) Case {
	t.Helper()
	dir := p.Folder
	if dir == "" {
		dir = t.TempDir()
	} else {
		var err error
		if dir, err = os.MkdirTemp(dir, "case"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	c := Case{Traces: t.TempDir()} // workers see this folder, even if they see no other
	hidden := filepath.Join(dir, "hidden")
	file := filepath.Join(hidden, "secret.json")
	self, err := os.Executable()
	if err := errors.Join(err, os.Mkdir(hidden, 0o700), os.WriteFile(file, []byte(secret), 0o600)); err != nil {
		t.Fatal(err)
	}
	c.Work = batch.Work{
		Name: "a test", Dir: filepath.Join(dir, "the batch"), Program: self, Args: append([]string{"work", c.Traces}, words...),
		Files: []string{file}, Count: count, Options: p.Options, Hosts: p.Hosts,
	}
	return c
}

// Trace reads the trace of worker n; ok is false if it does not exist yet.
func (c Case) Trace(n int) (t Trace, ok bool) {
	text, err := os.ReadFile(filepath.Join(c.Traces, strconv.Itoa(n)))
	return t, err == nil && json.Unmarshal(text, &t) == nil
}

// Await waits until ok.
func Await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// running waits until all workers have left their traces, and returns these.
func (c Case) running(t *testing.T) (all []Trace) {
	t.Helper()
	for n := range c.Count {
		Await(t, fmt.Sprintf("worker %d runs", n), func() bool { _, ok := c.Trace(n); return ok })
		trace, _ := c.Trace(n)
		all = append(all, trace)
	}
	return all
}

// gone fails t unless the workers and their folders go away.
func (c Case) gone(t *testing.T) {
	t.Helper()
	for n := range c.Count {
		trace, ok := c.Trace(n)
		if !ok {
			continue
		}
		Await(t, fmt.Sprintf("the process of worker %d is gone", n), func() bool { return !trace.alive(c.Traces) })
		Await(t, fmt.Sprintf("%s is gone", trace.Folder), func() bool { _, err := os.Stat(trace.Folder); return errors.Is(err, fs.ErrNotExist) })
	}
}

// alive reports whether a worker of ours runs.
func (t Trace) alive(traces string) bool { return t.Outside(traces) > 0 }

// hasFolder reports whether the working folder of a worker of ours exists, which may be in a
// container.
func (t Trace) hasFolder(traces string) bool {
	at, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", t.Outside(traces)))
	if err != nil { // a process of another user
		_, err = os.Stat(t.Folder)
		return err == nil
	}
	return at == t.Folder
}

// Outside returns the worker's process id in the namespace of this process, 0 if it does not run.
// The worker itself may have another id in its own namespace.
func (t Trace) Outside(traces string) int {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		environ, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "environ"))
		line, err := os.ReadFile(f)
		if err == nil && bytes.Contains(line, []byte("\x00work\x00"+traces+"\x00")) &&
			bytes.Contains(environ, []byte("WEIR_WORKER="+t.Number+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			return pid
		}
	}
	return 0
}

// A Log records the changes that Follow reports.
type Log struct {
	mu  sync.Mutex
	All []batch.Change
}

// Add records a change.
func (l *Log) Add(c batch.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.All = append(l.All, c)
}

// Of returns the changes of a worker.
func (l *Log) Of(worker int) (all []batch.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.All {
		if c.Worker == worker {
			all = append(all, c)
		}
	}
	return all
}

// States returns the states of a worker, one after the other.
func (l *Log) States(worker int) (all []batch.State) {
	for _, c := range l.Of(worker) {
		all = append(all, c.State)
	}
	return slices.Compact(all)
}

func (p Place) submit(t *testing.T, c Case) batch.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	j, err := p.System.Submit(ctx, c.Work)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := j.Remove(ctx); err != nil {
			t.Errorf("remove: %v", err)
		}
		c.noSecret(t)
	})
	return j
}

// noSecret fails t if the secret is in the files of the submission.
func (c Case) noSecret(t *testing.T) {
	t.Helper()
	_ = filepath.WalkDir(c.Dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil || strings.Contains(string(text), "stays where it belongs") {
				t.Errorf("%s has the secret (%v)", path, err)
			}
		}
		return nil
	})
}

// odd returns arguments with characters that are special in shells and submit files.
func odd() []string {
	return []string{"leave", "", "a b", "it's", `"quoted"`, `back\slash`, "$HOME", "$(date)", "`date`", "!", "*", "%d", "ü", "a,b;c|d&e>f<g",
		"$(Process)", "#", "~", "-x", "''", " "}
}

func ends(t *testing.T, p Place) {
	words := append(odd(), "exit")
	c := p.Work(t, 3, words...)
	j := p.submit(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var log Log
	if err := j.Follow(ctx, log.Add); err != nil {
		t.Fatalf("follow: %v\n%v", err, log.All)
	}
	for n := range 3 {
		trace, ok := c.Trace(n)
		if !ok {
			t.Fatalf("worker %d has left no trace: %+v", n, log.All)
		}
		if trace.Number != strconv.Itoa(n) || trace.Job == "" || trace.Secret != len(secret) || trace.Mode != "-rw-------" ||
			!slices.Equal(trace.Args, words) {
			t.Errorf("worker %d: %+v", n, trace)
		}
		want := batch.Ended
		if n > 0 {
			want = batch.Failed
		}
		if got := log.States(n); !slices.Equal(got, []batch.State{batch.Queued, batch.Running, want}) {
			t.Errorf("worker %d: %v", n, log.Of(n))
		}
		all := log.Of(n)
		last := all[len(all)-1]
		if last.Exit != n || last.JobID != trace.Job || last.Host == "" || last.Time.IsZero() || time.Since(last.Time) > patience {
			t.Errorf("worker %d (job %q): %+v", n, trace.Job, last)
		}
		c.has(t, n, "stdout", fmt.Sprintf("worker %d was here\n", n))
		c.has(t, n, "stderr", fmt.Sprintf("worker %d ends as requested\n", n))
		if _, err := os.Stat(filepath.Join(c.Dir, "out", strconv.Itoa(n), "result.txt")); err == nil {
			t.Errorf("worker %d: a file that it has left was brought back", n)
		}
	}
	if got := j.Counts(); got.Ended != 1 || got.Failed != 2 || got.Left() != 0 || len(got.Away) == 0 {
		t.Errorf("counts: %+v", got)
	}
	c.gone(t)
}

func (c Case) has(t *testing.T, worker int, name, want string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Dir, "out", strconv.Itoa(worker), name))
	if err != nil || string(text) != want {
		t.Errorf("worker %d has left %s with %q, %v; want %q", worker, name, text, err, want)
	}
}

func removed(t *testing.T, p Place) {
	c := p.Work(t, 2, "hang")
	other := p.Work(t, 1, "hang") // which must not be touched
	j, k := p.submit(t, c), p.submit(t, other)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	var log Log
	followed, others := make(chan error), make(chan error)
	go func() { followed <- j.Follow(ctx, log.Add) }()
	go func() { others <- k.Follow(ctx, func(batch.Change) {}) }()
	defer func() {
		cancel()
		if err := <-others; !errors.Is(err, context.Canceled) {
			t.Errorf("the other submission: %v", err)
		}
	}()
	c.running(t)
	trace := other.running(t)[0]
	Await(t, "both are told to run", func() bool { return j.Counts().Running == 2 })
	for range 2 {
		if err := j.Remove(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if got := log.States(n); !slices.Equal(got, []batch.State{batch.Queued, batch.Running, batch.Removed}) {
			t.Errorf("worker %d: %+v", n, log.Of(n))
		}
	}
	c.gone(t)
	if k.Counts().Left() != 1 || !trace.alive(other.Traces) || !trace.hasFolder(other.Traces) {
		t.Errorf("the other submission: %+v", k.Counts())
	}
}

// kill submits c from a process of its own, which is killed when the workers run.
func (p Place) kill(t *testing.T, c Case) {
	t.Helper()
	plan := filepath.Join(c.Traces, "plan.json")
	text, _ := json.Marshal(c.Work)
	if err := os.WriteFile(plan, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(c.Program, "submit", p.System.Name(), plan)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	c.running(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

func killed(t *testing.T, p Place) {
	c := p.Work(t, 2, "hang")
	p.kill(t, c)
	if p.Dies {
		c.gone(t) // also if Find is never called
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := p.System.Submit(ctx, c.Work); err == nil {
		t.Error("what a killed run has left may still be there, and its folder was used again")
	}
	j, err := p.System.Find(ctx, c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var log Log
	followed := make(chan error)
	go func() { followed <- j.Follow(ctx, log.Add) }()
	if !p.Dies {
		Await(t, "the found workers are told to run", func() bool { return j.Counts().Running == 2 })
	}
	if err := errors.Join(j.Remove(ctx), <-followed); err != nil {
		t.Fatal(err)
	}
	if got := j.Counts(); got.Removed != 2 {
		t.Errorf("%+v: %v", got, log.All)
	}
	c.gone(t)
	c.noSecret(t)
	again, err := p.System.Find(ctx, c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(again.Remove(ctx), again.Follow(ctx, func(batch.Change) {})); err != nil {
		t.Errorf("again: %v", err)
	}
	c.Args[len(c.Args)-1] = "leave"
	next := p.submit(t, c) // an ended submission does not block its folder
	if err := next.Follow(ctx, log.Add); err != nil || next.Counts().Ended != 2 {
		t.Errorf("%v, %+v", err, next.Counts())
	}
}

func wrong(t *testing.T, p Place) {
	ctx := t.Context()
	if _, err := p.System.Find(ctx, t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("found where nothing was submitted: %v", err)
	}
	for what, change := range map[string]func(*batch.Work){
		"no workers": func(w *batch.Work) { w.Count = 0 },
		"no program": func(w *batch.Work) { w.Program = filepath.Join(w.Dir, "none") },
		"not a file": func(w *batch.Work) { w.Files = []string{t.TempDir()} },
		"file twice": func(w *batch.Work) { w.Files = append(w.Files, w.Files[0]) },
	} {
		c := p.Work(t, 1, "leave")
		change(&c.Work)
		j, err := p.System.Submit(ctx, c.Work)
		if err == nil {
			t.Errorf("%s: submitted", what)
			_ = j.Remove(ctx)
		}
		if _, err := os.Stat(c.Dir); err == nil {
			t.Errorf("%s: %s was made", what, c.Dir)
		}
	}
}
