// Command weir measures how much load a storage service carries, where it
// stops growing and why. `weir help` tells how to call it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"weir/internal/redact"
	"weir/internal/screen"
)

func main() {
	signals := func() <-chan os.Signal {
		c := make(chan os.Signal, 4)
		signal.Notify(c, os.Interrupt, syscall.SIGTERM)
		return c
	}
	os.Exit(int(execute(context.Background(), os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, signals)))
}

// A signalSource begins to catch the signals that end a program. A command that
// never asks for them is ended by them. The nil source has none.
type signalSource func() <-chan os.Signal

func (s signalSource) listen() <-chan os.Signal {
	if s == nil {
		return nil
	}
	return s()
}

// streams are what a command reads and writes. run makes err a *screen.Screen,
// so that what is written there, or to the same terminal, does not disturb what
// moves.
type streams struct {
	in       io.Reader
	out, err io.Writer
	quiet    bool           // no progress is shown
	verbose  bool           // results are printed in full
	stream   *stream        // what programs are told; nil: nothing
	secrets  *redact.Values // that no error may repeat; nil: none are known
}

// execute is the whole command: arguments in, exit code out.
func execute(ctx context.Context, args []string, s streams, signals signalSource) exitCode {
	to := screen.New(s.err)
	s.err, s.out, s.secrets = to, to.Beside(s.out), new(redact.Values)
	s.secrets.Learn(args...)
	root := newRoot(s, signals)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitFine
	}
	text, code := outcome(err)
	if text != "" {
		_, _ = fmt.Fprintf(s.err, "weir: %s\n", plain(s.secrets.Text(text))) // where else could it be told?
	}
	return code
}
