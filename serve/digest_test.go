package serve

import (
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/serve/servetest/requests"
)

// TestDigests uses checksums of "123456789" that the definitions of the
// algorithms, zlib and sha256sum give.
func TestDigests(t *testing.T) {
	dir := t.TempDir()
	requests.Write(t, "123456789", dir, "f")
	s := start(t, Config{Dir: dir})
	b64 := func(digits string) string {
		raw, err := hex.DecodeString(digits)
		require.NoError(t, err)
		return base64.StdEncoding.EncodeToString(raw)
	}
	const adler, crc, md5 = "091e01de", "e3069283", "25f9e794323b453885f5181f1b624d0b"
	sha256 := strings.Fields(requests.MustRun(t, "sha256sum", filepath.Join(dir, "f")))[0]
	for _, c := range []struct{ ask, value, header, want string }{
		{"Want-Digest", "adler32", "Digest", "adler32=" + adler},
		{"Want-Digest", "ADLER32", "Digest", "adler32=" + adler},
		{"Want-Digest", "crc32c", "Digest", "crc32c=" + b64(crc)},
		{"Want-Digest", "md5", "Digest", "md5=" + b64(md5)},
		{"Want-Digest", "SHA-256", "Digest", "sha-256=" + b64(sha256)},
		{"Want-Digest", "adler32;q=0.5, md5;q=0.9", "Digest", "md5=" + b64(md5)},
		{"Want-Digest", "unheard;q=1,adler32;q=0.1", "Digest", "adler32=" + adler},
		{"Want-Digest", "adler32;q=0", "Digest", ""},
		{"Want-Digest", "unheard", "Digest", ""},
		{"Want-Digest", ";;,,=", "Digest", ""},
		{"Want-Repr-Digest", "sha-256=10, md5=3", "Repr-Digest", "sha-256=:" + b64(sha256) + ":"},
		{"Want-Repr-Digest", "sha-256=1, md5=3", "Repr-Digest", "md5=:" + b64(md5) + ":"},
		{"Want-Repr-Digest", "adler=1", "Repr-Digest", "adler=:" + b64(adler) + ":"},
		{"Want-Repr-Digest", "crc32c=1", "Repr-Digest", "crc32c=:" + b64(crc) + ":"},
		{"Want-Repr-Digest", "md5=11", "Repr-Digest", ""},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			check(t, s, exchange{Method: method, Path: "/f", Header: map[string]string{c.ask: c.value}, Code: 200,
				Answer: map[string]string{c.header: c.want}})
		}
	}
	x := exchange{Method: "GET", Path: "/f", Header: map[string]string{"Want-Digest": "adler32", "Range": "bytes=0-2"}, Code: 206, Want: "123"}
	x.Answer = map[string]string{"Digest": "adler32=" + adler} // of the whole file, also beside a part
	check(t, s, x)
}

// A countingContent counts how often it is read from its start.
type countingContent struct {
	readable
	starts *int
}

func (c countingContent) Read(p []byte) (int, error) {
	if pos, err := c.Seek(0, io.SeekCurrent); err == nil && pos == 0 {
		*c.starts++
	}
	return c.readable.Read(p)
}

func TestSumsAreComputedOnce(t *testing.T) {
	s, starts := newSums(), 0
	old := time.Now().Add(-time.Hour)
	ask := func(name, alg, text string, modified time.Time) string {
		f := &file{entry: entry{size: int64(len(text)), modified: modified}, content: countingContent{strings.NewReader(text), &starts}}
		sum, err := s.get(t.Context(), sumKey{name, alg}, 0, f)
		if err != nil {
			t.Error(err)
		}
		rest, err := io.ReadAll(f.content)
		if err != nil || string(rest) != text {
			t.Errorf("the content is not left at its start: %q, %v", rest, err)
		}
		starts-- // by this ReadAll
		return sum
	}
	for i, c := range []struct {
		name, alg, text string
		modified        time.Time
		want            string
		starts          int
	}{
		{"f", "adler32", "abc", old, "adler32:024d0127", 1},
		{"f", "adler32", "abc", old, "adler32:024d0127", 1},
		{"f", "crc32c", "abc", old, "crc32c:364b3fb7", 2},
		{"f", "adler32", "abcd", old, "adler32:03d8018b", 3},                      // other size
		{"f", "adler32", "abcd", old.Add(time.Second), "adler32:03d8018b", 4},     // other time
		{"g", "adler32", "abc", time.Now().Add(time.Hour), "adler32:024d0127", 5}, // too young
		{"g", "adler32", "abc", time.Now().Add(2 * time.Hour), "adler32:024d0127", 6},
	} {
		if got := ask(c.name, c.alg, c.text, c.modified); got != c.want || starts != c.starts {
			t.Errorf("%d: %s after %d computations, want %s after %d", i, got, starts, c.want, c.starts)
		}
	}
	s.forget("f", false)
	if ask("f", "adler32", "abcd", old.Add(time.Second)); starts != 7 {
		t.Errorf("a forgotten checksum is still known")
	}
}

func TestManyAskForOneSum(t *testing.T) {
	s := start(t, Config{Synthetic: []Set{{1, 64 << 20}}, Seed: 3})
	want, err := content.Sum("adler32", content.Seed(3, "/file000000.dat"), 0, 64<<20)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			check(t, s, exchange{Method: "HEAD", Path: "/file000000.dat", Header: map[string]string{"Want-Digest": "adler32"}, Code: 200,
				Answer: map[string]string{"Digest": strings.Replace(want, ":", "=", 1)}})
		})
	}
	wg.Wait()
}

func TestSumFollowsTheFile(t *testing.T) {
	dir := t.TempDir()
	p := requests.Write(t, "abc", dir, "f")
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(p, old, old))
	s := start(t, Config{Dir: dir})
	ask := func(want string) {
		t.Helper()
		check(t, s, exchange{Method: "HEAD", Path: "/f", Header: map[string]string{"Want-Digest": "adler32"}, Code: 200,
			Answer: map[string]string{"Digest": want}})
	}
	ask("adler32=024d0127")
	requests.Write(t, "abd", dir, "f")
	ask("adler32=024e0128")
	check(t, s, exchange{Method: "PUT", Path: "/f", Body: "abc", Code: 204})
	ask("adler32=024d0127")
}

func FuzzWanted(f *testing.F) {
	for _, v := range []string{"adler32", "md5;q=0.3, sha-256;q=1", "sha-256=10, md5=3", ";q=,=;", "a;q=NaN", "crc32c;q=1e999"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		h := http.Header{"Want-Digest": {value}, "Want-Repr-Digest": {value}, "Digest": {value}, "Repr-Digest": {value},
			"Content-Digest": {value}}
		instance, repr := requestedSums(h)
		for _, n := range []digestName{instance, repr} {
			if n.name == "" {
				continue
			}
			if _, err := content.NewHash(n.Name); err != nil || !strings.Contains(strings.ToLower(value), n.name) {
				t.Errorf("%q gives %+v (%v)", value, n, err)
			}
		}
		for alg, sum := range Stated(h) {
			if _, err := content.NewHash(alg); err != nil || !strings.HasPrefix(sum, alg+":") {
				t.Errorf("%q states %s %q", value, alg, sum)
			}
		}
	})
}

// readable has the methods of the content of a file.
type readable interface {
	io.ReadSeeker
	io.ReaderAt
}
