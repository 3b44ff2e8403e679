package main

import (
	"slices"
	"strings"
	"testing"

	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
)

// TestGridFTP runs all operations of ftp:// clients on servers behind a balancer, and reads over
// parallel streams. The bytes are counted for each server.
func TestGridFTP(t *testing.T) {
	t.Parallel()
	s := labtest.Start(t, lab.GridFTPConfig{Servers: 2})
	var data []string
	for _, server := range s.Servers {
		if server.DataAddress != "" { // the balancer has no data address
			data = append(data, server.DataAddress)
		}
	}
	for name, sets := range map[string][]string{
		"mix": {
			"workload={kind: mix, mix: {read: 5, write: 3, stat: 2, list: 1, mkdir: 1, remove: 2, move: 1, checksum: 1, ping: 1}, size: 64KiB, " +
				"verify: 100%, think: 5ms}",
			"files.make={count: 20, size: 64KiB}",
		},
		"streams": {
			"workload={kind: read, in_flight: 3, verify: 100%, think: 5ms}", "files.make={count: 10, size: 1MiB}",
		},
		"fresh": {"workload={kind: read, session: fresh, think: 20ms}", "files.make={count: 10, size: 64KiB}"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--target", s.URL, "--clients", "4", "--duration", "2s", "--set", "load.ramp=100ms", "--set", "load.warmup=500ms"}
			for _, set := range sets {
				args = append(args, "--set", set)
			}
			f := measureFor(t, args...)
			for _, c := range f.Curve {
				if c.Errors > 0 || c.Done < 4 { // one operation of each client
					t.Errorf("%d done, %d errors %v", c.Done, c.Errors, c.ErrorsBy)
				}
				if strings.Contains(sets[0], "verify") && (c.Verified == 0 || c.Unverified > c.Verified) {
					t.Errorf("%d verified, %d unverifiable", c.Verified, c.Unverified)
				}
			}
			// A run of one second on a busy machine may cause a warning. If one server's bytes were
			// missing, half of the bytes would be missing.
			if state, detail := status(f, "both ends agree"); state == analysis.Fail {
				t.Errorf("two servers' bytes are not summed: %s", detail)
			}
			for _, server := range data {
				if !slices.ContainsFunc(f.Servers, func(p analysis.Part) bool { return p.Name == server }) {
					t.Errorf("no bytes came from %s: %+v", server, f.Servers)
				}
			}
			empty(t, s.Data)
		})
	}
}
