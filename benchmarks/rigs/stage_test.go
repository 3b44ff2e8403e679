package rigs

import (
	"bufio"
	"cmp"
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
	"sync"
	"syscall"
	"testing"
	"time"
)

// A stage has the resources of one rig: a folder, the programs that it has started, and its
// results. Everything that its methods start ends with the rig; if a method fails, the rig itself
// has failed and ends.
type stage struct {
	*testing.T
	ctx     context.Context
	weir    string
	dir     string
	naive   []string
	shown   []*ran // runs of weir on the page
	missed  []string
	skipped string
	pids    []int // leaders of the process groups of servers
	count   int
}

// newStage returns the stage of a rig of at most the given duration.
func newStage(t *testing.T, weir string, most time.Duration) *stage {
	s := &stage{T: t, weir: weir}
	ctx, cancel := context.WithTimeout(t.Context(), most)
	t.Cleanup(cancel)
	s.ctx = ctx
	dir, err := os.MkdirTemp("", "weir-rig-")
	s.must(err)
	s.ends(func() error { return os.RemoveAll(dir) })
	s.dir = dir
	s.must(os.Chmod(dir, 0o755))
	return s
}

// must ends a rig that has failed itself.
func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.missed = append(s.missed, "the rig itself failed: "+err.Error())
		s.Fatal(err)
	}
}

// cannot ends a rig that cannot be played on this machine.
func (s *stage) cannot(format string, args ...any) {
	s.Helper()
	s.skipped = fmt.Sprintf(format, args...)
	s.Skip(s.skipped)
}

// ends calls stop when the rig ends.
func (s *stage) ends(stop func() error) {
	s.Cleanup(func() {
		if err := stop(); err != nil {
			s.Error(err)
		}
	})
}

// save copies the run directories.
func (s *stage) save(dir string) {
	runs, _ := filepath.Glob(filepath.Join(s.dir, "run-*")) // the pattern is right
	for _, r := range runs {
		if err := os.CopyFS(filepath.Join(dir, filepath.Base(r)), os.DirFS(r)); err != nil {
			s.Error(err)
		}
	}
}

// expect records an expectation if it does not hold.
func (s *stage) expect(holds bool, format string, args ...any) {
	if !holds {
		s.missed = append(s.missed, fmt.Sprintf(format, args...))
	}
}

// A site is a running server.
type site struct {
	url   string // of the folder with the files
	files int
	size  int
	stop  func() // ends a fault server before its rig's end
}

// file returns the URL of the first file.
func (w *site) file() string { return w.url + "/f0" }

// child starts this program as a process of its own, which ends with its input. It returns the
// first line of its output, its process id, and a function that ends it before the rig's end.
func (s *stage) child(wrap []string, args ...string) (line string, pid int, stop func(), err error) {
	self, err := os.Executable()
	s.must(err)
	argv := append(append(wrap, self), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	s.must(err)
	out, err := cmd.StdoutPipe()
	s.must(err)
	s.must(cmd.Start())
	stop = sync.OnceFunc(func() {
		_ = in.Close()
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its error only reports the signal
	})
	s.Cleanup(stop)
	line, err = bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(line), cmd.Process.Pid, stop, err
}

// faulty starts a fault server. Words in wrap come before its command.
func (s *stage) faulty(c spec, wrap ...string) *site {
	b, err := json.Marshal(c)
	s.must(err)
	address, pid, stop, err := s.child(wrap, faultyWord, string(b))
	if err != nil && strings.HasPrefix(c.Address, "[") {
		s.cannot("no IPv6: %v", err)
	}
	s.must(err)
	s.pids = append(s.pids, pid)
	return &site{url: "http://" + address + "/data", files: cmp.Or(c.Files, defaultFiles), size: cmp.Or(c.Size, defaultSize), stop: stop}
}

// stats requests the statistics of a fault server.
func (s *stage) stats(w *site) (st stats) {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, strings.TrimSuffix(w.url, "/data")+statsPath, nil)
	s.must(err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	s.must(err)
	defer resp.Body.Close()
	s.must(json.NewDecoder(resp.Body).Decode(&st))
	return st
}

// list writes a list of the files of a site and returns the files block of a scenario. The list has
// sizes unless weir is to determine them.
func (s *stage) list(w *site, sizes bool) string {
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
	s.must(os.WriteFile(path, []byte(b.String()), 0o644))
	return "files: {list: " + path + "}\n"
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

// sleep waits, but not longer than the rig may take.
func (s *stage) sleep(d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(d):
	}
}

// lacks returns a text about the first missing program, or "" if no program is missing.
func lacks(programs []string) string {
	for _, p := range programs {
		if p == "root" {
			if os.Geteuid() != 0 {
				return "only root can play it"
			}
			continue
		}
		if _, err := program(p); err != nil {
			return p + " is not on this machine (make needs-full installs it)"
		}
	}
	return ""
}

// program returns the path of a program in PATH or in the folder of daemons.
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
	defer f.Close()
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
