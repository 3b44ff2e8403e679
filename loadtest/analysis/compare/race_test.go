//go:build race

package compare

// raceEnabled: under the race detector simulations are a tenth as long.
const raceEnabled = true
