package storagetest

import (
	"os"
	"syscall"
	"testing"
)

// small returns a folder on a disk that has 64 KiB.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("weir", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "size=64k")
	switch {
	case err != nil && os.Getenv("WEIR_REQUIRE") != "":
		t.Fatalf("a full disk needs a small one to be mounted: %v", err)
	case err != nil:
		t.Skipf("a full disk needs a small one to be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}
