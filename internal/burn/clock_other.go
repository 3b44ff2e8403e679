//go:build !linux

package burn

import "time"

// threadTime is the wall clock, which is what a thread gets that is not in
// another's way: there are no more of them than cores.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
