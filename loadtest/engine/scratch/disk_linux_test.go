package scratch

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

const mountinfo = `22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
40 22 0:38 / /tmp rw,nosuid - tmpfs tmpfs rw,size=1g
41 22 0:40 /@home /home rw shared:9 - btrfs /dev/mapper/vg-home rw,subvol=/@home
42 22 253:0 / /scratch\040disk rw - xfs /dev/mapper/vg-scratch rw
43 22 259:3 / /data rw - ext4 /dev/nvme1n1p1 rw
44 43 0:41 / /data rw - tmpfs over rw
torn line
45 22 0:42 / /mnt`

func TestMountOf(t *testing.T) {
	for _, c := range []struct{ device, path, kind, source string }{
		{"259:2", "/var/tmp", "ext4", "/dev/nvme0n1p2"},
		{"0:38", "/tmp/a/b", "tmpfs", "tmpfs"},
		{"0:99", "/home/me", "btrfs", "/dev/mapper/vg-home"}, // a subvolume has a number of its own
		{"253:0", "/scratch disk/x", "xfs", "/dev/mapper/vg-scratch"},
		{"0:41", "/data", "tmpfs", "over"},
		{"7:7", "/tmpfile", "ext4", "/dev/nvme0n1p2"},
	} {
		if m := mountOf(mountinfo, c.device, c.path); m.kind != c.kind || m.source != c.source {
			t.Errorf("%s on %s: %+v, want %s of %s", c.path, c.device, m, c.kind, c.source)
		}
	}
	if m := mountOf("", "1:1", "/"); m != (mount{}) {
		t.Errorf("%+v", m)
	}
	for in, want := range map[string]string{`a\040b`: "a b", `\134`: `\`, `x\9`: `x\9`, `\`: `\`, `\04`: `\04`, "": ""} {
		if got := plain(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

func TestAvailableMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal:  9 kB\nMemAvailable:   16384 kB\nSwapFree: 1 kB\n": 16 << 20,
		"MemTotal:  9 kB\n":                     -1,
		"MemAvailable: many kB":                 -1,
		"MemAvailable: 99999999999999999999 kB": -1,
		"":                                      -1,
	} {
		if got := available(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestDiskOfThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	d := On(t.TempDir())
	if d.Filesystem == "" || d.Number == "" || d.Free <= 0 {
		t.Errorf("%+v", d)
	}
	if d.Device != "" {
		b, err := os.ReadFile("/proc/diskstats")
		if err != nil || !strings.Contains(string(b), " "+d.Device+" ") {
			t.Errorf("%q is no disk of this machine (%v)", d.Device, err)
		}
	}
	if d := On("/nowhere/at/all"); d != (Disk{Free: -1}) {
		t.Errorf("%+v", d)
	}
}

func TestDiskInMemory(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("weir-test", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip(err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	if d := On(dir); d.Device != "" || d.Filesystem != "tmpfs" || d.Free > 1<<20 || d.Free < 1<<19 {
		t.Errorf("%+v", d)
	}
}
