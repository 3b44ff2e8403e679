package lab_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
)

// TestDisk: servers with limited disks read and write no faster than their limits, each for itself, are in control groups
// with their memory, and leave no mount, loop device and group behind: after Stop, and when the program that began them is killed.
func TestDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		tier.Without(t, "root", "limited disks are for root")
	}
	const rate, size = 20 << 20, 60 << 20
	disk := lab.Disk{Rate: rate, Size: 1 << 30, Memory: 256 << 20}
	for name, start := range map[string]func(*testing.T) *lab.System{
		"nginx": func(t *testing.T) *lab.System {
			return labtest.Start(t, lab.NginxConfig{Config: lab.Config{Disk: disk}})
		},
		"cluster": func(t *testing.T) *lab.System {
			return labtest.Start(t, lab.XRootDConfig{Config: lab.Config{Disk: disk}, Servers: 2})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			require.NoError(t, os.WriteFile(filepath.Join(s.Data, "f"), make([]byte, size), 0o644))
			if out, err := exec.CommandContext(t.Context(), "sync", "-f", s.Data).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if out, err := exec.CommandContext(t.Context(), "dd", "of="+filepath.Join(s.Data, "f"), "oflag=nocache", "conv=notrunc,fdatasync",
				"count=0").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			url := s.URLs["http"]
			if name == "cluster" {
				_, port, _ := strings.Cut(s.Servers[1].Address, ":")
				url = "http://127.0.0.1:" + port + "/data"
			}
			begin, read := time.Now(), sectors(t, s)
			if n := len(labtest.Get(t, url+"/f")); n != size {
				t.Fatalf("%d bytes", n)
			}
			if took := time.Since(begin).Seconds(); took < 0.8*size/rate {
				t.Errorf("%d MiB were read in %.2f s at %d MiB/s", size>>20, took, rate>>20)
			}
			if n := 512 * (sectors(t, s) - read); n < size {
				t.Errorf("%d bytes were read from the disk", n)
			}
			read = sectors(t, s)
			if n := len(labtest.Get(t, url+"/f")); n != size {
				t.Fatalf("%d bytes", n)
			}
			if n := 512 * (sectors(t, s) - read); n > size/10 {
				t.Errorf("of %d MiB in the page cache %d bytes were read from the disk", size>>20, n)
			}
			data, groups := s.Data, s.Groups()
			if left := remains(data, groups); len(left) < 2 {
				t.Errorf("there are only %q", left)
			}
			require.NoError(t, s.Stop())
			if left := remains(data, groups); len(left) > 0 {
				t.Errorf("%q remain", left)
			}
		})
	}
}

// sectors returns how many sectors have been read from the disks of a system.
func sectors(t *testing.T, s *lab.System) (n int) {
	t.Helper()
	stats, err := os.ReadFile("/proc/diskstats")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(stats)) {
		if f := strings.Fields(line); slices.Contains(slices.Collect(maps.Values(s.DiskNames())), f[0]+":"+f[1]) {
			some, err := strconv.Atoi(f[5])
			if err != nil {
				t.Fatal(err)
			}
			n += some
		}
	}
	return n
}

// TestScratchDisk: the scratch disk of a node writes no faster than its limit, including the
// kernel's later writes, and reads no faster.
func TestScratchDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		tier.Without(t, "root", "limited disks are for root")
	}
	const rate, size = 20 << 20, 60 << 20
	disk := lab.Disk{Rate: 10 * rate, Slow: rate, Size: 1 << 30, Memory: 256 << 20}
	s := labtest.Start(t, lab.SSHConfig{Config: lab.Config{Disk: disk}, Nodes: 2})
	labtest.Use(t, s)
	scripts := map[string]string{
		"write and sync": "dd if=/dev/zero of=$TMPDIR/a bs=1M count=60 conv=fsync",
		"write":          "dd if=/dev/zero of=$TMPDIR/b bs=1M count=60 && sync -f $TMPDIR/b",
		"read":           "dd of=$TMPDIR/a oflag=nocache conv=notrunc,fdatasync count=0 && cat $TMPDIR/a >/dev/null",
	}
	if limits, _ := filepath.Glob("/sys/class/bdi/*/max_bytes"); len(limits) > 0 { // 100 MiB may wait in the page cache
		scripts["write, no sync"] = "dd if=/dev/zero of=$TMPDIR/c bs=1M count=160 && rm $TMPDIR/c"
	}
	for what, script := range scripts {
		begin := time.Now()
		run(t, nil, "ssh", "node2",
			"set -e; touch $TMPDIR/a; [ -s $TMPDIR/a ] || dd if=/dev/zero of=$TMPDIR/a bs=1M count=60 conv=fsync; "+script)
		if took := time.Since(begin).Seconds(); took < 0.8*size/rate {
			t.Errorf("%s: %d MiB in %.2f s at %d MiB/s", what, size>>20, took, rate>>20)
		}
	}
	if out := run(t, nil, "ssh", "node1", "ls $TMPDIR; echo $TMPDIR"); out != "lost+found\n"+filepath.Join(s.Dir, "node1", "scratch")+"\n" {
		t.Errorf("the scratch disk of node1 has %q", out)
	}
	if lab.OverMemory(s.GroupsOf(1)) {
		t.Error("the kernel killed something on node2 before it needed memory")
	}
	if out, err := exec.CommandContext(t.Context(), "ssh", "node2", "tail /dev/zero").CombinedOutput(); err == nil ||
		!lab.OverMemory(s.GroupsOf(1)) || lab.OverMemory(s.GroupsOf(0)) {
		t.Errorf("endless memory on node2: %v %s", err, out)
	}
	groups, devices := s.Groups(), s.DiskNames()
	require.NoError(t, s.Stop())
	if left := remains(s.Dir, groups); len(left) > 0 {
		t.Errorf("%q remain", left)
	}
	rules, _ := os.ReadFile("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device")
	for _, device := range devices {
		if strings.Contains("\n"+string(rules), "\n"+device+" ") {
			t.Errorf("limits remain: %s", rules)
		}
	}
}

// remains lists the mounts of a folder's disk and the control groups.
func remains(data, groups string) (all []string) {
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(data, f[1]+"/") && strings.HasPrefix(f[0], "/dev/loop") {
			all = append(all, f[1])
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/%s-*", "/sys/fs/cgroup/*/%s-*"} {
		found, _ := filepath.Glob(fmt.Sprintf(pattern, groups))
		all = append(all, found...)
	}
	return all
}

func TestDiskOfNone(t *testing.T) {
	for _, d := range []lab.Disk{{Rate: 1}, {Rate: 1 << 20, Slow: 1}, {Rate: 1 << 20, Size: 1}, {Rate: 1 << 20, Memory: 1}, {Size: 1 << 30}} {
		if d.Check() == nil {
			t.Errorf("%+v is accepted", d)
		}
	}
	if _, err := (lab.PostgreSQLConfig{Config: lab.Config{Disk: lab.Disk{Rate: 1 << 20}}}).Start(t.Context()); err == nil {
		t.Error("postgresql has a limited disk")
	}
}
