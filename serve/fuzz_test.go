package serve

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
)

func FuzzNames(f *testing.F) {
	for _, p := range []string{"/", "/a/b", "//a/", "/../x", "/a/./b", "/\x00", `/a\b`, "a", "/.weir-serve-x", "http://x/a",
		"//x/../y", "/%2e%2e"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		name, _, err := cleanName(p)
		fine := name == "." || filepath.IsLocal(name) && !strings.Contains("/"+name, "/"+hidden) && filepath.Clean(name) == name
		if err == nil && !fine {
			t.Errorf("%q becomes %q", p, name)
		}
		to, err := destination(p, "x")
		if err == nil && to != "." && !filepath.IsLocal(to) {
			t.Errorf("Destination %q becomes %q", p, to)
		}
	})
}

// FuzzRange requests a file with any Range and conditions and checks that the response has as many
// bytes as its header states.
func FuzzRange(f *testing.F) {
	f.Add("bytes=0-1", "")
	f.Add("bytes=-5,1-", `"x"`)
	f.Add("bytes=9999999999999999999-", "*")
	s := start(f, Config{Synthetic: []Set{{1, 100_000}}})
	client := &http.Client{Transport: &http.Transport{}}
	f.Fuzz(func(t *testing.T, ranges, match string) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/file000000.dat", nil)
		require.NoError(t, err)
		req.Header.Set("Range", ranges)
		req.Header.Set("If-Range", match)
		resp, err := client.Do(req)
		if err != nil {
			t.Skip("no header: " + fmt.Sprint(err)) // refused by the client
		}
		defer resp.Body.Close()
		n, err := io.Copy(io.Discard, resp.Body)
		if err != nil || resp.ContentLength >= 0 && n != resp.ContentLength || n > 200_000 && resp.StatusCode == 206 || resp.StatusCode >= 500 {
			t.Errorf("Range %q: %d with %d bytes, %v", ranges, resp.StatusCode, n, err)
		}
	})
}
