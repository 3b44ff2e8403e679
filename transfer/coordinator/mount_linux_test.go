package coordinator

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// mountSmall creates a folder and mounts a file system of 1 MiB at it.
func mountSmall(t *testing.T, at string) {
	t.Helper()
	err := errors.Join(os.Mkdir(at, 0o777), unix.Mount("tmpfs", at, "tmpfs", 0, "size=1m,mode=777"))
	if err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
