//go:build !race

package webdav

const raceEnabled = false
