//go:build race

package xrootd

// raceEnabled is true under the race detector, with which a sync.Pool drops objects on purpose.
const raceEnabled = true
