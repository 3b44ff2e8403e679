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

// TestChecksumsOfSeveralKindsAtOnce requests checksums of several kinds at the same time: while a
// server computes a checksum of a file, it responds to requests for another kind with the checksum
// that it computes. Each client must get the kind that it requested.
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
				for j := range 2 * len(kinds) { // it delays all requests beyond eight for half a minute
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
