package shell

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/cluster/batch"
	"weir/loadtest/cluster/batch/batchtest"
)

func TestMain(m *testing.M) { batchtest.Main(m, Local(), SSH()) }

func TestLocal(t *testing.T) {
	tier.Slow(t, "starts processes")
	batchtest.Run(t, batchtest.Place{System: Local(), Dies: true})
	t.Run("Deaf", deaf)
}

// A worker that ignores the request to end is killed, with all processes that it has started.
func deaf(t *testing.T) {
	c := batchtest.Place{}.Work(t, 1, "deaf")
	j, err := Local().Submit(t.Context(), c.Work)
	require.NoError(t, err)
	batchtest.Await(t, "the worker runs", func() bool { _, ok := c.Trace(0); return ok })
	if err := j.Remove(t.Context()); err != nil || j.Counts().Removed != 1 {
		t.Errorf("%v: %+v", err, j.Counts())
	}
	trace, _ := c.Trace(0)
	if _, err := os.Stat(trace.Folder); trace.Outside(c.Traces) > 0 || err == nil {
		t.Errorf("%+v is still there", trace)
	}
}

func TestSSH(t *testing.T) {
	nodes := labtest.Start(t, lab.SSHConfig{Nodes: 2})
	labtest.Use(t, nodes)
	t.Setenv("TMPDIR", t.TempDir())
	batchtest.Run(t, batchtest.Place{System: SSH(), Dies: true, Hosts: []string{"node1", "node2"}})
	t.Run("Unreachable", unreachable)
	t.Run("NodeLost", func(t *testing.T) { nodeLost(t, nodes) })
}

// An unreachable machine is reported with ssh's own message; the workers on other machines run.
func unreachable(t *testing.T) {
	c := batchtest.Place{Hosts: []string{"node1", "no-such-node.invalid"}}.Work(t, 3, "leave")
	j, err := SSH().Submit(t.Context(), c.Work)
	require.NoError(t, err)
	var log batchtest.Log
	if err := errors.Join(j.Follow(t.Context(), log.Add), j.Remove(t.Context())); err != nil {
		t.Error(err)
	}
	away := strings.Join(j.Counts().Away, "\n")
	if n := j.Counts(); n.Ended != 2 || n.Failed != 1 ||
		!strings.Contains(away, "worker 1 failed: no-such-node.invalid: ssh: Could not resolve hostname") {
		t.Errorf("%+v", n)
	}
	if trace, _ := c.Trace(2); trace.Host != "node1" {
		t.Errorf("%+v", trace)
	}
	c.Hosts, c.Dir = c.Hosts[1:], c.Dir+"2"
	if _, err := SSH().Submit(t.Context(), c.Work); err == nil || !strings.Contains(err.Error(), "Could not resolve hostname") {
		t.Errorf("nobody there: %v", err)
	}
	if s, err := batch.ReadSubmission(c.Dir, "ssh"); err != nil || !s.Over {
		t.Errorf("%+v, %v", s, err)
	}
}

// The loss of a machine is reported, and the workers on other machines go on.
func nodeLost(t *testing.T, nodes *lab.System) {
	c := batchtest.Place{Hosts: []string{"node1", "node2"}}.Work(t, 2, "hang")
	j, err := SSH().Submit(t.Context(), c.Work)
	require.NoError(t, err)
	for n := range 2 {
		batchtest.Await(t, "the worker runs", func() bool { _, ok := c.Trace(n); return ok && j.Counts().Running == 2 })
	}
	require.NoError(t, nodes.KillPart("node2"))
	batchtest.Await(t, "the loss is told", func() bool { return j.Counts().Failed == 1 })
	if n := j.Counts(); n.Running != 1 || !strings.Contains(n.Away[0], "node2") && !strings.Contains(n.Away[0], "onnection") {
		t.Errorf("%+v", n)
	}
	if err := j.Remove(t.Context()); err == nil || !strings.Contains(err.Error(), "node2") {
		t.Errorf("what may be on a machine that is gone was removed: %v", err)
	}
	if n := j.Counts(); n.Removed != 1 || n.Left() != 0 {
		t.Errorf("%+v", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = j.Follow(ctx, func(batch.Change) {}) // it returns
}

// Outputs are only written to their folders, for all paths that an archive may contain.
func TestUnpack(t *testing.T) {
	w := batch.Work{Dir: t.TempDir(), Program: os.Args[0], Count: 2}
	sub, err := batch.Begin("local", &w)
	require.NoError(t, err)
	for name, good := range map[string]bool{"0/stdout": true, "./1/stderr": true, "1/r.json": false, "2/stdout": false,
		"../stdout": false, "0/../../x": false,
		"/etc/stdout": false, "0/other": false, "stdout": false, "-1/stdout": false} {
		var b bytes.Buffer
		tw := tar.NewWriter(&b)
		_ = tw.WriteHeader(&tar.Header{Name: name, Size: 1, Mode: 0o644})
		_, _ = tw.Write([]byte("x"))
		_ = tw.Close()
		if err := unpack(&b, sub, []int{0, 1}); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	_ = tw.WriteHeader(&tar.Header{Name: "0/stdout", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})
	_ = tw.Close()
	if err := unpack(&b, sub, []int{0}); err == nil {
		t.Error("a link was taken")
	}
	if all, _ := filepath.Glob(filepath.Join(w.Dir, "out/*/*")); len(all) != 2 {
		t.Errorf("there is %v", all)
	}
}

func FuzzIsFolder(f *testing.F) {
	f.Add("/tmp/weir-abc.12")
	f.Fuzz(func(t *testing.T, path string) {
		if isFolder(path, "weir-abc") && strings.ContainsAny(path, " \t\n'\"$`;&|<>*?!\\") {
			t.Errorf("%q", path)
		}
	})
}

// If a controller is gone before its worker's shell has written the first word, no worker is left.
func TestControllerIsGoneAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "host")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "weir"), []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".run"), []byte(runScript([]string{"worker"})), 0o600))
	in, line, err := os.Pipe()
	require.NoError(t, err)
	reader, out, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", filepath.Join(dir, ".run"), "0", "id")
	cmd.Stdin, cmd.Stdout = in, out
	require.NoError(t, reader.Close())
	require.NoError(t, line.Close())
	require.NoError(t, cmd.Start())
	require.NoError(t, errors.Join(in.Close(), out.Close()))
	err = cmd.Wait()
	if pid, err := os.ReadFile(filepath.Join(dir, "0", ".pid")); err == nil {
		_ = exec.CommandContext(t.Context(), "kill", strings.TrimSpace(string(pid))).Run()
		t.Errorf("worker %s was left", pid)
	}
	if _, gone := os.Stat(dir); !errors.Is(gone, fs.ErrNotExist) {
		t.Errorf("the folder is still there, %v; the shell ended with %v", gone, err)
	}
}
