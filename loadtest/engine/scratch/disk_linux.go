package scratch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// On returns the disk of a folder.
func On(folder string) Disk {
	d := Disk{Free: -1}
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) == nil {
		d.Free = int64(s.Bavail) * s.Bsize
	}
	var st unix.Stat_t
	path, err := filepath.EvalSymlinks(folder)
	if err != nil || unix.Stat(path, &st) != nil {
		return d
	}
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return d
	}
	number := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	m := mountOf(string(info), number, path)
	d.Filesystem, d.Number = m.kind, number
	if m.kind == "tmpfs" {
		if memory, err := os.ReadFile("/proc/meminfo"); err == nil {
			if most := available(string(memory)); most >= 0 {
				d.Free = min(d.Free, most)
			}
		}
	}
	device, err := filepath.EvalSymlinks("/sys/dev/block/" + number)
	if source, serr := filepath.EvalSymlinks(m.source); err != nil && serr == nil && strings.HasPrefix(source, "/dev/") {
		device, err = filepath.EvalSymlinks("/sys/class/block/" + filepath.Base(source))
	}
	if err == nil {
		d.Device = below(device)
	}
	return d
}

// below returns the name of the device below a device of /sys, if that device is a layer (device
// mapper, md) on a single device: the disk that does the work.
func below(device string) string {
	for range 10 { // layers do not go deeper
		under, err := filepath.Glob(device + "/slaves/*")
		if err != nil || len(under) != 1 {
			break
		}
		if device, err = filepath.EvalSymlinks(under[0]); err != nil {
			return ""
		}
	}
	return filepath.Base(device)
}
