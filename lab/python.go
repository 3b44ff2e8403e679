package lab

import (
	"path/filepath"
	"testing"
)

// Python returns the folder with python3 and the programs of the Python
// packages that tests use (python.txt, installed by `make needs`). Where they are not there
// it skips t, or fails it, as Need does.
func Python(t testing.TB) string {
	t.Helper()
	made, err := built("python")
	if err != nil {
		Without(t, "python", "the Python packages of lab/python.txt are not there: "+err.Error())
	}
	return filepath.Join(made, "bin")
}
