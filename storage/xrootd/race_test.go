//go:build race

package xrootd

// raceEnabled: under the race detector a sync.Pool loses things on purpose.
const raceEnabled = true
