package command_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/storage"
	"weir/storage/command"
	"weir/storage/storagetest"
)

// heard is a Progress that records its calls.
type heard struct {
	moved   int64
	calls   int
	phases  []storage.Phase
	onMoved func()
}

func (h *heard) Reached(p storage.Phase) { h.phases = append(h.phases, p) }
func (h *heard) ServedBy(string)         {}
func (h *heard) Moved(n int) {
	h.moved += int64(n)
	h.calls++
	if h.onMoved != nil {
		h.onMoved()
	}
}

// client opens a command on a URL that need not have a listener.
func client(t *testing.T, where string, argv ...string) storage.Client {
	t.Helper()
	return clientOf(t, storage.Target{URL: parse(t, where), Command: argv})
}

func clientOf(t *testing.T, target storage.Target) storage.Client {
	t.Helper()
	return storagetest.Client(t, command.Driver(), target)
}

const nowhere = "http://127.0.0.1:9/folder"

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		url  string
		argv []string
		want []string
	}{
		{nowhere, nil, []string{"no command", "curl, gfal-copy, globus-url-copy, xrdcp"}},
		{nowhere, []string{""}, []string{"no command"}},
		{nowhere, []string{"gfalcopy"}, []string{`"gfalcopy"`, "presets are", "gfal-copy"}},
		{nowhere, []string{"/etc/passwd"}, []string{"/etc/passwd"}},
		{nowhere, []string{"/nowhere/program", "{url}"}, []string{"/nowhere/program"}},
		{nowhere, []string{"cat", "{file}"}, []string{"{file}", "{url} {path} {size} {dest} {source} {offset} {length}", "{{"}},
		{nowhere, []string{"cat", "{URL}"}, []string{"unknown placeholder {URL}"}},
		{nowhere, []string{"cat", "a{url"}, []string{"without its }", "{{"}},
		{nowhere, []string{"cat", "{config}"}, []string{"unknown placeholder"}},
		{nowhere, []string{"{url}"}, []string{"program itself"}},
		{nowhere, []string{"cat", "{source}", "{dest}"}, []string{"either writes or reads"}},
		{nowhere, []string{"cat", "a\x00b"}, []string{"NUL"}},
		{"http://user:word@localhost/x", []string{"cat"}, []string{"password", "auth"}},
		{"http://localhost/x?y=z", []string{"cat"}, []string{"?"}},
		{"noscheme", []string{"cat"}, []string{"scheme"}},
	} {
		_, err := command.Driver().Open(t.Context(), storage.Target{URL: parse(t, c.url), Command: c.argv})
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q on %s: %v, want an error with %q", c.argv, c.url, err, want)
			}
		}
		if err != nil && strings.Contains(err.Error(), "word@") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
	if _, err := command.Driver().Open(t.Context(), storage.Target{Command: []string{"cat"}}); err == nil {
		t.Error("a target without URL is taken")
	}
}

// TestArguments checks that the arguments of a program are the template's, without a shell in
// between.
func TestArguments(t *testing.T) {
	c := client(t, "https://host:1/a%20b/", "sh", "-c", `printf '%s\n' "$@" >"$0"`, "{dest}", "{url}", "{path}", "--size={size}",
		"{offset}+{length}", "{{url}", "}", "$(id)", "-{path}")
	var h heard
	op := storage.Op{Kind: storage.Read, Path: "-x y/$HOME;'\"\n*", Size: -1, Ranges: []storage.Range{{Offset: 5, Length: 7}}}
	if _, err := c.Do(t.Context(), &op, &h); err == nil || !strings.Contains(err.Error(), "size of the file is not known") {
		t.Errorf("{size} of an unknown size: %v", err)
	}
	op.Size, op.Sum = 99, "md5"
	want := strings.Join([]string{
		"https://host:1/a%20b/-x%20y/$HOME%3B%27%22%0A%2A", "./" + op.Path, "--size=99", "5+7", "{url}", "}", "$(id)", "-" + op.Path,
	}, "\n") + "\n"
	op.Ranges[0].Length = int64(len(want)) + 2 // the output, with three digits instead of one digit
	want = strings.Replace(want, "5+7", fmt.Sprintf("5+%d", op.Ranges[0].Length), 1)
	res, err := c.Do(t.Context(), &op, &h)
	require.NoError(t, err)
	sum, err := content.NewHash("md5")
	require.NoError(t, err)
	sum.Write([]byte(want))
	if got := content.Text("md5", sum); res.Sum != got {
		t.Errorf("the program was not given\n%s", want)
	}
}

