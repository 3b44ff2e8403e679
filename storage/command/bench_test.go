package command_test

import (
	"net/url"
	"os/exec"
	"testing"

	"weir/internal/require"
	"weir/storage"
	"weir/storage/command"
)

// BenchmarkSpawn measures the cost of an operation in addition to its program, in comparison with
// os/exec.
func BenchmarkSpawn(b *testing.B) {
	for name, kind := range map[string]storage.Kind{"driver": storage.Read, "job": storage.Run} {
		b.Run(name, func(b *testing.B) { spawn(b, kind) })
	}
	b.Run("os-exec", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := exec.CommandContext(b.Context(), "true").CombinedOutput(); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

func spawn(b *testing.B, kind storage.Kind) {
	s, err := command.Driver().Open(b.Context(), storage.Target{URL: &url.URL{Scheme: "ftp", Host: "h"}, Command: []string{"true"}})
	require.NoError(b, err)
	defer s.Close()
	b.RunParallel(func(pb *testing.PB) {
		c := s.Client()
		for pb.Next() {
			if _, err := c.Do(b.Context(), &storage.Op{Kind: kind, Path: "f", Size: -1}, &heard{}); err != nil {
				b.Error(err)
			}
		}
	})
}
