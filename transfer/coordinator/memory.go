package coordinator

import (
	"os"
	"runtime/debug"
)

const (
	heapGrowth = 300       // percent of the live heap
	heapLimit  = 256 << 20 // bytes, above which memory is collected as often as necessary
)

// TuneMemory makes Go collect garbage less often, unless GOGC or GOMEMLIMIT is set.
// A coordinator keeps a few megabytes, and each request makes garbage: with Go's
// defaults memory is collected many times a second, which takes a sixth of the CPU
// time while a million files are leased. It is for the process, not for one
// coordinator.
func TuneMemory() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(heapGrowth)
		debug.SetMemoryLimit(heapLimit)
	}
}
