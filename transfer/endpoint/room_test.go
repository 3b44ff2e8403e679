package endpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/token"
	"weir/internal/tpc"
	"weir/serve"
	"weir/serve/servetest/requests"
)

// sized creates a token for one file and its temporary name, with a limit of bytes.
func sized(t testing.TB, i *token.Issuer, size int64, scopes ...string) string {
	t.Helper()
	raw, err := i.Mint(token.Grant{Subject: "test", Audience: []string{"door"}, Scopes: scopes, Life: time.Hour, Size: &size})
	require.NoError(t, err)
	return raw
}

// endless is a body of unknown length.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.n += int64(len(p))
	return len(p), nil
}

// With a token that has a size, a client can store that many bytes in the files of the token, by
// any method, but no more bytes and nowhere else. Existing files stay.
func TestTokensWithASize(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"d", ".weir"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	requests.Write(t, strings.Repeat("x", 101), dir, "d/large")
	i := newIssuer(t)
	s := start(t, serve.Config{Dir: dir, Authenticate: trusting(t, i), Extensions: copying(local())})
	other := start(t, serve.Config{Synthetic: []serve.Set{{Count: 1, Size: 100}, {Count: 1, Size: 101}}})
	raw := sized(t, i, 100, "storage.read:/d/f", "storage.create:/d/f", "storage.modify:/.weir/1.1.part", "storage.read:/.weir/1.1.part",
		"storage.read:/d/large")
	bearer := func(more ...string) map[string]string {
		h := map[string]string{"Authorization": "Bearer " + raw}
		for i := 0; i+1 < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	full, over := strings.Repeat("y", 100), strings.Repeat("y", 101)
	for _, x := range []exchange{
		{Method: "PUT", Path: "/.weir/1.1.part", Body: over, Code: 413, Want: "at most 100 bytes may be stored here with these credentials\n"},
		{Method: "PUT", Path: "/.weir/1.1.part/more", Body: "x", Code: 403},
		{Method: "PUT", Path: "/.weir/1.1.part2", Body: "x", Code: 403},
		{Method: "PUT", Path: "/d/f/more", Body: "x", Code: 403},
		{Method: "PUT", Path: "/d/g", Body: "x", Code: 403},
		{Method: "MKCOL", Path: "/d/f", Code: 403},
		{Method: "MKCOL", Path: "/.weir/1.1.part/", Code: 403},
		{Method: "MKCOL", Path: "/d", Code: 405},
		{Method: "COPY", Path: "/d/large", Header: bearer("Destination", s.URL()+"/.weir/1.1.part"), Code: 413},
		{Method: "PUT", Path: "/.weir/1.1.part", Body: full, Code: 201},
		{Method: "PUT", Path: "/.weir/1.1.part", Body: over, Code: 413},
		{Method: "GET", Path: "/.weir/1.1.part", Code: 200, Want: full},
		{Method: "PUT", Path: "/.weir/1.1.part", Body: full, Code: 204},
		{Method: "MOVE", Path: "/.weir/1.1.part", Header: bearer("Destination", s.URL()+"/d/f", "Overwrite", "F"), Code: 201},
		{Method: "GET", Path: "/d/f", Code: 200, Want: full},
		{Method: "DELETE", Path: "/d/f", Code: 403},
	} {
		if x.Header == nil {
			x.Header = bearer()
		}
		check(t, s, x)
	}
	body := new(endless)
	if code := requests.Put(t, s.URL()+"/.weir/1.1.part", raw, body); code != 413 && code != 0 {
		t.Errorf("a body without an end: %d", code)
	}
	if body.n > 64<<20 {
		t.Errorf("%d bytes were taken of it", body.n)
	}
	for name, kind := range map[string]tpc.Kind{"000000": "", "000001": tpc.Failed} {
		o := tpc.Order{Active: at(s, "/.weir/1.1.part", raw), Passive: at(other, "/file"+name+".dat", "")}
		if err := driver(t).Drive(t.Context(), o, nil); tpc.KindOf(err) != kind || kind != "" &&
			!strings.Contains(err.Error(), "at most 100 bytes") {
			t.Errorf("a copy of %s: %v", name, err)
		}
		check(t, s, exchange{Method: "DELETE", Path: "/.weir/1.1.part", Header: bearer(), Code: map[tpc.Kind]int{"": 204, tpc.Failed: 404}[kind]})
	}
	quiet(t, filepath.Join(dir, "d"), "f", "large")
	quiet(t, filepath.Join(dir, ".weir"))
	none := sized(t, i, 0, "storage.create:/d/empty")
	check(t, s, exchange{Method: "PUT", Path: "/d/empty", Body: "x", Header: map[string]string{"Authorization": "Bearer " + none}, Code: 413})
	check(t, s, exchange{Method: "PUT", Path: "/d/empty", Header: map[string]string{"Authorization": "Bearer " + none}, Code: 201})
}
