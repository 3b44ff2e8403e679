//go:build race

package ftp

// raceEnabled reports whether the race detector is on.
const raceEnabled = true
