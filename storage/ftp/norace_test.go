//go:build !race

package ftp

const raceEnabled = false