// TestRunsWhereWeWereStarted checks that the name of a user's script is relative to the current
// folder.
func TestRunsWhereWeWereStarted(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("analysis.sh", []byte("echo ran >&2; exit 5\n"), 0o755))
	c := client(t, nowhere, "sh", "analysis.sh", "{url}")
	_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: -1}, &heard{})
	if err == nil || !strings.HasSuffix(err.Error(), "exit status 5: ran") {
		t.Errorf("%v", err)
	}
}

func TestHostilePaths(t *testing.T) {
	c := client(t, nowhere, "true", "{url}")
	for _, path := range []string{"../x", "a/../../x", "..", "/etc/passwd", "a\x00b"} {
		if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: path, Size: -1}, &heard{}); err == nil {
			t.Errorf("path %q is taken", path)
		}
	}
	for _, path := range []string{"..a", "a..b/..c", "-rf", " ", "\n", "ü", ""} {
		if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: path, Size: -1}, &heard{}); err != nil {
			t.Errorf("path %q: %v", path, err)
		}
	}
}

func TestExitStatusUsageAndWords(t *testing.T) {
	script := `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done
echo not this; echo "first
$(printf 'tab\there \033[31mred') " >&2; exit 7`
	c := client(t, nowhere, "sh", "-c", script)
	res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: 10}, &heard{})
	if err == nil || !strings.HasSuffix(err.Error(), "sh: exit status 7: first; tab here  [31mred") {
		t.Errorf("the error is %q", err)
	}
	var e *storage.OpError
	if !errors.As(err, &e) || e.URL != nowhere+"/f" || storage.Classify(err) != storage.Other {
		t.Errorf("%#v, class %v", err, storage.Classify(err))
	}
	u := res.Process
	if u == nil || u.ExitCode != 7 || u.User+u.System <= 0 || u.MaxRSS < 100_000 {
		t.Errorf("usage %+v", u)
	}
	c = client(t, nowhere, "sh", "-c", "kill -SEGV $$")
	res, err = c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: -1}, &heard{})
	if err == nil || !strings.Contains(err.Error(), "segmentation fault") || res.Process == nil || res.Process.ExitCode != 128+11 {
		t.Errorf("%v, usage %+v", err, res.Process)
	}
}

// TestFlood checks that programs with a very large output need neither much memory nor much time at
// their end.
func TestFlood(t *testing.T) {
	c := client(t, nowhere, "sh", "-c", "head -c 50000000 /dev/zero; head -c 50000000 /dev/zero | tr '\\0' x >&2; exit 1")
	_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: -1}, &heard{})
	if err == nil || len(err.Error()) > 2000 || !strings.Contains(err.Error(), "xxx") {
		t.Errorf("an error of %d bytes: %.100v", len(err.Error()), err)
	}
}

// marked counts the processes with a mark in their environment.
func marked(mark string) int {
	n := 0
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if env, err := os.ReadFile(f); err == nil && strings.Contains(string(env), mark) {
			n++
		}
	}
	return n
}

// TestHangingProgramAndItsChildren checks that a program that hangs, and its children, have ended
// when Do returns.
func TestHangingProgramAndItsChildren(t *testing.T) {
	mark := "WEIR_TEST_MARK=" + t.Name()
	t.Setenv("WEIR_TEST_MARK", t.Name())
	before := marked(mark) // this test binary does not have it in /proc
	ready := filepath.Join(t.TempDir(), "ready")
	script := `tail -f /dev/null & tail -f /dev/null & (tail -f /dev/null) & echo x >"$0"; trap '' TERM; wait`
	for name, end := range map[string]func(op *storage.Op) (context.Context, context.CancelFunc, storage.Class){
		"timeout": func(op *storage.Op) (context.Context, context.CancelFunc, storage.Class) {
			op.Timeout = 300 * time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			return ctx, cancel, storage.Timeout
		},
		"context": func(*storage.Op) (context.Context, context.CancelFunc, storage.Class) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(300*time.Millisecond, cancel)
			return ctx, cancel, storage.Canceled
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, nowhere, "sh", "-c", script, ready)
			op := storage.Op{Kind: storage.Read, Path: "f", Size: -1}
			ctx, cancel, class := end(&op)
			defer cancel()
			res, err := c.Do(ctx, &op, &heard{})
			if storage.Classify(err) != class || res.Process == nil || res.Process.ExitCode != 128+9 {
				t.Errorf("%v, usage %+v, want %s", err, res.Process, class)
			}
			gone(t, mark, before)
			if err := os.Remove(ready); err != nil {
				t.Errorf("it never came so far: %v", err)
			}
		})
	}
}

// gone waits until no process has the mark; the kernel needs some time to reap orphans.
func gone(t *testing.T, mark string, before int) {
	t.Helper()
	end := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for marked(mark) > before {
		select {
		case <-end:
			t.Fatal("children live on")
		case <-tick.C:
		}
	}
}

