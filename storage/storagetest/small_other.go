//go:build !linux

package storagetest

import "testing"

// small skips the test: a small disk is made in another way on other systems.
func small(t *testing.T) string {
	t.Helper()
	t.Skip("a small disk is mounted on Linux only")
	return ""
}
