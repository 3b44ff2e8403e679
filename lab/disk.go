package lab

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Disk limits the storage of each data server's folder, or of the scratch folder of each node:
// the folder lies on a file system of its own on a loop device. That device lies on a second loop
// device, which a control group of each server (version 1 or 2) limits, so that the first device is
// busy as a slow disk is. The file of the second device is below the system's folder. This needs
// root.
type Disk struct {
	Rate   int64 // bytes/s that it reads at most, and that it writes at most; 0: no such disk
	Slow   int64 // the same of the last server or node; 0: Rate
	Size   int64 // bytes; 0: 10 GB. They take space once they are written
	Memory int64 // bytes of memory of the server, page cache included: data beyond it is read from the disk; 0: no limit
}

// Limits of a Disk.
const (
	defaultDiskSize = 10e9
	minDiskSize     = 16 << 20
	minMemory       = 64 << 20
)

// Check returns an error if the limits are too small, or if this user can make no such disk.
func (d Disk) Check() error {
	switch {
	case d == Disk{}:
		return nil
	case d.Rate < 4096 || d.Slow != 0 && d.Slow < 4096:
		return fmt.Errorf("a disk of %d bytes/s: use 4096 or more", cmp.Or(d.Slow, d.Rate))
	case d.Size != 0 && d.Size < minDiskSize:
		return fmt.Errorf("a disk of %d bytes: use %d or more", d.Size, minDiskSize)
	case d.Memory != 0 && d.Memory < minMemory:
		return fmt.Errorf("%d bytes of memory: use %d or more", d.Memory, minMemory)
	case os.Geteuid() != 0:
		return errors.New("a limited disk is a loop device with a control group: only root can make them")
	}
	return nil
}

// disks are the limited disks of a system.
type disks struct {
	Disk
	last    string // the server or node whose disk may be slower
	name    string // prefix of the names of their control groups, by which the sweeper finds them
	mounts  []string
	groups  []string
	numbers map[string]string // the device that is limited, as in 7:0, of each server
}

// newDisk mounts the disk of a server at a folder of Dir, if its disk has a limit.
func (s *System) newDisk(server, folder string) {
	if s.disks == nil || s.err != nil {
		return
	}
	at := s.newDir(folder)
	image := filepath.Join(s.newDir("disks"), server)
	s.fail(s.disks.mount(server, image, at))
	if s.err == nil {
		s.fail(s.own(at, 0o755))
	}
}

// lastDisk marks server as the last server or node.
func (s *System) lastDisk(server string) {
	if s.disks != nil {
		s.disks.last = server
	}
}

// mount makes a file system in the file image, and mounts it for a server.
func (d *disks) mount(server, image, at string) error {
	f, err := os.OpenFile(image, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	size := d.Size
	if size == 0 {
		size = defaultDiskSize
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	if _, err := output("mkfs.ext4", "-q", "-F", "-m", "0", "-i", "65536", "-E", "lazy_itable_init=0,nodiscard", image); err != nil {
		return err
	}
	var loops []string
	under := image
	for range 2 { // without direct I/O the file's pages would be a second cache
		loop, err := output("losetup", "--find", "--show", "--direct-io=on", under)
		if err != nil {
			return errors.Join(err, detach(loops))
		}
		loops, under = append(loops, loop), loop
	}
	if _, err := output("mount", "-o", "noatime", under, at); err != nil {
		return errors.Join(err, detach(loops))
	}
	d.mounts = append(d.mounts, at)
	var numbers [2]string
	for i, loop := range loops {
		var st unix.Stat_t
		if err := unix.Stat(loop, &st); err != nil {
			return err
		}
		numbers[i] = fmt.Sprintf("%d:%d", unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev)))
	}
	d.numbers[server] = numbers[0]
	limitDirty(numbers[1], dirtySeconds*d.rate(server))
	return detach(loops)
}

// dirtySeconds is the time, in seconds of a disk's rate, that writing the dirty pages of the page
// cache may take.
const dirtySeconds = 5

// limitDirty makes writers wait while the given number of bytes is to be written to a device.
// Kernels before 6.2 cannot do that: there writers wait for the page cache of the machine or of the
// control group.
func limitDirty(device string, bytes int64) {
	folder := filepath.Join("/sys/class/bdi", device)
	for _, each := range [][2]string{{"strict_limit", "1"}, {"max_bytes", strconv.FormatInt(bytes, 10)}} {
		_ = os.WriteFile(filepath.Join(folder, each[0]), []byte(each[1]), 0o644)
	}
}

// rate returns the rate of a server's disk in bytes/s.
func (d *disks) rate(server string) int64 {
	if d.Slow > 0 && server == d.last {
		return d.Slow
	}
	return d.Rate
}

