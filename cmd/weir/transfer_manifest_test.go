package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/trial"
)

// For any number of files in a request, a command that prints its manifest, or writes it into a
// file, keeps only a few files in memory, and its output is one complete document.
func TestManifestsAreNotKeptInMemory(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	r := rooms(t, trial.Options{Idle: true})
	require.NoError(t, errors.Join(r.Coordinator().Start(t.Context()), r.Ready(t.Context())))
	c, err := r.Client()
	require.NoError(t, err)
	const files = 60_000
	for _, site := range []string{"A", "B"} {
		if _, err := c.Register(t.Context(), transfer.Register{Site: site, Session: "one"}); err != nil {
			t.Fatal(err)
		}
	}
	in := transfer.NewFiles{Dataset: "/run", Site: "A"}
	for i := range files {
		in.Files = append(in.Files, transfer.NewFile{File: catalog.File{Name: fmt.Sprintf("/run/%s/%06d", strings.Repeat("long", 25), i),
			Size: 1e6, Adler: "00000001"}})
		if len(in.Files) == transfer.MaxNewFiles || i == files-1 {
			if _, err := c.AddFiles(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			in.Files = in.Files[:0]
		}
	}
	id := r.submits(transfer.Submission{Dataset: "/run", To: "B", Approve: true, Key: "one"})
	for end := time.Now().Add(2 * time.Minute); ; <-time.After(20 * time.Millisecond) {
		if q, err := c.Request(t.Context(), id); err == nil && q.Status == transfer.Running {
			break
		} else if err != nil || time.Now().After(end) {
			t.Fatalf("its files are not written down: %+v, %v", q, err)
		}
	}
	if _, err := c.Cancel(t.Context(), id, ""); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.Dir(), "manifest.json")
	r.heap(3, "transfer", "manifest", strconv.FormatInt(id, 10), "--json")
	r.heap(3, "transfer", "submit", "/run", "--to", "B", "--key", "one", "--wait", "--quiet", "--manifest", file)
	r.heap(3, "transfer", "submit", "/run", "--to", "B", "--key", "one", "--wait", "--quiet", "--json")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var m transfer.Manifest
	if err := json.Unmarshal(text, &m); err != nil || len(m.Items) != files || m.Digest != digestOf(m.Items) ||
		m.Request.Status != transfer.Cancelled {
		t.Errorf("the file has %d files, %+v, digest %s: %v", len(m.Items), m.Request, m.Digest, err)
	}
	if parts, _ := filepath.Glob(file + ".*"); len(parts) > 0 {
		t.Errorf("what is left over: %v", parts)
	}
}

// heap calls the command, and fails the test unless its heap remained small.
func (r *moving) heap(code exitCode, args ...string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "weir", args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir = append(r.Env(), "GODEBUG=gctrace=1"), &stdout, &stderr, r.Dir()
	if err := cmd.Run(); exitCode(cmd.ProcessState.ExitCode()) != code {
		r.t.Errorf("weir %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	most, times := 0, 0
	// gc 5 @0.134s 2%: ... ms cpu, 4->5->2 MB, 5 MB goal, ...: the heap before and after the
	// collection, and the live heap (package runtime)
	for _, m := range regexp.MustCompile(`(?m)^gc .* (\d+)->(\d+)->\d+ MB`).FindAllStringSubmatch(stderr.String(), -1) {
		for _, text := range m[1:] {
			mb, _ := strconv.Atoi(text) // they are digits
			most = max(most, mb)
		}
		times++
	}
	r.t.Logf("weir %s: %d MB printed, heap of at most %d MB, collected %d times", strings.Join(args, " "), stdout.Len()>>20, most, times)
	if times == 0 || most > 16 {
		r.t.Errorf("weir %s: its heap had %d MB", strings.Join(args, " "), most)
	}
}

// digestOf returns the digest of a manifest with these files, which are sorted by name.
func digestOf(items []transfer.Item) string {
	sum := transfer.NewManifestHash()
	for _, one := range items {
		sum.Add(one)
	}
	return sum.Digest()
}
