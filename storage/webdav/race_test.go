//go:build race

package webdav

// raceEnabled is true under the race detector, with which a sync.Pool drops objects on purpose.
const raceEnabled = true
