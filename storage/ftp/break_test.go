package ftp

import (
	"testing"
	"time"

	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
)

// TestPartsAtPureFTPd reads parts from a Pure-FTPd, which ends a transfer that was broken off with
// the code of a transfer that begins.
func TestPartsAtPureFTPd(t *testing.T) {
	tier.Full(t, "Pure-FTPd")
	s := labtest.Start(t, lab.FTPConfig{Server: "pure-ftpd"})
	place(t, s, "f", 1, 50_000_000) // more than the sockets' buffers hold
	c := serviceAt(t, s.URL, secret(s)).Client()
	defer c.Close()
	for i := range 3 {
		op := storage.Op{Kind: storage.Read, Path: "f", Ranges: []storage.Range{{Offset: int64(i), Length: 1}}, Timeout: 20 * time.Second}
		if _, q := must(t, c, op); q.moved != 1 {
			t.Fatalf("%d bytes", q.moved)
		}
	}
}
