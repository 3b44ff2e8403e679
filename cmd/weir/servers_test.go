package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/results"
	"weir/storage"
)

// A logFormat finds transfers in the log of a server. Its expressions have a group "file" or "bytes".
type logFormat struct{ read, write string }

var (
	requestLog = logFormat{`(?m)^GET 200 (?P<bytes>\d+) .*[^/]$`, `(?m)^PUT 2\d\d `}
	xferLog    = logFormat{`(?m) (?P<bytes>\d+) \S+ b _ o .* c$`, `(?m) b _ i .* c$`}
	s3proxyLog = logFormat{`request: Request\(GET \S+/data/(?P<file>[^?)]+)\)`, `request: Request\(PUT \S+/data/\S+[^/]\)`}
)

// TestFurtherServers measures servers for which other tests only check that they work. A run that
// finds its files by listing agrees with the server's own log, and a run that makes and removes
// files and folders leaves no files.
func TestFurtherServers(t *testing.T) {
	tier.Full(t, "further servers, by their own logs")
	for _, server := range lab.FTPServers() {
		t.Run(server, func(t *testing.T) {
			s := labtest.Start(t, lab.FTPConfig{Server: server})
			var login []string
			if s.User != "" {
				login = []string{"--set", "auth={method: basic, user: " + s.User + ", password_file: " + writeTemp(t, "secret") + "}"}
			}
			agrees(t, s, xferLog, login...)
			leavesNothing(t, s, xferLog, login...)
		})
	}
	for _, server := range []string{"h2o", "tomcat"} {
		t.Run(server, func(t *testing.T) { agrees(t, labtest.Start(t, lab.FolderConfig{Server: server}), requestLog) })
	}
	t.Run("tomcat as WebDAV", func(t *testing.T) {
		s := labtest.Start(t, lab.FolderConfig{Server: "tomcat", WebDAV: true})
		agrees(t, s, requestLog)
		leavesNothing(t, s, requestLog)
	})
	t.Run("s3proxy", func(t *testing.T) {
		s := labtest.Start(t, lab.S3Config{Server: "s3proxy"})
		key := "auth={method: s3, user: " + s.Settings[lab.S3Key] + ", password_file: " + writeTemp(t, s.Settings[lab.S3Secret]) + "}"
		agrees(t, s, s3proxyLog, "--set", key)
		leavesNothing(t, s, s3proxyLog, "--set", key)
	})
}

// agrees fails t unless a run finds files by listing, reads each file, and counts the same numbers
// of reads and bytes as the server's log.
func agrees(t *testing.T, s *lab.System, format logFormat, args ...string) {
	t.Helper()
	for i := range 12 {
		name := fmt.Sprintf("d%d/sub/f%d", i%3, i)
		require.NoError(t, s.WriteFile(name, bytes.Repeat([]byte{byte(i)}, 5000+i)))
	}
	before := len(require.File(t, s.AccessLog))
	dir := runFor(t, s.URL, args...)
	count, moved := countsOf(t, dir, storage.Read)
	logged, bytes, names := int64(0), int64(0), regexp.MustCompile(format.read)
	for _, m := range names.FindAllSubmatch(require.File(t, s.AccessLog)[before:], -1) {
		logged++
		n := int64(0)
		if i := names.SubexpIndex("bytes"); i > 0 {
			_, err := fmt.Sscan(string(m[i]), &n)
			require.NoError(t, err)
		} else {
			info, err := os.Stat(filepath.Join(s.Data, string(m[names.SubexpIndex("file")])))
			require.NoError(t, err)
			n = info.Size()
		}
		bytes += n
	}
	if count != logged || moved != bytes || count < 12 {
		t.Errorf("%d reads of %d bytes, the server logged %d of %d", count, moved, logged, bytes)
	}
}

// leavesNothing fails t unless a run counts as many writes as the server's log, and leaves no
// files, neither in its manifest nor in the data folder.
func leavesNothing(t *testing.T, s *lab.System, format logFormat, args ...string) {
	t.Helper()
	before := len(require.File(t, s.AccessLog))
	dir := runFor(t, s.URL, append(args, "--set",
		"workload={kind: mix, mix: {write: 3, mkdir: 2, remove: 1, list: 1, stat: 1}, size: 4KiB}")...)
	count, _ := countsOf(t, dir, storage.Write)
	logged := int64(len(regexp.MustCompile(format.write).FindAll(require.File(t, s.AccessLog)[before:], -1)))
	const tried = 1 // before the load
	if made, _ := countsOf(t, dir, storage.Mkdir); made == 0 || count == 0 || count+tried != logged {
		t.Errorf("%d writes and %d folders; the server logged %d writes, with %d before the load", count, made, logged, tried)
	}
	empty(t, s.Data)
	m, err := results.OpenManifest(dir)
	require.NoError(t, err)
	left, err := m.Left()
	require.NoError(t, err)
	require.NoError(t, m.Close())
	if len(left) > 0 {
		t.Errorf("the manifest has %d names that are left, such as %q", len(left), left[0].Path)
	}
}

// runFor runs a load without failures on a target and returns its directory.
func runFor(t *testing.T, target string, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	args = append([]string{"run", "--quiet", "--out", dir, "--target", target, "--clients", "2", "--duration", "2s",
		"--set", "load.ramp=100ms", "--set", "load.warmup=300ms"}, args...)
	if code, said := weir(t, args...); code != exitFine && code != exitInvalid || strings.Contains(said, "could not be removed") {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	for _, c := range findings(t, dir).Curve {
		if c.Errors > 0 || c.Done == 0 {
			t.Errorf("%d done, %d errors %v", c.Done, c.Errors, c.ErrorsBy)
		}
	}
	return dir
}

// countsOf returns the number of operations of a kind that succeeded in a run, and the bytes that
// they moved.
func countsOf(t *testing.T, dir string, kind storage.Kind) (done, moved int64) {
	t.Helper()
	run, err := results.Open(dir)
	require.NoError(t, err)
	for v, err := range run.Intervals() {
		require.NoError(t, err)
		if v.Kind == kind {
			done += v.Done
			moved += v.Moved
		}
	}
	return done, moved
}
