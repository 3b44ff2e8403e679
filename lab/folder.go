package lab

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// makeDir makes Dir and the folders above it; the servers' user must be able to come there.
func (s *System) makeDir(dir string) error {
	where, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if dir == "" {
		where = os.TempDir()
	}
	if strings.ContainsAny(where, " \t\r\n\"'`\\;{}$#") {
		return fmt.Errorf("folder %q cannot be named in the servers' configurations: use letters, digits, dots and dashes", where)
	}
	if err := reaches(s, where); err != nil {
		return err
	}
	if dir == "" {
		made, err := os.MkdirTemp("", "weir-lab-"+s.Name+"-")
		if err != nil {
			return err
		}
		s.Dir = made
		return s.own(made, 0o755)
	}
	names, err := os.ReadDir(where)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(where), 0o755); err != nil {
			return err
		}
		s.Dir = where
		return s.mkdir(where)
	}
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("folder %s is not empty: give an empty or a missing one", where)
	}
	if s.given, err = os.Stat(where); err != nil {
		return err
	}
	s.Dir = where
	return s.own(where, 0o755)
}

// reaches reports whether the servers' user can come to dir.
func reaches(s *System, dir string) error {
	if s.user < 0 {
		return nil
	}
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		info, err := os.Stat(up)
		if err == nil && info.Mode().Perm()&1 == 0 {
			return fmt.Errorf("folder %s keeps others out, but started by root the servers run as user id %d: give a folder elsewhere", up, s.user)
		}
		if up == filepath.Dir(up) {
			return nil
		}
	}
}

// mkdir makes path and its missing parents below Dir for the servers' user.
func (s *System) mkdir(path string) error {
	if path != s.Dir {
		if err := s.mkdir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o755); errors.Is(err, os.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return s.own(path, 0o755)
}

func (s *System) own(path string, mode os.FileMode) error {
	if err := os.Chmod(path, mode); err != nil || s.user < 0 {
		return err
	}
	return os.Chown(path, s.user, s.user)
}

// write puts a file of the system itself in place, readable by its user only.
func (s *System) write(name string, content []byte) (string, error) {
	path := filepath.Join(s.Dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return path, err
	}
	return path, s.own(path, 0o600)
}

// WriteFile makes a file in Data, and the folders on its way, all owned by
// the user that runs the servers. name is relative to Data.
func (s *System) WriteFile(name string, content []byte) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("lab: %q leaves the data folder", name)
	}
	path := filepath.Join(dataOf(s, name), name)
	if err := s.mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return err
	}
	return s.own(path, 0o644)
}

// dataOf returns the folder for a new file called name.
func dataOf(s *System, name string) string {
	var folders []string
	for _, server := range s.Servers {
		if server.Role == DataServer {
			folders = append(folders, server.Data)
		}
	}
	if len(folders) < 2 {
		return s.Data
	}
	return folders[crc32.ChecksumIEEE([]byte(filepath.Clean(name)))%uint32(len(folders))]
}

// restoreFolder empties dir and gives it back its mode and owner.
func restoreFolder(dir string, was os.FileInfo) error {
	names, err := os.ReadDir(dir)
	errs := []error{err}
	for _, n := range names {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, n.Name())))
	}
	errs = append(errs, os.Chmod(dir, was.Mode().Perm()))
	if owner, ok := was.Sys().(*syscall.Stat_t); ok {
		errs = append(errs, os.Chown(dir, int(owner.Uid), int(owner.Gid)))
	}
	return errors.Join(errs...)
}

// sweepScript reads its standard input. A word means that weir has removed the system itself. The
// end of the input means that weir has died, and the script removes the system. $3 is the prefix of
// the names of control groups, and not empty if the system has limited disks.
const sweepScript = `read -r _ && exit 0
for try in 1 2 3 4 5 6 7 8 9 10; do
	if [ -n "$3" ]; then
		while read -r disk at _; do
			case "$at" in "$1"/*) ;; *) continue ;; esac
			read -r under <"/sys/block/${disk#/dev/}/loop/backing_file"
			read -r number <"/sys/block/${under#/dev/}/dev"
			for limit in /sys/fs/cgroup/blkio/blkio.throttle.*_bps_device; do echo "$number 0" >"$limit"; done
			umount -l "$at"
		done </proc/self/mounts
		find /sys/fs/cgroup -depth -type d -path "*/$3-*" -exec rmdir {} +
		[ "$try" -lt 3 ] && sleep 0.3 && continue # while processes of the groups end
	fi
	find "$1" -mindepth "$2" -delete && exit 0
	sleep 0.3
done 2>/dev/null`

// A sweeper is a process that outlives this process and removes the system's files.
type sweeper struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// sweep starts the sweeper of a folder. If keep is set, the sweeper empties the folder instead of
// removing it. groups is the prefix of the names of its control groups, "" if the system has no
// control groups.
func sweep(dir string, keep bool, groups string) (*sweeper, error) {
	depth := "0"
	if keep {
		depth = "1"
	}
	cmd := exec.Command("/bin/sh", "-c", sweepScript, "weir-lab-sweeper", dir, depth, groups)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &sweeper{cmd, in}, cmd.Start()
}

// end ends the sweeper when there is nothing left for it.
func (w *sweeper) end() {
	_, _ = io.WriteString(w.in, "done\n")
	_ = w.in.Close()
	_ = w.cmd.Wait()
}
