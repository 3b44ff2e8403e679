package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

var errStopped = errors.New("stopped by a second interrupt")

// interruptible turns signals into the two ways to end a run: the first closes
// finish, so that the last operations may end and all is reported; the second
// ends ctx. release gives the signals back.
func interruptible(ctx context.Context, signals <-chan os.Signal, say io.Writer) (_ context.Context, finish <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	soft, done, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-signals:
			case <-done:
				return
			}
			if n == 0 {
				_, _ = fmt.Fprintln(say, "\nweir: finishing: the last operations may end; interrupt again to stop at once")
				close(soft)
				continue
			}
			cancel(errStopped)
		}
	}()
	return ctx, soft, func() {
		close(done)
		<-ended
		cancel(nil)
	}
}
