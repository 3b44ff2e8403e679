package shell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"weir/loadtest/cluster/batch"
)

// reach starts a command line in the shell of a machine.
func (j *job) reach(ctx context.Context, host, line string) *exec.Cmd {
	return batch.Command(ctx, append(j.system.reach(host, j.sub.Options), line)...)
}

// ask runs a command line on a machine. The error has the messages of ssh, or of the shell there.
func (j *job) ask(ctx context.Context, host, line string, in io.Reader, out io.Writer) error {
	cmd := j.reach(ctx, host, line)
	var words bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &words
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", host, ctx.Err())
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%s is not on this machine", cmd.Args[0])
	default:
		return fmt.Errorf("%s: %s", host, batch.Words(words.String(), err))
	}
}

// prepare transfers the program and the files of a Work to a machine.
func (j *job) prepare(ctx context.Context, host string, w *batch.Work) error {
	from, to := io.Pipe()
	var packed error
	var wait sync.WaitGroup
	wait.Go(func() {
		packed = pack(to, w)
		_ = to.CloseWithError(packed)
	})
	var said bytes.Buffer
	err := j.ask(ctx, host, j.system.unpack(host, j.sub.Tag), from, &said)
	_ = from.CloseWithError(io.ErrClosedPipe) // if the machine has not read all, packing ends
	wait.Wait()
	if packed != nil && !errors.Is(packed, io.ErrClosedPipe) {
		return packed
	}
	if err != nil {
		return err
	}
	// A login shell may print its own messages before the folder.
	lines := strings.Fields(said.String())
	if len(lines) > 0 && lines[len(lines)-1] == notWanted {
		return errNotWanted
	}
	if len(lines) == 0 || !isFolder(lines[len(lines)-1], j.sub.Tag) {
		return fmt.Errorf("%s: the shell printed %q, expected the folder of the files", host, batch.Words(said.String(), nil))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sub.Places[host] = lines[len(lines)-1]
	return nil
}

// host runs the workers of a machine and fetches their outputs. The error reports missing outputs.
func (j *job) host(host string) error {
	j.mu.Lock()
	place := j.sub.Places[host]
	j.mu.Unlock()
	starting := make(chan struct{}, 4) // sshd drops connections if more than 10 are not yet authenticated
	var wait sync.WaitGroup
	for _, i := range j.workers(host) {
		starting <- struct{}{}
		wait.Go(func() { j.worker(i, host, place, sync.OnceFunc(func() { <-starting })) })
	}
	wait.Wait()
	return j.bring(host, place)
}

// bring fetches the outputs of the workers of a machine, which removes them there.
func (j *job) bring(host, place string) error {
	ctx, cut := context.WithCancel(context.Background())
	defer cut()
	fetched := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() { // without a time limit, unless the job is to end
		select {
		case <-fetched:
			return
		case <-j.stopping:
		}
		select {
		case <-fetched:
		case <-time.After(clearPatience):
			cut()
		}
	})
	err := batch.Retry(ctx, j.system.name, func() error { return j.fetch(ctx, host, place) }, nil)
	close(fetched)
	wait.Wait()
	if err != nil {
		return fmt.Errorf("outputs are not all here: %w", err)
	}
	return nil
}

// fetch is one attempt of bring.
func (j *job) fetch(ctx context.Context, host, place string) error {
	from, to := io.Pipe()
	var unpacked error
	var wait sync.WaitGroup
	wait.Go(func() {
		unpacked = unpack(from, j.sub, j.workers(host))
		_, _ = io.Copy(io.Discard, from) // padding
	})
	err := j.ask(ctx, host, bringLine(place), nil, to)
	_ = to.Close()
	wait.Wait()
	if err != nil {
		return err
	}
	return unpacked
}

// worker runs one worker until it ends. It is started again if a transient response kept it from
// starting. started is called when it runs or will not.
func (j *job) worker(i int, host, place string, started func()) {
	defer started()
	ctx, cut := context.WithCancel(context.Background()) // of the pauses between attempts
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cut()
	wait.Go(func() {
		select {
		case <-j.stopping:
		case <-ctx.Done():
		}
		cut()
	})
	c := batch.Change{State: batch.Removed, Reason: "before it had begun", Exit: -1}
	_ = batch.Retry(ctx, j.system.name, func() error { // c is the outcome
		if j.quitting() {
			return nil
		}
		if c = j.attempt(i, host, place, started); c.State == batch.Failed && j.Last(i).State == batch.Queued {
			return errors.New(c.Reason)
		}
		return nil
	}, nil)
	c.Worker = i
	j.Note(c)
}

// attempt starts a worker once.
func (j *job) attempt(i int, host, place string, started func()) batch.Change {
	ctx, cut := context.WithCancel(context.Background())
	defer cut()
	cmd := j.reach(ctx, host, runLine(place, i, j.id(i)))
	var words bytes.Buffer
	cmd.Stderr = &words
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return batch.Change{State: batch.Failed, Reason: err.Error(), Exit: -1}
	}
	ended := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() { j.sendStop(in, ended, cut) })
	last := j.listen(i, out, started)
	err := cmd.Wait()
	close(ended)
	wait.Wait()
	return j.outcome(err, last+"\n"+words.String())
}

// outcome returns the final state of a worker whose connection ended with err after these last
// lines.
func (j *job) outcome(err error, words string) batch.Change {
	if err == nil {
		return batch.Change{State: batch.Ended}
	}
	if j.quitting() {
		return batch.Change{State: batch.Removed, Exit: -1}
	}
	c := batch.Change{State: batch.Failed, Reason: err.Error(), Exit: -1}
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.Exited() {
		c.Exit = failed.ExitCode()
	}
	if said := batch.Words(words, nil); said != "" {
		c.Reason += ": " + said
	}
	return c
}

// sendStop requests the end of a worker when the job is removed, and cuts its connection if that
// takes too long.
func (j *job) sendStop(in io.WriteCloser, ended <-chan struct{}, cut func()) {
	defer in.Close()
	select {
	case <-ended:
		return
	case <-j.stopping:
	}
	_, _ = io.WriteString(in, "end\n") // an error means that the worker has ended
	select {
	case <-ended:
	case <-time.After(20 * time.Second): // 10 s are the worker's own
		cut()
	}
}

// listen reads the output from a worker's machine and returns its last lines.
func (j *job) listen(i int, out io.Reader, started func()) string {
	var last []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if on, ok := strings.CutPrefix(lines.Text(), "runs on "); ok && j.Last(i).State == batch.Queued {
			j.Note(batch.Change{Worker: i, State: batch.Running, Host: batch.Words(on, nil)})
			started()
			continue
		}
		if last = append(last, lines.Text()); len(last) > 3 {
			last = last[1:]
		}
	}
	_, _ = io.Copy(io.Discard, out) // a line that was too long
	return strings.Join(last, "\n")
}
