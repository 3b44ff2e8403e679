//go:build !linux

package engine

import "time"

// NewPacer returns the most exact pacer of this system.
func NewPacer() (Pacer, error) { return Timers(), nil }

// threadTime is the wall clock, which is what a thread gets that is not in
// another's way: there are no more of them than cores.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
