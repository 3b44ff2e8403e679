package kubernetes

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"weir/internal/tarfile"
)

// Variables that identify a pod's submission and worker; Kubernetes sets JOB_COMPLETION_INDEX.
const (
	submissionVariable = "WEIR_SUBMISSION"
	indexVariable      = "JOB_COMPLETION_INDEX"
)

const (
	// blockType marks the outputs of a worker in the log of its pod: a tar file in gzip in PEM.
	blockType = "WEIR OUTPUTS"
	// ending is the time limit for a worker that is to end. It is less than grace: the outputs are
	// written after the worker has ended.
	ending = 10 * time.Second
	// notRun is the exit status of a pod that could not start its worker.
	notRun = 125
)

// Pod is the main function of the container of a pod. It runs this program with args as a worker,
// in a folder of its own with the files of the Secret, and writes the outputs of the worker to out.
// The worker's standard error is also passed on at once. exit is the worker's exit status.
func Pod(args []string, out, stderr io.Writer) (exit int, err error) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(heard)
	dir, err := os.MkdirTemp("", "worker-")
	if err != nil {
		return notRun, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it ends with the pod all the same
	if err := copyFiles(filesDir, dir); err != nil {
		return notRun, err
	}
	if exit, err = work(dir, args, heard, stderr); err != nil {
		return notRun, err
	}
	return exit, writeOutputs(dir, out)
}

// copyFiles copies the files of a Secret, which may be readable by the whole pod, to a folder that
// only the worker can read.
func copyFiles(from, to string) error {
	names, err := os.ReadDir(from)
	for _, n := range names {
		if strings.HasPrefix(n.Name(), "..") {
			continue // with these the kubelet exchanges all files at once
		}
		text, failed := os.ReadFile(filepath.Join(from, n.Name()))
		if failed == nil {
			failed = os.WriteFile(filepath.Join(to, n.Name()), text, 0o600)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// work runs the worker.
func work(dir string, args []string, heard <-chan os.Signal, stderr io.Writer) (exit int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	var files [2]*os.File
	for i, name := range []string{"stdout", "stderr"} {
		if files[i], err = os.Create(filepath.Join(dir, name)); err != nil {
			return 0, err
		}
		defer files[i].Close()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, files[0], io.MultiWriter(files[1], stderr)
	index := os.Getenv(indexVariable)
	cmd.Env = append(os.Environ(), "WEIR_WORKER="+index, "WEIR_JOB="+os.Getenv(submissionVariable)+"-"+index)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = ending
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		select {
		case <-heard:
			cancel()
		case <-ctx.Done():
		}
	}()
	_ = cmd.Wait() // its status is read below
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// outputNames returns the names of the outputs of a worker.
func outputNames() []string { return []string{"stdout", "stderr"} }

// writeOutputs writes the outputs of the worker from dir.
func writeOutputs(dir string, out io.Writer) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	t := tar.NewWriter(z)
	for _, name := range outputNames() {
		err := tarfile.AddFile(t, filepath.Join(dir, name), tar.Header{Name: name, Mode: 0o644})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return err
	}
	if _, err := io.WriteString(out, "\n"); err != nil { // ends an unfinished line
		return err
	}
	return pem.Encode(out, &pem.Block{Type: blockType, Bytes: packed.Bytes()})
}

// mostOutput is the number of bytes that a file of a worker may have.
const mostOutput = 1 << 30

var errNotWhole = errors.New("its outputs are not whole in the log of its pod (the node keeps containerLogMaxSize, 10 MiB by default)")

// readOutputs writes the outputs in the log of a pod to dir, and no other files.
func readOutputs(log []byte, dir string) error {
	var block *pem.Block
	for block, log = pem.Decode(log); block != nil && block.Type != blockType; {
		block, log = pem.Decode(log)
	}
	if block == nil {
		return errNotWhole
	}
	z, err := gzip.NewReader(bytes.NewReader(block.Bytes))
	if err != nil {
		return err
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !slices.Contains(outputNames(), h.Name) || h.Typeflag != tar.TypeReg || h.Size > mostOutput:
			return fmt.Errorf("the log of its pod has a file %q that it was not asked for", h.Name)
		}
		text, err := io.ReadAll(t)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, h.Name), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
}
