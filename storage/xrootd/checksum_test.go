package xrootd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// TestChecksumsOfSeveralKindsAtOnce: a server that computes a checksum of a file answers those who ask for another kind meanwhile
// with the one that it computes. They get their own.
func TestChecksumsOfSeveralKindsAtOnce(t *testing.T) {
	kinds := []string{"adler32", "crc32c", "md5"}
	for name, version := range versions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			xr := labtest.Start(t, lab.XRootDConfig{Version: version})
			target := storagetest.TargetOf(t, xr.URL, credentials(t, storage.Auth{}))
			for i := range 4 {
				path := fmt.Sprintf("f%d", i)
				require.NoError(t, os.WriteFile(filepath.Join(xr.Data, path), make([]byte, 8<<20), 0o644))
				var all sync.WaitGroup
				for j := range 2 * len(kinds) { // it has those wait for half a minute that are more than eight
					kind, client := kinds[j%len(kinds)], storagetest.Client(t, Driver(), target)
					all.Go(func() {
						op := storage.Op{Kind: storage.Checksum, Path: path, Sum: kind, Timeout: time.Minute}
						if r, err := client.Do(t.Context(), &op, &events{}); err != nil || !strings.HasPrefix(r.Sum, kind+":") {
							t.Errorf("%s: %q, %v", kind, r.Sum, err)
						}
					})
				}
				all.Wait()
			}
		})
	}
}
