package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
)

// TestMain acts as the wrapper if a test starts this binary as the wrapper.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "exec" {
		os.Exit(execTest(os.Args[2:], time.Second))
	}
	os.Exit(m.Run())
}

// The wrapper passes the exit code on, counts the CPU time of orphaned processes, and ends the
// remaining processes.
func TestExec(t *testing.T) {
	dir := t.TempDir()
	script := `sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done' & ` + // its parent does not wait for it
		`sh -c 'sleep 1000 & sleep 1001' & exit 3`
	cmd := exec.CommandContext(t.Context(), os.Args[0], "exec", "/bin/sh", "-c", script)
	cmd.Env, cmd.Dir = append(os.Environ(), recordsVar+"="+filepath.Join(dir, "records")), dir
	err := cmd.Run()
	var exited *exec.ExitError
	if !errors.As(err, &exited) || exited.ExitCode() != 3 {
		t.Errorf("%v, want exit code 3", err)
	}
	r, err := readResults(dir)
	require.NoError(t, err)
	if len(r.Records) != 1 {
		t.Fatalf("%+v", r.Records)
	}
	one := r.Records[0]
	if one.CPUSeconds <= 0.01 || one.WallSeconds < one.CPUSeconds/2 {
		t.Errorf("CPU time of a loop in an orphan: %+v", one)
	}
	for _, want := range []string{"sleep 1000", "sleep 1001"} {
		if !slices.Contains(one.Left, want) {
			t.Errorf("%q is not among the processes that were left: %q", want, one.Left)
		}
	}
}

// Results are read from the records and from the output of go test -json. Subtests count, and are
// not among the slowest tests.
func TestResults(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("records", `{"dir":"/w/a","cpu_seconds":2,"wall_seconds":1}
{"dir":"/w/b","cpu_seconds":5,"wall_seconds":9,"left":["nginx"]}
`)
	write("waiting.json", `{"Action":"start","Package":"weir/a"}
{"Action":"pass","Package":"weir/a","Test":"TestOne/part","Elapsed":3}
{"Action":"pass","Package":"weir/a","Test":"TestOne","Elapsed":4}
{"Action":"skip","Package":"weir/a","Test":"TestTwo","Elapsed":0}
{"Action":"pa`)
	write("measuring.json", `{"Action":"fail","Package":"weir/b","Test":"TestThree","Elapsed":7}
`)
	write("waiting.repeated", "weir/b.TestThree: 2 runs, 1 failures\n")
	r, err := readResults(dir)
	require.NoError(t, err)
	r.Untested = []string{"./c"}
	if r.Passed != 2 || len(r.Skipped) != 1 || len(r.Tests) != 3 || r.Tests[0].Name != "b TestThree" || r.Records[0].Dir != "/w/b" {
		t.Errorf("%+v", r)
	}
	text := r.text()
	for _, want := range []string{"     7.0 s in", "     7.0 s  b TestThree\n     4.0 s  a TestOne\n", "2 tests passed, 1 were skipped",
		"2 runs, 1 failures", "left running by /w/b, killed: nginx", "Not tested within the time limit: ./c"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// Files change the package of their folder, and files in testdata change the package above.
func TestChangedPackages(t *testing.T) {
	t.Chdir(t.TempDir())
	commit := func(date string, files ...string) {
		t.Helper()
		for _, name := range files {
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
			require.NoError(t, os.WriteFile(name, []byte(date), 0o600))
		}
		for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"}} {
			cmd := exec.CommandContext(t.Context(), "git", args...)
			cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE="+date, "GIT_CONFIG_GLOBAL=/dev/null")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v: %s", args, err, out)
			}
		}
	}
	commit("2026-01-01T01:00:00Z", "a/a.go", "b/b.go", "b/c/c.go", "README.md")
	commit("2026-01-01T05:30:00Z", "b/testdata/x/y")
	commit("2026-01-01T06:00:00Z", "b/c/c.go", "web/a.md")
	all := []string{"./", "./a", "./b", "./b/c"}
	for since, want := range map[string][]string{"auto": {"./b", "./b/c"}, "HEAD~1": {"./b/c"}, "HEAD": nil} {
		got, err := changedPackages(t.Context(), since, all)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("changed since %s: %v, %v, want %v", since, got, err, want)
		}
	}
	long := strings.Repeat("a line\n", 1000)
	require.NoError(t, os.WriteFile("a/long.go", []byte(long), 0o600))
	commit("2026-01-01T07:00:00Z", "README.md")
	require.NoError(t, os.Mkdir("d", 0o700))
	require.NoError(t, errors.Join(os.WriteFile("d/long.go", []byte("import\n"+long), 0o600), os.Remove("a/long.go")))
	commit("2026-01-01T08:00:00Z", "b/b.go")
	if got, err := changedPackages(t.Context(), "HEAD~1", append(all, "./d")); err != nil || !slices.Equal(got, []string{"./b"}) {
		t.Errorf("after a move: %v, %v, want ./b", got, err)
	}
	if _, err := changedPackages(t.Context(), "no-such-commit", all); err == nil {
		t.Error("an unknown commit is accepted")
	}
}

// Tests that need a quiet machine are found by their first statement.
func TestQuietTests(t *testing.T) {
	names, err := quietTests("../weir")
	require.NoError(t, err)
	if len(names) < 10 || !slices.Contains(names, "TestLimitOfOneCore") || slices.Contains(names, "TestREADME") {
		t.Errorf("%q", names)
	}
}

// With a limit that expires at once no package is tested, and all packages are listed, the longest
// last.
func TestLimit(t *testing.T) {
	o := options{limit: 1, out: t.TempDir()}
	untested, err := o.phases(t.Context(), []string{"./cmd/weir", "./analysis", "./lab", "./web"})
	if want := []string{"./analysis", "./web", "./lab", "./cmd/weir"}; err != nil || !slices.Equal(untested, want) {
		t.Errorf("%q, %v, want %q", untested, err, want)
	}
}
