//go:build !linux

package monitor

import (
	"errors"
	"runtime"
)

// UseCores restricts this process to n processors, as far as Go is concerned.
func UseCores(n int) error {
	runtime.GOMAXPROCS(min(n, runtime.NumCPU()))
	return nil
}

// UseProcessors returns an error: it is possible on Linux only.
func UseProcessors([]int) error { return errors.New("processors can be chosen on Linux only") }
