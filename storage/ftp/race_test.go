//go:build race

package ftp

// raceEnabled tells whether the race detector is on.
const raceEnabled = true
