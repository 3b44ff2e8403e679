package serve

import (
	"context"
	"encoding/json"
	"hash/adler32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/adler"
	"weir/internal/content"
	"weir/internal/require"
	"weir/serve/servetest/requests"
)

// chunksOf requests the checksums of a file's chunks.
func chunksOf(t *testing.T, url string) (code int, sums chunkSums) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(body, &sums); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	}
	return resp.StatusCode, sums
}

func TestChunks(t *testing.T) {
	dir := t.TempDir()
	const size, step = 5<<20 + 7, 1 << 20
	data := make([]byte, size)
	content.Fill(data, 3, 0)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "run 1"), 0o755))
	requests.Write(t, string(data), dir, "run 1", "f")
	requests.Write(t, "", dir, "empty")
	url := start(t, Config{Dir: dir}).URL()
	for range 2 { // the second time it is remembered
		code, got := chunksOf(t, url+"/.weir/chunks/run%201/f?size=1048576")
		if code != http.StatusOK || got.Size != size || got.Chunk != step || len(got.Adler) != 6 {
			t.Fatalf("%d %+v", code, got)
		}
		sum := uint32(1)
		for i, text := range got.Adler {
			one, err := adler.Parse(text)
			require.NoError(t, err)
			sum = adler.Combine(sum, one, int64(min(step, size-i*step)))
		}
		if sum != adler32.Checksum(data) {
			t.Errorf("together they are %08x", sum)
		}
	}
	data[step+1]++
	requests.Write(t, string(data), dir, "run 1", "f")
	if _, again := chunksOf(t, url+"/.weir/chunks/run%201/f?size=1048576"); again.Adler[1] != adler.Text(adler32.Checksum(data[step:2*step])) {
		t.Error("a change was not noticed")
	}
	if _, other := chunksOf(t, url+"/.weir/chunks/run%201/f?size=2097152"); len(other.Adler) != 3 {
		t.Errorf("larger chunks: %+v", other)
	}
	if code, got := chunksOf(t, url+"/.weir/chunks/empty?size=1048576"); code != http.StatusOK || len(got.Adler) != 0 {
		t.Errorf("an empty file: %d %+v", code, got)
	}
	for path, want := range map[string]int{
		"/.weir/chunks/none?size=1048576": 404, "/.weir/chunks/run%201?size=1048576": 404, "/.weir/chunks/empty/?size=1048576": 404,
		"/.weir/chunks/run%201/f": 400, "/.weir/chunks/run%201/f?size=7": 400, "/.weir/chunks/run%201/f?size=x": 400,
		"/.weir/chunks/../run%201/f?size=1048576": 400,
	} {
		if code, _ := chunksOf(t, url+path); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
}

// Synthetic files have chunks as well; far too many are refused.
func TestChunksOfSyntheticFiles(t *testing.T) {
	url := start(t, Config{Synthetic: []Set{{Count: 1, Size: 3 << 20}}}).URL()
	code, got := chunksOf(t, url+"/.weir/chunks/file000000.dat?size=1048576")
	want, err := content.Sum("adler32", SeedOf(0, "file000000.dat"), 1<<20, 1<<20)
	if code != http.StatusOK || err != nil || len(got.Adler) != 3 || "adler32:"+got.Adler[1] != want {
		t.Errorf("%d %+v %v, want %s", code, got, err, want)
	}
	huge := start(t, Config{Synthetic: []Set{{Count: 1, Size: 1 << 50}}}).URL()
	if code, _ := chunksOf(t, huge+"/.weir/chunks/file000000.dat?size=1048576"); code != http.StatusBadRequest {
		t.Errorf("2^30 chunks: %d", code)
	}
}

// A file that becomes shorter while it is read does not block the server forever.
func TestChunksOfAFileThatShrinks(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	defer f.Close()
	shrunk := &file{entry: entry{size: 3 << 20}, content: &fileContent{f: f, size: 3 << 20}}
	if _, err := newSums().readChunks(context.Background(), shrunk, 1<<20); err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Error(err)
	}
}
