//go:build !linux

package scratch

// On tells that nobody knows.
func On(string) Disk { return Disk{Free: -1} }
