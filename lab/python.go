package lab

import (
	"os"
	"path/filepath"
	"testing"
)

// Python returns the folder with python3 and the programs of the Python
// packages that tests use (python.txt, installed by `make needs`). Where they are not there
// it skips t, or fails it, as Need does.
func Python(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("this test does not run in the source tree")
		}
	}
	made := filepath.Join(dir, "build", "python")
	if _, err := os.Stat(filepath.Join(made, "python.txt")); err == nil {
		return filepath.Join(made, "bin")
	}
	const missing = "the Python packages of lab/python.txt are not there: make needs installs them"
	if required(os.Getenv("WEIR_REQUIRE"), "python") {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}
