package requests

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/content"
	"weir/internal/require"
	"weir/lab/labtest"
)

// Write writes data to the file whose path has these parts, and returns the path.
func Write(t testing.TB, data string, parts ...string) string {
	t.Helper()
	p := filepath.Join(parts...)
	require.NoError(t, os.WriteFile(p, []byte(data), 0o644))
	return p
}

// Read returns the content of the file whose path has these parts.
func Read(t testing.TB, parts ...string) string {
	t.Helper()
	return string(require.File(t, filepath.Join(parts...)))
}

// Names returns the names in a folder, apart by spaces, without that of the server's own notes.
func Names(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(slices.DeleteFunc(all, func(name string) bool { return name == ".weir-serve-folders" }), " ")
}

// Content returns size bytes of the synthetic content of a seed.
func Content(seed uint64, size int) string {
	b := make([]byte, size)
	content.Fill(b, seed, 0)
	return string(b)
}

// SHA256 returns the checksum of a text, in hexadecimal digits.
func SHA256(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Run runs a necessary program and returns its output.
func Run(t testing.TB, program string, args ...string) (string, error) {
	t.Helper()
	labtest.Need(t, program)
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	return string(out), err
}

// MustRun runs a program as Run does. The program must succeed.
func MustRun(t testing.TB, program string, args ...string) string {
	t.Helper()
	out, err := Run(t, program, args...)
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return out
}

// Program returns the name of a program that the test needs.
func Program(t testing.TB, name string) string {
	t.Helper()
	labtest.Need(t, name)
	return name
}
