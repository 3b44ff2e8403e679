//go:build !race

package xrootd

const raceEnabled = false
