package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A stage is what one rig works with: a folder, what it has started, and what
// was seen.
type stage struct {
	options
	dir    string
	stops  []func() error
	naive  []string
	shown  []*ran // runs of weir that the page shows
	missed []string
	pids   []int // leaders of the process groups of servers
	count  int
}

func newStage(o options) (*stage, error) {
	dir, err := os.MkdirTemp("", "weir-rig-")
	if err != nil {
		return nil, err
	}
	return &stage{options: o, dir: dir}, os.Chmod(dir, 0o755)
}

// close stops everything, the last first, and removes the folder.
func (s *stage) close() error {
	return errors.Join(s.stopAll(), os.RemoveAll(s.dir))
}

// save copies the run directories.
func (s *stage) save(dir string) error {
	runs, err := filepath.Glob(filepath.Join(s.dir, "run-*"))
	for _, r := range runs {
		err = errors.Join(err, os.CopyFS(filepath.Join(dir, filepath.Base(r)), os.DirFS(r)))
	}
	return err
}

// stopAll stops everything that was started.
func (s *stage) stopAll() error {
	var errs []error
	for i := len(s.stops) - 1; i >= 0; i-- {
		errs = append(errs, s.stops[i]())
	}
	s.stops = nil
	return errors.Join(errs...)
}

// expect notes an expectation that does not hold.
func (s *stage) expect(holds bool, format string, args ...any) {
	if !holds {
		s.missed = append(s.missed, fmt.Sprintf(format, args...))
	}
}

// A site is a server that runs.
type site struct {
	url   string // of the folder with the files
	files int
	size  int
}

// file is the URL of the first file.
func (w *site) file() string { return w.url + "/f0" }

// child starts this program as a process of its own, which ends with its input,
// and returns it with the first line of its output.
func (s *stage) child(wrap []string, args ...string) (*exec.Cmd, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	argv := append(append(wrap, self), args...)
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // ends with its input
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	s.stops = append(s.stops, func() error {
		_ = in.Close()
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says only that it was killed
		return nil
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	return cmd, strings.TrimSpace(line), err
}

// faulty starts a fault server. Words in wrap come before its command.
func (s *stage) faulty(c spec, wrap ...string) (*site, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd, address, err := s.child(wrap, faultyWord, string(b))
	if err != nil {
		return nil, fmt.Errorf("the fault server did not start: %w", err)
	}
	w := &site{url: "http://" + address + "/data", files: c.Files, size: c.Size}
	s.pids = append(s.pids, cmd.Process.Pid)
	if w.files == 0 {
		w.files = 16
	}
	if w.size == 0 {
		w.size = 64 << 10
	}
	return w, nil
}

// stats asks a fault server what it did.
func (w *site) stats(ctx context.Context) (st stats, err error) {
	url := strings.TrimSuffix(w.url, "/data") + statsPath
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return st, err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return st, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	return st, json.NewDecoder(resp.Body).Decode(&st)
}

// list writes a list of the files of a site and returns the files block of a
// scenario. The list has sizes unless they are to be found out.
func (s *stage) list(w *site, sizes bool) (string, error) {
	var b strings.Builder
	for n := range w.files {
		fmt.Fprintf(&b, "/f%d", n)
		if sizes {
			fmt.Fprintf(&b, " %d", w.size)
		}
		b.WriteString("\n")
	}
	s.count++
	path := filepath.Join(s.dir, fmt.Sprintf("files-%d.txt", s.count))
	return "files: {list: " + path + "}\n", os.WriteFile(path, []byte(b.String()), 0o644)
}

// fill makes the files of a site below a folder.
func (w *site) fill(write func(name string, content []byte) error) error {
	c := newServer(spec{Files: w.files, Size: w.size})
	for n := range w.files {
		if err := write(fmt.Sprintf("f%d", n), c.content(n)); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits, but no longer than ctx.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// lacks says which program is missing, "" if none is.
func lacks(programs []string) string {
	for _, p := range programs {
		if p == "root" {
			if os.Geteuid() != 0 {
				return "only root can play it"
			}
			continue
		}
		if _, err := program(p); err != nil {
			return p + " is not on this machine (make needs installs it)"
		}
	}
	return ""
}

// program finds a program in PATH or where daemons lie.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	return path, err
}

// readLines calls do with each line of a file.
func readLines(path string, do func(line []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	r := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(line); err != nil {
			return err
		}
	}
}
