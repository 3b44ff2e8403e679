//go:build !linux

package engine

// NewPacer returns the most exact pacer of this system.
func NewPacer() (Pacer, error) { return Timers(), nil }
