package main

import (
	"context"
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
func throttledDisk(ctx context.Context, s *stage) error {
	mount, group, err := s.slowDisk(ctx, 20<<20)
	if err != nil {
		return err
	}
	w, _, err := s.daemon(ctx, 64, 1<<20, func(dir, port string) ([]string, error) {
		conf := "daemon off;\npid " + dir + "/pid;\nerror_log stderr;\nworker_processes 2;\nuser root;\nevents {}\nhttp {\naccess_log off;\nsendfile off;\ndirectio 512;\noutput_buffers 2 256k;\n" +
			"client_body_temp_path " + dir + "/1; proxy_temp_path " + dir + "/2; fastcgi_temp_path " + dir + "/3; uwsgi_temp_path " + dir + "/4; scgi_temp_path " + dir + "/5;\n" +
			"server { listen 127.0.0.1:" + port + "; root " + mount + "; }\n}\n"
		path := filepath.Join(dir, "nginx.conf")
		return []string{"sh", "-c", "echo $$ > " + group + "/cgroup.procs && exec nginx -p " + dir + " -e stderr -c " + path}, os.WriteFile(path, []byte(conf), 0o644)
	})
	if err != nil {
		return err
	}
	return s.bottleneck(ctx, w, nil, "1, 2, 4, 8", 20, how{}, "disk", "iowait")
}

// slowDisk mounts a loop device with 64 files of 1 MiB below data, of which a control group may read
// so many bytes a second.
func (s *stage) slowDisk(ctx context.Context, rate int) (mount, group string, err error) {
	group = fmt.Sprintf("/sys/fs/cgroup/blkio/weir-rig-%d", os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		return "", "", fmt.Errorf("%w: no control group for disks: %w", errSkip, err)
	}
	s.stops = append(s.stops, func() error { return os.Remove(group) })
	image := filepath.Join(s.dir, "disk")
	f, err := os.Create(image)
	if err != nil {
		return "", "", err
	}
	if err := errors.Join(f.Truncate(160<<20), f.Close()); err != nil {
		return "", "", err
	}
	device, err := s.command(ctx, "losetup", "--direct-io=on", "--find", "--show", image)
	if err != nil {
		return "", "", fmt.Errorf("%w: no loop device: %w", errSkip, err)
	}
	s.stops = append(s.stops, func() error { return exec.Command("losetup", "-d", device).Run() }) //nolint:noctx // also after the rig's time
	mount = filepath.Join(s.dir, "mount")
	if _, err = s.command(ctx, "mkfs.ext4", "-q", device); err == nil {
		err = os.Mkdir(mount, 0o755)
	}
	if err == nil {
		_, err = s.command(ctx, "mount", device, mount)
	}
	if err != nil {
		return "", "", fmt.Errorf("%w: no file system: %w", errSkip, err)
	}
	s.stops = append(s.stops, func() error { return exec.Command("umount", mount).Run() }) //nolint:noctx // see above
	w := &site{files: 64, size: 1 << 20}
	err = errors.Join(os.Mkdir(mount+"/data", 0o755), w.fill(func(name string, content []byte) error {
		return os.WriteFile(filepath.Join(mount, "data", name), content, 0o644)
	}))
	unix.Sync()
	return mount, group, errors.Join(err, throttle(group, image, rate))
}

// throttle limits what a control group reads of the device that a file is on.
func throttle(group, file string, rate int) error {
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		return err
	}
	line := fmt.Sprintf("%d:%d %d", unix.Major(st.Dev), unix.Minor(st.Dev), rate)
	return os.WriteFile(group+"/blkio.throttle.read_bps_device", []byte(line), 0o644)
}

// command runs a program to its end and returns what it printed.
func (s *stage) command(ctx context.Context, name string, args ...string) (string, error) {
	path, err := program(name)
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
