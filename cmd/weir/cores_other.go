//go:build !linux

package main

import "runtime"

// useCores makes this process run its own code on at most n processors at once.
func useCores(n int) error {
	runtime.GOMAXPROCS(min(n, runtime.NumCPU()))
	return nil
}
