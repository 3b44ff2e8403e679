//go:build !linux

package storagetest

import "testing"

// small skips the test: how to make a small disk is another question elsewhere.
func small(t *testing.T) string {
	t.Helper()
	t.Skip("a small disk is mounted on Linux only")
	return ""
}