// TestChildrenThatStay checks that the running children of a program that ends are ended with it,
// and that Do does not wait for the output that they hold open.
func TestChildrenThatStay(t *testing.T) {
	mark := "WEIR_TEST_MARK=" + t.Name()
	t.Setenv("WEIR_TEST_MARK", t.Name())
	c := client(t, nowhere, "sh", "-c", "tail -f /dev/null & exit 3")
	_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: -1, Timeout: 20 * time.Second}, &heard{})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("%v, want exit status 3", err)
	}
	gone(t, mark, 0)
}

// TestProgressWhileItRuns checks that payload is counted while the file grows, not when the program
// has ended.
func TestProgressWhileItRuns(t *testing.T) {
	dir := t.TempDir()
	on := filepath.Join(dir, "on")
	script := `head -c 1000 /dev/zero >"$0"; while [ ! -e "$1" ]; do sleep 0.01; done; head -c 500 /dev/zero >>"$0"`
	c := client(t, nowhere, "sh", "-c", script, "{dest}", on)
	h := &heard{}
	h.onMoved = func() { // the program ends only after this call
		if h.moved == 1000 {
			if err := os.WriteFile(on, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: -1, Timeout: 20 * time.Second}, h)
	if err != nil || h.moved != 1500 || h.calls != 2 || res.Size != 1500 || len(h.phases) != 1 || h.phases[0] != storage.FirstByte {
		t.Errorf("%v: %d bytes in %d calls, size %d, phases %v", err, h.moved, h.calls, res.Size, h.phases)
	}
	// The next operation starts with an empty folder.
	require.NoError(t, os.Remove(on))
	h.moved, h.calls = 0, 0
	if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: 1500, Timeout: 20 * time.Second}, h); err != nil ||
		h.moved != 1500 {
		t.Errorf("again: %v, %d bytes", err, h.moved)
	}
}

func TestCustomWrite(t *testing.T) {
	dir := t.TempDir()
	c := client(t, "file://"+dir, "cp", "--", "{source}", dir+"/{path}")
	for i := range 3 { // the same content twice, then another
		var h heard
		op := storage.Op{Kind: storage.Write, Path: fmt.Sprint("-f", i), Size: 100_000, Seed: uint64(i / 2)}
		if _, err := c.Do(t.Context(), &op, &h); err != nil || h.moved != op.Size {
			t.Fatalf("%v, %d bytes", err, h.moved)
		}
		got, err := os.ReadFile(filepath.Join(dir, op.Path))
		if err != nil || int64(len(got)) != op.Size || !content.Equal(got, op.Seed, 0) {
			t.Errorf("file %d is not what it should be: %d bytes, %v", i, len(got), err)
		}
	}
	if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "-f0", Size: -1}, &heard{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a command with {source} that reads: %v", err)
	}
	if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Write, Path: "x", Size: -1}, &heard{}); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("writing -1 bytes: %v", err)
	}
	_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Write, Path: "no/such/folder", Size: 1}, &heard{})
	if storage.Classify(err) != storage.NotFound {
		t.Errorf("cp into no folder: %v", err)
	}
}

// TestNothingIsLeft checks that all scratch files are removed with the service, also after
// failures.
func TestNothingIsLeft(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Run("use", func(t *testing.T) {
		r := client(t, nowhere, "sh", "-c", `echo x >"$0"; exit 1`, "{dest}")
		if _, err := r.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: -1}, &heard{}); err == nil {
			t.Error("it should fail")
		}
		w := client(t, nowhere, "cat", "{source}")
		if _, err := w.Do(t.Context(), &storage.Op{Kind: storage.Write, Path: "f", Size: 1000}, &heard{}); err != nil {
			t.Error(err)
		}
		if made, _ := os.ReadDir(tmp); len(made) != 2 {
			t.Errorf("%v: want two scratch folders", made)
		}
	})
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestManyAtOnce checks that hundreds of processes at once do not need a thread each and leave no
// open files.
func TestManyAtOnce(t *testing.T) {
	s, err := command.Driver().Open(t.Context(), storage.Target{URL: parse(t, nowhere), Command: []string{"sleep", "0.3"}})
	require.NoError(t, err)
	opened := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(fds)
	}
	threads := func() int {
		tasks, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		return len(tasks)
	}
	const clients = 300
	before, threadsBefore := opened(), threads()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			c := s.Client()
			if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: -1}, &heard{}); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := opened(); n > before+5 {
		t.Errorf("%d descriptors are open, %d were before", n, before)
	}
	if n := threads(); n > threadsBefore+clients/4 {
		t.Errorf("%d threads for %d processes, %d were before", n, clients, threadsBefore)
	}
}
