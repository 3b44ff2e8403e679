package scratch

import (
	"path/filepath"
	"strconv"
	"strings"
)

// A Disk describes the disk and the file system of a folder, as far as the system reports them.
type Disk struct {
	Device     string // block device in /proc/diskstats: vda1; "" if no device, or several
	Filesystem string // ext4, xfs, tmpfs ...; "" if not known
	Number     string // of the file system, 8:1: same for folders that share space; "" if not known
	Free       int64  // bytes that this user may still write: in memory no more than is available; negative if not known
}

// available returns the memory that programs can still use without swapping, from the text of
// /proc/meminfo; negative if the text does not have it.
//
// Format: proc_meminfo(5), "MemAvailable:   16384 kB".
func available(meminfo string) int64 {
	_, rest, _ := strings.Cut(meminfo, "MemAvailable:")
	line, _, _ := strings.Cut(rest, "kB")
	kib, err := strconv.ParseInt(strings.TrimSpace(line), 10, 53)
	if err != nil {
		return -1
	}
	return kib << 10
}

// A mount is a line of /proc/self/mountinfo.
type mount struct{ device, point, kind, source string }

// mountOf finds the mount of path: the mount with its device number; if no mount has that number,
// as with subvolumes of btrfs, the mount with the nearest folder. The last of several lies on top.
//
// Format: proc_pid_mountinfo(5): "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue".
func mountOf(mountinfo, device, path string) (found mount) {
	best := -1
	for line := range strings.Lines(mountinfo) {
		m, ok := parseMount(line)
		if !ok || !within(path, m.point) {
			continue
		}
		near := len(m.point)
		if m.device == device {
			near += 1 << 20 // longer than any path
		}
		if near >= best {
			found, best = m, near
		}
	}
	return found
}

func parseMount(line string) (m mount, ok bool) {
	front, back, ok := strings.Cut(line, " - ")
	f, b := strings.Fields(front), strings.Fields(back)
	if !ok || len(f) < 5 || len(b) < 2 {
		return m, false
	}
	return mount{device: f[2], point: plain(f[4]), kind: b[0], source: plain(b[1])}, true
}

// plain decodes the octal escapes of blanks and backslashes.
func plain(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		n, err := strconv.ParseUint(after[:min(3, len(after))], 8, 8)
		if err != nil || len(after) < 3 {
			b.WriteByte('\\')
			s = after
			continue
		}
		b.WriteByte(byte(n))
		s = after[3:]
	}
}

func within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
