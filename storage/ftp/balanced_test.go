package ftp

import (
	"slices"
	"testing"
	"time"

	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
)

// TestBalancedServers checks that ServedBy distinguishes the servers behind a balancer: each server
// sends the payload from its own data address.
func TestBalancedServers(t *testing.T) {
	for _, loopback := range []bool{true, false} {
		g := labtest.Start(t, lab.GridFTPConfig{Servers: 3, Loopback: loopback})
		place(t, g, "f", 1, 300_000)
		var addresses []string
		for _, s := range g.Servers {
			addresses = append(addresses, s.DataAddress)
		}
		s := serviceAt(t, g.URL, storage.Credentials{})
		seen := map[string]int{}
		for range 12 {
			c := s.Client()
			op := storage.Op{Kind: storage.Read, Path: "f", Size: 300_000, Timeout: time.Minute}
			for _, op.Ahead = range []int{0, 3, 0} {
				_, q := must(t, c, op)
				if len(q.servers) != 1 || !slices.Contains(addresses, q.servers[0]) || q.moved != op.Size {
					t.Fatalf("%d bytes from %v, want one of %v", q.moved, q.servers, addresses)
				}
				seen[q.servers[0]]++
			}
			defer c.Close()
		}
		if len(seen) != 3 {
			t.Errorf("bytes came from %v", seen)
		}
	}
}
