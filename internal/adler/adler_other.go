//go:build !amd64

package adler

func update(sum uint32, p []byte) uint32 { return portable(sum, p) }
