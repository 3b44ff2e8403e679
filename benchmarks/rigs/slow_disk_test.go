package rigs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// throttledDisk reads from a loop device whose backing file is throttled for the control group that
// the server is in.
func throttledDisk(s *stage) {
	mount, group := s.slowDisk(20 << 20)
	w, _ := s.configured(64, 1<<20, func(dir, port string) ([]string, string) {
		conf := "daemon off;\npid " + dir + "/pid;\nerror_log stderr;\nworker_processes 2;\nuser root;\nevents {}\nhttp {\naccess_log " +
			"off;\nsendfile off;\ndirectio 512;\noutput_buffers 2 256k;\nclient_body_temp_path " + dir + "/1; proxy_temp_path " + dir +
			"/2; fastcgi_temp_path " + dir + "/3; uwsgi_temp_path " + dir + "/4; scgi_temp_path " + dir + "/5;\n" +
			"server { listen 127.0.0.1:" + port + "; root " + mount + "; }\n}\n"
		return []string{"sh", "-c", "echo $$ > " + group + "/cgroup.procs && exec nginx -p " + dir + " -e stderr -c " + dir + "/conf"}, conf
	})
	s.bottleneck(w, "1, 2, 4, 8", 20, how{}, "disk", "iowait")
}

// slowDisk mounts a loop device with 64 files of 1 MiB below data. rate is the number of bytes per
// second that a control group may read from it.
func (s *stage) slowDisk(rate int) (mount, group string) {
	group = fmt.Sprintf("/sys/fs/cgroup/blkio/weir-rig-%d", os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		s.cannot("no control group for disks: %v", err)
	}
	s.ends(func() error { return os.Remove(group) })
	image := filepath.Join(s.dir, "disk")
	f, err := os.Create(image)
	s.must(err)
	s.must(errors.Join(f.Truncate(160<<20), f.Close()))
	device, err := s.command("losetup", "--direct-io=on", "--find", "--show", image)
	if err != nil {
		s.cannot("no loop device: %v", err)
	}
	s.ends(func() error { return exec.Command("losetup", "-d", device).Run() })
	mount = filepath.Join(s.dir, "mount")
	s.must(os.Mkdir(mount, 0o755))
	if _, err = s.command("mkfs.ext4", "-q", device); err == nil {
		_, err = s.command("mount", device, mount)
	}
	if err != nil {
		s.cannot("no file system: %v", err)
	}
	s.ends(func() error { return exec.Command("umount", mount).Run() })
	w := &site{files: 64, size: 1 << 20}
	s.must(os.Mkdir(mount+"/data", 0o755))
	s.must(w.fill(func(name string, content []byte) error {
		return os.WriteFile(filepath.Join(mount, "data", name), content, 0o644)
	}))
	unix.Sync()
	s.must(throttle(group, image, rate))
	return mount, group
}

// throttle limits the rate at which a control group reads from the device of a file.
func throttle(group, file string, rate int) error {
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		return err
	}
	line := fmt.Sprintf("%d:%d %d", unix.Major(st.Dev), unix.Minor(st.Dev), rate)
	return os.WriteFile(group+"/blkio.throttle.read_bps_device", []byte(line), 0o644)
}

// command runs a program to its end and returns its output.
func (s *stage) command(name string, args ...string) (string, error) {
	path, err := program(name)
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(s.ctx, path, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