// detach removes loop devices, each as soon as nothing is on it.
func detach(loops []string) error {
	var errs []error
	for _, loop := range slices.Backward(loops) {
		_, err := output("losetup", "-d", loop)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// confine makes the processes of a server start in a control group of their own, if its disk has a
// limit.
func (s *System) confine(server string, parts ...*process) {
	if s.disks == nil || s.err != nil {
		return
	}
	groups, err := s.disks.group(server)
	for _, folder := range groups {
		if s.user >= 0 && !strings.HasPrefix(folder, unified) {
			err = errors.Join(err, os.Chown(filepath.Join(folder, "cgroup.procs"), s.user, s.user)) // see join
		}
	}
	s.fail(err)
	for _, p := range parts {
		p.groups = groups
	}
}

const (
	cgroups = "/sys/fs/cgroup"
	blkio   = cgroups + "/blkio"
	unified = cgroups + "/weir-lab-" // prefix of the groups of version 2
)

// throttles returns the files of a control group of version 1 that limit devices.
func throttles() []string {
	return []string{"blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"}
}

// group makes the control groups of a server, and returns their folders.
func (d *disks) group(server string) (folders []string, err error) {
	device := d.numbers[server]
	rate, memory := strconv.FormatInt(d.rate(server), 10), strconv.FormatInt(d.Memory, 10)
	type setting struct{ folder, file, value string }
	var all []setting
	name := d.name + "-" + server
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err == nil {
		folder := filepath.Join(cgroups, name)
		all = []setting{{cgroups, "cgroup.subtree_control", "+io +memory"}, {folder, "io.max", device + " rbps=" + rate + " wbps=" + rate}}
		if d.Memory > 0 {
			all = append(all, setting{folder, "memory.max", memory})
		}
		folders = []string{folder}
	} else {
		folder := filepath.Join(blkio, name)
		for _, file := range throttles() { // the kernel's writes from the page cache count in the first group
			all = append(all, setting{folder, file, device + " " + rate}, setting{blkio, file, device + " " + rate})
		}
		folders = []string{folder}
		if d.Memory > 0 {
			folder = filepath.Join(cgroups, "memory", name)
			all = append(all, setting{folder, "memory.limit_in_bytes", memory})
			folders = append(folders, folder)
		}
	}
	for _, folder := range folders {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return nil, fmt.Errorf("control group: %w", err)
		}
		d.groups = append(d.groups, folder)
	}
	for _, g := range all {
		if err := os.WriteFile(filepath.Join(g.folder, g.file), []byte(g.value), 0o644); err != nil {
			return nil, fmt.Errorf("control group: %w", err)
		}
	}
	return folders, nil
}

// remove unmounts the disks, after their servers have ended, and removes the control groups.
func (d *disks) remove() error {
	var errs []error
	for _, device := range d.numbers {
		for _, file := range throttles() {
			if err := os.WriteFile(filepath.Join(blkio, file), []byte(device+" 0"), 0); !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	for _, at := range d.mounts {
		errs = append(errs, retry(func() error { _, err := output("umount", at); return err }))
	}
	for _, folder := range d.groups {
		errs = append(errs, retry(func() error { return os.Remove(folder) })) // the last of its processes may still exist
	}
	d.mounts, d.groups, d.numbers = nil, nil, nil
	return errors.Join(errs...)
}

// removeGroups removes the control groups whose names begin so, with the groups in them.
func removeGroups(prefix string) error {
	if prefix == "" {
		return nil
	}
	var all []string
	for _, pattern := range []string{cgroups, cgroups + "/*"} {
		tops, err := filepath.Glob(pattern + "/" + prefix + "-*")
		if err != nil {
			return err
		}
		for _, top := range tops {
			_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					all = append(all, path)
				}
				return nil // or it has ended
			})
		}
	}
	var errs []error
	for _, folder := range slices.Backward(all) {
		errs = append(errs, retry(func() error { // the last of its processes may still exist
			if err := os.Remove(folder); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

// retry repeats do while its object may be busy.
func retry(do func() error) (err error) {
	for range 50 {
		if err = do(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// output calls outputOf for a program of this system.
func output(program string, args ...string) (string, error) {
	path, err := Find(program)
	if err != nil {
		return "", err
	}
	return outputOf(exec.Command(path, args...))
}

// join is a script that starts a program in control groups of version 1, whose folders are $0.
const join = `for g in $0; do echo $$ >"$g/cgroup.procs" || exit; done; exec "$@"`

// enter makes a program start in control groups. release is called after the start.
func enter(groups []string, cmd *exec.Cmd) (release func() error, err error) {
	release = func() error { return nil }
	if len(groups) == 0 {
		return release, nil
	}
	if strings.HasPrefix(groups[0], unified) {
		f, err := os.Open(groups[0])
		if err != nil {
			return release, fmt.Errorf("control group: %w", err)
		}
		useGroup(cmd.SysProcAttr, f)
		return f.Close, nil
	}
	cmd.Path = "/bin/sh"
	cmd.Args = append([]string{"sh", "-c", join, strings.Join(groups, " ")}, cmd.Args...)
	return release, nil
}
