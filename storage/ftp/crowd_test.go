package ftp

import (
	"testing"

	"weir/internal/tier"
	"weir/storage"
	"weir/storage/storagetest"
)

// TestCrowd checks the resources of 2000 idle clients. Their server is a process of its own
// (GridFTP servers have a process for each connection, too many for a test).
func TestCrowd(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has shadow memory")
	}
	tier.Slow(t, "thousands of clients")
	storagetest.Crowd(t, serviceAt(t, "ftp://"+startSink(t), storage.Credentials{}), "65536", 2000, 5<<10)
}
