package webdav

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/burn"
	"weir/internal/require"
	"weir/lab/labtest"
	"weir/storage"
)

// memory returns a folder in memory, if the machine has /dev/shm.
func memory(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "weir-bench-")
	if err != nil {
		return b.TempDir()
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	})
	return dir
}

// bareCopy is the minimal copy: one request, and io.Copy to a file with a large buffer, as its own
// buffer of 32 KiB costs more.
func bareCopy(address, path, dest string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	f, err := os.Create(dest)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.0\r\n\r\n", path); err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{c}, make([]byte, 256<<10))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// BenchmarkCopy copies a file to memory of this machine.
func BenchmarkCopy(b *testing.B) {
	labtest.Need(b, "nginx", "curl")
	ng := benchNginx(b)
	s := serviceAt(b, ng.URL, storage.Credentials{})
	dest := filepath.Join(memory(b), "copy")
	b.Run("curl", func(b *testing.B) {
		var all strings.Builder
		for range b.N {
			fmt.Fprintf(&all, "url=%s/bulk\noutput=%s\n", ng.URL, dest)
		}
		list := filepath.Join(b.TempDir(), "urls")
		require.NoError(b, os.WriteFile(list, []byte(all.String()), 0o600))
		curl(b, "-K", list)
	})
	b.Run("bare", func(b *testing.B) {
		address, path, _ := strings.Cut(strings.TrimPrefix(ng.URL, "http://"), "/")
		before := burn.Process()
		for range b.N {
			require.NoError(b, bareCopy(address, "/"+path+"/bulk", dest))
		}
		reportBulk(b, burn.Process()-before)
	})
	for _, sum := range []string{"", "crc32c", "adler32"} {
		b.Run(strings.TrimSpace("weir "+sum), func(b *testing.B) {
			drive(b, s, 1, &storage.Op{Kind: storage.Read, Path: "bulk", Size: bulkSize, Dest: dest, Sum: sum, Timeout: time.Minute})
		})
	}
}
