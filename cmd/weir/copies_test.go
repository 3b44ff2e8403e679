package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
)

// copyLab starts two XRootD servers that copy from each other.
func copyLab(t *testing.T) (origin, target *lab.System) {
	t.Helper()
	tier.Slow(t, "real servers")
	const byRoot = "ofs.tpc ttl 60 120 pgm /usr/bin/xrdcp --server\n"
	origin = labtest.Start(t, lab.XRootDConfig{Copies: true, Extra: byRoot})
	return origin, labtest.Start(t, lab.XRootDConfig{Copies: true, Authority: origin, Extra: byRoot})
}

// copyArgs are the arguments of a run with copies from origin to target.
func copyArgs(origin, target *lab.System, scheme, mode string, more ...string) []string {
	return append([]string{"--target", target.URLs[scheme], "--set",
		fmt.Sprintf("origin={url: %q, mode: %s, auth: {ca_file: %s}}", origin.URLs[scheme], mode, origin.CAFile),
		"--set", "auth.ca_file=" + origin.CAFile, "--set", "files.make={count: 3, size: 1MiB}", "--set", "load.ramp=0s",
		"--set", "load.warmup=500ms"}, more...)
}

// filesOf returns the files and folders below a server's folder.
func filesOf(t *testing.T, s *lab.System) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(s.Data, func(path string, d fs.DirEntry, err error) error {
		if path != s.Data {
			all = append(all, path)
		}
		return err
	}))
	return all
}

// Copies are counted with their bytes and verified, and nothing of them is left at either end.
func TestCopies(t *testing.T) {
	t.Parallel()
	origin, target := copyLab(t)
	for name, tt := range map[string]struct{ scheme, mode string }{
		"pull": {"https", "pull"}, "push": {"http", "push"}, "root": {"root", "pull"},
	} {
		t.Run(name, func(t *testing.T) {
			f := measureFor(t, copyArgs(origin, target, tt.scheme, tt.mode, "--clients", "1,4", "--duration", "2s", "--set",
				"workload={kind: copy, verify: 50%}")...)
			for _, s := range f.Curve {
				if s.Done == 0 || s.Errors > 0 || s.Throughput < float64(s.Done)*0.9*(1<<20)/s.Duration {
					t.Errorf("%d clients: %d copies, %d errors, %v bytes/s in %v s", s.Clients, s.Done, s.Errors, s.Throughput, s.Duration)
				}
			}
			if len(f.Kinds) != 1 || f.Kinds[0].Name != "copy" {
				t.Errorf("kinds %+v", f.Kinds)
			}
			status := map[string]string{}
			for _, c := range f.Validity.Checks {
				status[c.Name] = string(c.Status)
			}
			if status["verification"] != "ok" || status["both ends agree"] != "skipped" {
				t.Errorf("checks %v", status)
			}
			if left := append(filesOf(t, origin), filesOf(t, target)...); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// After kill -9 the files of the manifest are left, and nothing else; weir clean removes them from both ends.
func TestKilledCopiesAreCleaned(t *testing.T) {
	t.Parallel()
	origin, target := copyLab(t)
	for _, s := range []*lab.System{origin, target} {
		require.NoError(t, s.WriteFile("others.txt", []byte("not ours")))
	}
	for _, scheme := range []string{"http", "root"} {
		dir := filepath.Join(t.TempDir(), "run")
		killed(t, dir, 1, append([]string{"run", "--out", dir, "--clients", "3", "--duration", "10m"},
			copyArgs(origin, target, scheme, "pull", "--set", "workload={kind: copy, verify: 100%}")...)...)
		manifest := string(require.File(t, filepath.Join(dir, "manifest.jsonl")))
		for _, s := range []*lab.System{origin, target} {
			left := filesOf(t, s)
			if len(left) < 2 {
				t.Errorf("%s: only %v is left", scheme, left)
			}
			for _, path := range left {
				name, err := filepath.Rel(s.Data, path)
				require.NoError(t, err)
				if name != "others.txt" && !strings.Contains(manifest, name) {
					t.Errorf("%s: %s is not in the manifest", scheme, name)
				}
			}
		}
		if code, said := weir(t, "clean", dir); code != exitFine {
			t.Errorf("clean: exit code %d\n%s", code, said)
		}
		if left := append(filesOf(t, origin), filesOf(t, target)...); len(left) != 2 {
			t.Errorf("%s: after clean: %v", scheme, left)
		}
	}
}

// The origin is killed in the middle: the copies of that time fail, and the others are counted.
func TestOriginGone(t *testing.T) {
	t.Parallel()
	origin, target := copyLab(t)
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, append([]string{"run", "--out", dir, "--clients", "2", "--duration", "6s"},
		copyArgs(origin, target, "http", "pull", "--set", "workload={kind: copy, timeout: 5s}", "--set", "load.error_pause=100ms")...)...)
	untilHeld(t, dir, 1)
	for _, pid := range origin.Pids() {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	code, said := p.ended()
	f := findings(t, dir)
	if len(f.Curve) != 1 || f.Curve[0].Done == 0 || f.Curve[0].Errors == 0 {
		t.Errorf("exit code %d: %+v\n%s", code, f.Curve, said)
	}
	if left := filesOf(t, target); len(left) > 0 { // the files at the origin cannot be removed
		t.Errorf("left at the target: %v", left)
	}
}

// Services that cannot copy, and files that are missing, are reported before the load.
func TestCopiesRefused(t *testing.T) {
	t.Parallel()
	origin, target := copyLab(t)
	plain := labtest.Start(t, lab.XRootDConfig{})
	dir := t.TempDir()
	list := filepath.Join(dir, "list")
	require.NoError(t, os.WriteFile(list, []byte("missing 1000\n"), 0o600))
	for name, tt := range map[string]struct {
		target *lab.System
		scheme string
		more   []string
		want   string
	}{
		"no COPY":   {plain, "http", nil, "cannot fetch files from the origin"},
		"no tpc":    {plain, "root", nil, "no third-party copy"},
		"not there": {target, "http", []string{"--set", "files={list: " + list + "}"}, "missing"},
	} {
		code, said := weir(t, append([]string{"run", "--out", filepath.Join(dir, name), "--clients", "1", "--duration", "1s"},
			append(copyArgs(origin, tt.target, tt.scheme, "pull", "--set", "workload={kind: copy}"), tt.more...)...)...)
		if code == exitFine || !strings.Contains(unwrapped(said), tt.want) {
			t.Errorf("%s: exit code %d, want %q\n%s", name, code, tt.want, said)
		}
		if left := append(filesOf(t, origin), filesOf(t, tt.target)...); len(left) > 0 {
			t.Errorf("%s: left: %v", name, left)
		}
	}
}
