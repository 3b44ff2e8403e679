package endpoint

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/token"
	"weir/internal/tpc"
	"weir/serve"
)

// sized makes a token for one file and its temporary name, of so many bytes.
func sized(t testing.TB, i *token.Issuer, size int64, scopes ...string) string {
	t.Helper()
	raw, err := i.Mint(token.Grant{Subject: "test", Audience: []string{"door"}, Scopes: scopes, Life: time.Hour, Size: &size})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// endless is a body of unknown length.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.n += int64(len(p))
	return len(p), nil
}

// put sends a body whose length is not told, and returns the status; 0 if the server
// closed the connection while it was sent.
func put(t testing.TB, s *serve.Server, path, raw string, body io.Reader) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL()+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+raw)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	return res.StatusCode
}

// Who holds a token that says how much it is for can store that in the files that it
// names, by whatever way, and nothing more or elsewhere. What was there stays.
func TestTokensWithASize(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"d", ".weir"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, strings.Repeat("x", 101), dir, "d/large")
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
		{method: "PUT", path: "/.weir/1.1.part", body: over, code: 413, want: "at most 100 bytes may be stored here with these credentials\n"},
		{method: "PUT", path: "/.weir/1.1.part/more", body: "x", code: 403},
		{method: "PUT", path: "/.weir/1.1.part2", body: "x", code: 403},
		{method: "PUT", path: "/d/f/more", body: "x", code: 403},
		{method: "PUT", path: "/d/g", body: "x", code: 403},
		{method: "MKCOL", path: "/d/f", code: 403},
		{method: "MKCOL", path: "/.weir/1.1.part/", code: 403},
		{method: "MKCOL", path: "/d", code: 405},
		{method: "COPY", path: "/d/large", header: bearer("Destination", s.URL()+"/.weir/1.1.part"), code: 413},
		{method: "PUT", path: "/.weir/1.1.part", body: full, code: 201},
		{method: "PUT", path: "/.weir/1.1.part", body: over, code: 413},
		{method: "GET", path: "/.weir/1.1.part", code: 200, want: full},
		{method: "PUT", path: "/.weir/1.1.part", body: full, code: 204},
		{method: "MOVE", path: "/.weir/1.1.part", header: bearer("Destination", s.URL()+"/d/f", "Overwrite", "F"), code: 201},
		{method: "GET", path: "/d/f", code: 200, want: full},
		{method: "DELETE", path: "/d/f", code: 403},
	} {
		if x.header == nil {
			x.header = bearer()
		}
		check(t, s, x)
	}
	body := new(endless)
	if code := put(t, s, "/.weir/1.1.part", raw, body); code != 413 && code != 0 {
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
		check(t, s, exchange{method: "DELETE", path: "/.weir/1.1.part", header: bearer(), code: map[tpc.Kind]int{"": 204, tpc.Failed: 404}[kind]})
	}
	quiet(t, filepath.Join(dir, "d"), "f", "large")
	quiet(t, filepath.Join(dir, ".weir"))
	none := sized(t, i, 0, "storage.create:/d/empty")
	check(t, s, exchange{method: "PUT", path: "/d/empty", body: "x", header: map[string]string{"Authorization": "Bearer " + none}, code: 413})
	check(t, s, exchange{method: "PUT", path: "/d/empty", header: map[string]string{"Authorization": "Bearer " + none}, code: 201})
}
