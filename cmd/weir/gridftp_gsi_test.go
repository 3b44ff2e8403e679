package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/storage"
)

// TestProxiesBehindABalancer: weir's clients and gfal-copy log in with a proxy at three GridFTP servers behind HAProxy,
// all of which serve files.
func TestProxiesBehindABalancer(t *testing.T) {
	s := lab.StartGridFTP(t, lab.GridFTPConfig{Auth: "gsi", Servers: 3, Loopback: true})
	auth, err := json.Marshal(s.Settings)
	require.NoError(t, err)
	for i := range 12 {
		require.NoError(t, os.WriteFile(filepath.Join(s.Data, fmt.Sprintf("f%d", i)), make([]byte, 1<<20), 0o644))
	}
	for name, more := range map[string][]string{
		"weir's clients":     {"--clients", "4,12"},
		"authenticated data": {"--clients", "4", "--set", "auth.data_channel=authenticated"},
		"gfal-copy":          {"--clients", "3", "--set", "client=gfal-copy", "--duration", "8s"},
		"logins":             {"--clients", "8", "--set", "workload.kind=login"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "gfal-copy" {
				lab.Need(t, name)
			}
			args := append(behindBalancer(s), "--duration", "4s", "--set", "auth="+string(auth), "--set", "workload.session=fresh")
			f := measureFor(t, append(args, more...)...)
			for i := range f.Curve {
				step := &f.Curve[i]
				// gfal-copy of Debian 12 sometimes aborts at its end: "munmap_chunk(): invalid pointer".
				aborts := name == "gfal-copy" && step.Errors == step.ErrorsBy[storage.Other] && 10*step.Errors <= step.Done
				if step.Errors > 0 && !aborts || step.Done == 0 {
					t.Errorf("%d clients: %d operations, errors %v", step.Clients, step.Done, step.ErrorsBy)
				}
				if len(step.Backends) != 3 {
					t.Fatalf("%d clients: %d backends", step.Clients, len(step.Backends))
				}
				for k := range step.Backends {
					if x := &step.Backends[k]; x.SessionRate == nil || *x.SessionRate <= 0 {
						t.Errorf("%d clients: no session of %s", step.Clients, x.Name)
					}
				}
			}
		})
	}
}
