package command_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/burn"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/labtest"
	"weir/storage"
)

// TestMain turns this binary into a program that uses the resources in its arguments.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == "hog" || os.Args[1] == "burn") {
		n, err := strconv.Atoi(os.Args[2])
		if err != nil {
			panic(err)
		}
		use(os.Args[1], n)
		return
	}
	os.Exit(m.Run())
}

// use holds n MB of memory for a while, or burns n ms of CPU time.
func use(what string, n int) {
	if what == "hog" {
		b := make([]byte, n*1_000_000)
		for i := 0; i < len(b); i += 512 {
			b[i] = 1
		}
		time.Sleep(300 * time.Millisecond) // so that a sample finds the memory in use
		runtime.KeepAlive(b)
		return
	}
	for burn.Process() < time.Duration(n)*time.Millisecond {
	}
}

// job runs a command as a job on a file of 1000 bytes.
func job(t *testing.T, argv ...string) (storage.Result, error) {
	t.Helper()
	var h heard
	res, err := client(t, nowhere, argv...).Do(t.Context(), &storage.Op{Kind: storage.Run, Path: "a/f", Size: 1000, Timeout: time.Minute}, &h)
	if h.moved != 0 || len(h.phases) != 0 {
		t.Errorf("%d bytes counted, phases %v", h.moved, h.phases)
	}
	return res, err
}

// TestJobsFolderUntouched checks that a folder that a job has left unchanged is used for the next
// job as well, and removed with the client.
func TestJobsFolderUntouched(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Run("use", func(t *testing.T) {
		c := client(t, nowhere, "sh", "-c", "ls -A | wc -l; pwd; exit 1")
		said := map[string]bool{}
		for range 3 {
			_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Run, Path: "f"}, &heard{})
			if err == nil || !strings.Contains(err.Error(), "status 1: 0; "+tmp) {
				t.Fatal(err)
			}
			said[err.Error()] = true
		}
		if len(said) != 1 {
			t.Errorf("%v", said)
		}
	})
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestJobsFolder checks that a job starts in an empty folder of its own, which is removed with it.
func TestJobsFolder(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	out := filepath.Join(t.TempDir(), "out")
	script := `(pwd; echo "$TMPDIR"; ls -A | wc -l; echo "$@") >>"$0"; echo x >here; mkdir -p deep/er; echo x >deep/er/f; chmod 500 deep/er deep`
	c := client(t, "http://127.0.0.1:9/fold%20er", "sh", "-c", script, out, "{url}", "{path}", "{size}")
	for range 2 {
		if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Run, Path: "a/f", Size: 1000}, &heard{}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 8 {
		t.Fatalf("%q", lines)
	}
	for _, l := range [][]string{lines[:4], lines[4:]} {
		if !strings.HasPrefix(l[0], tmp+"/") || l[1] != l[0] || strings.TrimSpace(l[2]) != "0" ||
			l[3] != "http://127.0.0.1:9/fold%20er/a/f a/f 1000" {
			t.Errorf("%q", l)
		}
		if _, err := os.Stat(l[0]); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", l[0], err)
		}
	}
	if lines[0] == lines[4] {
		t.Error("two jobs in one folder")
	}
}

func TestJobsThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		argv   []string
		want   string
		status int
	}{
		"status": {[]string{"sh", "-c", "echo payload; echo ConnectionRefusedError: connection refused >&2; exit 3"}, "run " + nowhere +
			"/a/f: sh: exit status 3: ConnectionRefusedError: connection refused", 3},
		"no words":  {[]string{"sh", "-c", "exit 4"}, "sh: exit status 4", 4},
		"own words": {[]string{"sh", "-c", "echo no such file; exit 5"}, "exit status 5: no such file", 5},
		"signal":    {[]string{"sh", "-c", "kill -KILL $$"}, "sh: ended by signal SIGKILL (killed)", 128 + 9},
		"memory":    {[]string{"sh", "-c", "kill -BUS $$"}, "ended by signal SIGBUS", 128 + 7},
	} {
		res, err := job(t, c.argv...)
		if err == nil || !strings.HasSuffix(err.Error(), c.want) && !strings.Contains(err.Error(), c.want+" (") ||
			storage.Classify(err) != storage.Other || errors.Is(err, storage.ErrCrashed) != (name == "memory") {
			t.Errorf("%s: %v, class %v", name, err, storage.Classify(err))
		}
		if res.Process == nil || res.Process.ExitCode != c.status {
			t.Errorf("%s: %+v", name, res.Process)
		}
	}
	for _, argv := range [][]string{{"curl"}, {"cat", "{source}"}, {"cp", "{url}", "{dest}"}, {"cat", "{offset}"}, {"cat", "{length}"}} {
		if _, err := job(t, argv...); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "{url}, {path} and {size}") {
			t.Errorf("%q: %v", argv, err)
		}
	}
	c := client(t, nowhere, "cat", "{size}")
	if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Run, Path: "f", Size: -1}, &heard{}); err == nil ||
		!strings.Contains(err.Error(), "not known") {
		t.Errorf("a size that nobody knows: %v", err)
	}
}

