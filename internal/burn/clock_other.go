//go:build !linux

package burn

import "time"

// threadTime returns the wall clock, which equals the time of a thread that never waits for a core:
// there are no more threads than cores.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
