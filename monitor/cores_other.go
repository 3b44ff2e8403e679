//go:build !linux

package monitor

import "runtime"

// UseCores restricts this process to n processors, as far as Go is concerned.
func UseCores(n int) error {
	runtime.GOMAXPROCS(min(n, runtime.NumCPU()))
	return nil
}