// TestJobWithoutScratch checks that a full scratch disk is not reported as a fault of the service.
func TestJobWithoutScratch(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	c := client(t, nowhere, "true")
	all, err := filepath.Glob(tmp + "/weir-command-*")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	require.NoError(t, os.RemoveAll(all[0]))
	if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Run, Path: "f"}, &heard{}); storage.Classify(err) != storage.Scratch {
		t.Errorf("%v, class %v", err, storage.Classify(err))
	}
}

// TestJobsCPU checks that the usage of a job equals its own measurement, including the usage of its
// children.
func TestJobsCPU(t *testing.T) {
	tier.Slow(t, "runs programs for seconds")
	cpu := func(argv ...string) time.Duration {
		res, err := job(t, argv...)
		require.NoError(t, err)
		return res.Process.User + res.Process.System
	}
	self := os.Args[0]
	if got := cpu(self, "burn", "400"); got < 400*time.Millisecond || got > 600*time.Millisecond {
		t.Errorf("%v of CPU time, burned were 400ms", got)
	}
	if got := cpu("sh", "-c", `"$0" burn 200; "$0" burn 200 & wait`, self); got < 400*time.Millisecond || got > 600*time.Millisecond {
		t.Errorf("%v of CPU time, burned were 400ms in two children", got)
	}
	if got := cpu("sleep", "0.3"); got > 50*time.Millisecond {
		t.Errorf("%v of CPU time for nothing", got)
	}
}

// TestJobsMemory checks that memory is the program's memory, even if this process is larger.
func TestJobsMemory(t *testing.T) {
	tier.Slow(t, "runs programs that use hundreds of MB")
	used := func(argv ...string) float64 {
		res, err := job(t, argv...)
		require.NoError(t, err)
		return float64(res.Process.MaxRSS) / 1e6
	}
	self := os.Args[0]
	alone := used(self, "hog", "0") // the memory of an idle Go program
	check := func(what string, got, want float64) {
		t.Helper()
		if got < want || got > 1.05*want+alone {
			t.Errorf("%s: %.1f MB, want %.0f to %.1f MB", what, got, want, 1.05*want+alone)
		}
	}
	check("large", used(self, "hog", "400"), 400)
	check("a child", used("sh", "-c", `"$0" hog 300 & wait`, self), 300)
	ballast := make([]byte, 150<<20)
	for i := 0; i < len(ballast); i += 512 {
		ballast[i] = 1
	}
	check("smaller than we are", used(self, "hog", "50"), 50)
	check("its child", used("sh", "-c", `"$0" hog 50 & wait`, self), 50)
	check("larger than we are", used(self, "hog", "400"), 400)
	runtime.KeepAlive(ballast)
}

// TestJobsTimeout checks that a job that does not end in time is a timeout, and that it and its
// children are killed.
func TestJobsTimeout(t *testing.T) {
	mark := "WEIR_TEST_MARK=" + t.Name()
	t.Setenv("WEIR_TEST_MARK", t.Name())
	c := client(t, nowhere, "sh", "-c", "echo opening f >&2; tail -f /dev/null & (tail -f /dev/null) & trap '' TERM; wait")
	res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Run, Path: "f", Timeout: 300 * time.Millisecond}, &heard{})
	if storage.Classify(err) != storage.Timeout || res.Process == nil {
		t.Errorf("%v, usage %+v", err, res.Process)
	}
	if want := "sh had not ended in time and was killed: context deadline exceeded: opening f"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	gone(t, mark, 0)
}

// TestJobsCredentials checks that programs get credentials in the places where they search for
// them.
func TestJobsCredentials(t *testing.T) {
	labtest.Need(t, "sh")
	dir := t.TempDir()
	proxy, token := filepath.Join(dir, "proxy"), filepath.Join(dir, "token")
	out := filepath.Join(dir, "out")
	target := storage.Target{URL: parse(t, nowhere), Command: []string{"sh", "-c",
		`echo "$X509_USER_PROXY $BEARER_TOKEN_FILE $BEARER_TOKEN $KRB5CCNAME" >"$0"`, out}}
	target.Cred.From.ProxyFile, target.Cred.From.TokenFile, target.Cred.Token, target.Cred.From.TicketFile = proxy, token,
		"secret", "/tmp/ticket"
	if _, err := clientOf(t, target).Do(t.Context(), &storage.Op{Kind: storage.Run, Path: "f"}, &heard{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != proxy+" "+token+" secret /tmp/ticket\n" {
		t.Errorf("%q, %v", got, err)
	}
}
