//go:build race

package webdav

// raceEnabled: under the race detector a sync.Pool loses things on purpose.
const raceEnabled = true
