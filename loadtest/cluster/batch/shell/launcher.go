package shell

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"weir/loadtest/cluster/batch"
)

// A Launcher starts workers one by one, each when there is a shell for it: in the allocations of a
// batch system that does not transfer files itself.
type Launcher struct {
	j *job
	w *batch.Work
}

// A Reach is the way in which a Launcher gets to its workers' shells.
type Reach struct {
	// Argv returns a program with its arguments to which a command line is added, which runs in the
	// shell of a worker.
	Argv func(worker int) []string
	ID   func(worker int) string // the system's name of the worker: letters, digits, ._-
}

// NewLauncher returns the launcher of a submission, which notes the changes of its workers in l.
func NewLauncher(l *batch.Ledger, sub *batch.Submission, w *batch.Work, r Reach) *Launcher {
	own := *sub
	own.Places, own.Hosts = map[string]string{}, nil
	for i := range sub.Count {
		own.Hosts = append(own.Hosts, strconv.Itoa(i))
	}
	number := func(host string) int {
		n, _ := strconv.Atoi(host) // it is a number of a worker
		return n
	}
	s := &System{name: sub.System, unpack: takeLine, id: r.ID, reach: func(host string, _ []string) []string { return r.Argv(number(host)) }}
	return &Launcher{w: w, j: &job{Ledger: l, system: s, sub: &own, stopping: make(chan struct{})}}
}

const (
	waiting   = ".waits" // marks a folder that waits for its worker
	notWanted = "not-wanted"
)

var errNotWanted = errors.New("what was brought is there already")

// Await returns the shell commands with which a shell waits for Start: it makes a folder and waits
// until the worker has ended and its outputs are fetched. It ends with 125 if no worker is
// transferred within ten minutes. n is an expression for the worker's number.
func Await(tag, n string) string {
	return fmt.Sprintf(`	d=
	for t in "${TMPDIR:-/tmp}" /tmp; do
		[ -n "$d" ] || d=$(mktemp -d "$t/%s.%sxXXXXXXXX" 2>/dev/null)
	done
	[ -n "$d" ] || exit 125
	trap 'rm -rf "$d"; exit 143' TERM INT HUP
	: >"$d/%s"
	i=0
	while [ -d "$d" ]; do
		i=$((i + 1))
		[ "$i" -lt 600 ] || [ -e "$d/.run" ] || { rm -rf "$d"; exit 125; }
		sleep 1
	done
`, tag, n, waiting)
}

// takeLine unpacks the archive into the folder that Await has made.
func takeLine(host, tag string) string {
	return `exec /bin/sh -c 'umask 077; for t in "${TMPDIR:-/tmp}" /tmp; do for d in "$t"/` + tag + `.` + host + `x*; do ` +
		`if [ -e "$d/` + waiting + `" ]; then cd "$d" && tar -xf - && rm ` + waiting + ` && pwd -P; exit; fi; done; done; echo ` + notWanted + `'`
}

// Start transfers a worker to its shell and runs it there. It calls done once. started is true when
// the worker has ended and its outputs are in the submission's folder; err then reports missing
// outputs. started is false if no shell waits there (err is nil) or the transfer failed (err is the
// reason), and then Start may be called again.
func (c *Launcher) Start(worker int, done func(started bool, err error)) {
	host := strconv.Itoa(worker)
	c.j.wait.Go(func() {
		ctx, cut := context.WithTimeout(context.Background(), 5*time.Minute)
		brought := make(chan struct{})
		c.j.wait.Go(func() {
			defer cut()
			select {
			case <-brought:
			case <-c.j.stopping: // no longer needed
			}
		})
		err := c.j.prepare(ctx, host, c.w)
		close(brought)
		switch {
		case errors.Is(err, errNotWanted):
			done(false, nil)
		case err != nil:
			done(false, err)
		default:
			done(true, c.j.host(host))
		}
	})
}

// Quit ends the workers that the launcher has started, and waits until nothing is left of them.
func (c *Launcher) Quit() {
	c.j.quit()
	c.j.wait.Wait()
}
