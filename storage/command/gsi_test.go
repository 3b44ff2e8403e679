package command_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
)

// TestGridProxies writes, reads and sums a file with the real clients on a GridFTP server that
// requires a proxy; without a proxy they are refused.
func TestGridProxies(t *testing.T) {
	t.Setenv("RES_OPTIONS", "timeout:1 attempts:1") // see TestConformance
	g := labtest.Start(t, lab.GridFTPConfig{Auth: "gsi"})
	cred, err := storage.Auth{Method: "x509", ProxyFile: g.Proxy, CADir: g.CADir}.Read()
	require.NoError(t, err)
	const seed, size = 11, 300_000
	for _, preset := range []string{"gfal-copy", "globus-url-copy"} {
		t.Run(preset, func(t *testing.T) {
			of(t, preset)
			target := storage.Target{URL: parse(t, g.URL), Cred: cred, Command: []string{preset}}
			c := clientOf(t, target)
			must := func(op storage.Op) storage.Result {
				t.Helper()
				op.Timeout = time.Minute
				res, err := c.Do(t.Context(), &op, &heard{})
				require.NoError(t, err)
				return res
			}
			name := preset + ".dat"
			must(storage.Op{Kind: storage.Write, Path: name, Size: size, Seed: seed})
			want, err := content.Sum("adler32", seed, 0, size)
			require.NoError(t, err)
			if res := must(storage.Op{Kind: storage.Read, Path: name, Size: size, Sum: "adler32"}); res.Sum != want {
				t.Errorf("read %s, want %s", res.Sum, want)
			}
			if preset == "gfal-copy" {
				if res := must(storage.Op{Kind: storage.Checksum, Path: name, Sum: "adler32"}); res.Sum != want {
					t.Errorf("the server's checksum is %s, want %s", res.Sum, want)
				}
			}
			// as on workers: names in their folder, and authorities in one file
			folder, err := os.Getwd()
			require.NoError(t, err)
			bundled := target
			bundled.Cred.From.CADir, bundled.Cred.From.CAFile = "", g.CAFile
			bundled.Cred.From.ProxyFile, err = filepath.Rel(folder, g.Proxy)
			require.NoError(t, err)
			op := storage.Op{Kind: storage.Read, Path: name, Size: size, Timeout: time.Minute}
			if _, err := clientOf(t, bundled).Do(t.Context(), &op, &heard{}); err != nil {
				t.Errorf("with a file of authorities: %v", err)
			}
			expired, err := g.ProxyFor(-time.Hour)
			require.NoError(t, err)
			target.Cred.From.ProxyFile = expired
			if _, err := clientOf(t, target).Do(t.Context(), &op, &heard{}); storage.Classify(err) != storage.Denied {
				t.Errorf("a proxy that has expired: %v", err)
			}
		})
	}
}
