// Package batchtest is the one suite that every system of package batch passes, on the real thing.
package batchtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/loadtest/cluster/batch"
)

// Main is TestMain of packages that run the suite: the test program is also the worker that is
// submitted, and a submitter that can be killed.
func Main(m *testing.M, systems ...batch.System) {
	var code int
	switch {
	case len(os.Args) > 1 && os.Args[1] == "work":
		code = work(os.Args[2:])
	case len(os.Args) > 3 && os.Args[1] == "submit":
		code = submit(os.Args[2], os.Args[3], systems)
	default:
		code = m.Run()
	}
	os.Exit(code) //nolint:forbidigo // this is main
}

// A Trace is the record that a worker writes of itself, in a file of its own.
type Trace struct {
	Folder string
	Host   string
	Args   []string
	Number string // WEIR_WORKER
	Job    string // WEIR_JOB
	Mode   string // of the file secret.json
	Secret int    // its length
}

// work runs a worker with the arguments TRACES WORD...: it leaves a trace and carries out the
// words: exit (with its number), hang (until it gets a signal), deaf (ignores the signal), leave
// (result.txt).
func work(args []string) int {
	t := Trace{Args: args[1:], Number: os.Getenv("WEIR_WORKER"), Job: os.Getenv("WEIR_JOB")}
	t.Folder, _ = os.Getwd()
	t.Host, _ = os.Hostname()
	if info, err := os.Stat("secret.json"); err == nil {
		t.Mode, t.Secret = info.Mode().Perm().String(), int(info.Size())
	}
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGTERM)
	text, _ := json.Marshal(t)
	name := args[0] + "/" + t.Number
	if err := os.WriteFile(name+".new", text, 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	_ = os.Rename(name+".new", name)
	_, _ = fmt.Fprintln(os.Stdout, "worker", t.Number, "was here")
	n, _ := strconv.Atoi(t.Number)
	for _, word := range args[1:] {
		switch word {
		case "leave":
			_ = os.WriteFile("result.txt", []byte("of "+t.Number), 0o644)
		case "exit":
			fmt.Fprintln(os.Stderr, "worker", n, "ends as requested")
			return n
		case "hang", "deaf":
			select {
			case <-heard:
			case <-time.After(2 * time.Minute):
			}
			if word == "deaf" {
				time.Sleep(2 * time.Minute)
			}
			return 7
		}
	}
	return 0
}

// submit submits the Work in a file and follows it until it is killed.
func submit(system, file string, systems []batch.System) int {
	var w batch.Work
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &w)
	}
	for _, s := range systems {
		if err != nil || !strings.EqualFold(s.Name(), system) {
			continue
		}
		var j batch.Job
		if j, err = s.Submit(context.Background(), w); err == nil {
			err = j.Follow(context.Background(), func(batch.Change) {})
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
