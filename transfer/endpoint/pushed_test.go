package endpoint

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"weir/serve"
	"weir/transfer"
)

// keeping is a server that keeps parts; busy are items that somebody else writes.
func keeping(t *testing.T, c serve.Config, busy ...int64) (*serve.Server, string) {
	t.Helper()
	c.Dir = t.TempDir()
	c.Extensions = []serve.Extension{&Parts{Busy: func(item int64) bool { return len(busy) > 0 && busy[0] == item }}}
	if err := os.Mkdir(filepath.Join(c.Dir, transfer.Hidden), 0o755); err != nil {
		t.Fatal(err)
	}
	return start(t, c), c.Dir
}

func ranged(name, body, span string) exchange {
	return exchange{method: "PUT", path: "/.weir/" + name, body: body, header: map[string]string{"Content-Range": span}, code: 204}
}

func takeOver(name, want string) exchange {
	return exchange{method: "POST", path: "/.weir/" + name + "?size=1048576", code: 200, want: want}
}

// What a broken push has brought is there for a later epoch of the same item, and
// for nobody else.
func TestPartsAreTakenOver(t *testing.T) {
	s, dir := keeping(t, serve.Config{Sync: true}, 9)
	nothing := `{"size_bytes":0,"chunk_bytes":0,"adler32":[]}` + "\n"
	check(t, s, exchange{method: "OPTIONS", path: "/", code: 200, answer: map[string]string{"Dav": "1, weir-parts"}})
	check(t, s, takeOver("7.2.part", nothing))
	first := ranged("7.2.part", "0123456789", "bytes 0-9/20")
	first.code = 201
	check(t, s, first)
	check(t, s, ranged("7.2.part", "abc", "bytes 5-7/20"))
	write(t, "older", dir, ".weir/7.1.part")
	write(t, "of others", dir, ".weir/77.1.part")
	write(t, "is written here", dir, ".weir/9.1.part")
	for name, want := range map[string]string{"8.3.part": nothing, "9.3.part": nothing, "7.2.part": ""} {
		check(t, s, takeOver(name, want))
	}
	check(t, s, takeOver("7.3.part", `{"size_bytes":10,"chunk_bytes":1048576,"adler32":["0d0f0292"]}`+"\n"))
	check(t, s, ranged("7.3.part", "9876543210", "bytes 10-19/20"))
	if got := read(t, dir, ".weir/7.3.part"); got != "01234abc899876543210" {
		t.Errorf("the part is %q", got)
	}
	check(t, s, exchange{method: "MOVE", path: "/.weir/7.3.part", header: map[string]string{"Destination": "/f", "Overwrite": "F"}, code: 201})
	if got := names(t, filepath.Join(dir, ".weir")); !strings.Contains(got, "77.1.part") || !strings.Contains(got, "9.1.part") ||
		len(strings.Fields(got)) != 2 {
		t.Errorf("left: %s", got)
	}
}

// Names, ranges, rights and links that are not for parts.
func TestPartsThatAreNone(t *testing.T) {
	s, dir := keeping(t, serve.Config{})
	write(t, "data", dir, "data")
	write(t, "0123456789", dir, ".weir/7.2.part")
	if err := os.Symlink("../data", filepath.Join(dir, ".weir/5.1.part")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "data"), filepath.Join(dir, ".weir/6.1.part")); err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]int{"5.1.part": 403, "6.1.part": 403, "07.2.part": 400, "7.2.part.x": 400, "x": 400,
		"sub/7.2.part": 400, "0.1.part": 400} {
		x := ranged(name, "x", "bytes 0-0/4")
		x.code = code
		check(t, s, x)
	}
	for span, code := range map[string]int{"bytes 11-11/20": 409, "bytes 0-1/20": 400, "bytes 1-0/20": 400, "bytes 0-0/*": 400,
		"bytes 0-0/0": 400, "bytes -1-0/9": 400, "octets 0-0/9": 400, "bytes +0-0/9": 400, "bytes 0-0/99999999999999999999": 400} {
		x := ranged("7.2.part", "x", span)
		x.code = code
		check(t, s, x)
	}
	check(t, s, exchange{method: "PUT", path: "/data", body: "x", header: map[string]string{"Content-Range": "bytes 0-0/4"}, code: 400})
	check(t, s, exchange{method: "POST", path: "/data", code: 405})
	check(t, s, exchange{method: "POST", path: "/.weir/7.2.part?size=1", code: 400})
	if got := read(t, dir, "data") + read(t, dir, ".weir/7.2.part"); got != "data0123456789" {
		t.Errorf("now %q", got)
	}
	if _, err := serve.New(serve.Config{Dir: dir, ReadOnly: true, Extensions: []serve.Extension{new(Parts)}}); err == nil {
		t.Error("parts of what is only read")
	}
	plain := start(t, serve.Config{Dir: dir})
	check(t, plain, exchange{method: "OPTIONS", path: "/", code: 200, answer: map[string]string{"Dav": "1"}})
	check(t, plain, exchange{method: "POST", path: "/.weir/7.3.part?size=1048576", code: 405})
	x := ranged("7.2.part", "x", "bytes 0-0/4")
	x.code = 400
	check(t, plain, x)
}

// The token of an attempt is good for its part, and through that for those of
// earlier attempts at the same item.
func TestPartsRights(t *testing.T) {
	i := newIssuer(t)
	s, dir := keeping(t, serve.Config{Authenticate: trusting(t, i)})
	raw := newToken(t, i, "storage.modify:/.weir/7.3.part storage.read:/.weir/7.3.part storage.create:/f")
	for _, name := range []string{"7.1.part", "7.4.part", "8.1.part"} {
		write(t, name, dir, ".weir", name)
	}
	for _, c := range []struct {
		method, name string
		code         int
	}{
		{"POST", "7.2.part", 403}, {"POST", "7.4.part", 403}, {"POST", "8.3.part", 403}, {"PUT", "7.4.part", 403}, {"DELETE", "7.4.part", 403},
		{"GET", "7.1.part", 403},
		{"PUT", "8.1.part", 403}, {"MOVE", "7.1.part", 403}, {"POST", "7.3.part", 200}, {"PUT", "7.3.part", 204}, {"DELETE", "7.3.part", 204},
	} {
		x := exchange{method: c.method, path: "/.weir/" + c.name + "?size=1048576", code: c.code,
			header: map[string]string{"Authorization": "Bearer " + raw, "Destination": "/f"}}
		if c.method == "PUT" {
			x.body, x.header["Content-Range"] = "x", "bytes 1-1/9"
		}
		check(t, s, x)
	}
	for span, code := range map[string]int{"bytes 0-0/10": 201, "bytes 0-0/11": 413} { // it is for 10 bytes
		x := ranged("9.1.part", "x", span)
		x.code, x.header["Authorization"] = code, "Bearer "+sized(t, i, 10, "storage.modify:/.weir/9.1.part")
		check(t, s, x)
		_ = os.Remove(filepath.Join(dir, ".weir/9.1.part"))
	}
	if got := read(t, dir, ".weir/7.4.part") + read(t, dir, ".weir/8.1.part"); got != "7.4.part8.1.part" {
		t.Errorf("now %q", got)
	}
}

// Who writes a part is ended by who takes it over, and writes nothing more.
func TestPartsHaveOneWriter(t *testing.T) {
	s, dir := keeping(t, serve.Config{})
	part := filepath.Join(dir, ".weir", "7.1.part")
	old := dial(t, s.URL(), "PUT /.weir/7.1.part HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nContent-Range: bytes 0-9/10\r\n\r\n01234")
	until(t, "five bytes", func() bool { info, err := os.Stat(part); return err == nil && info.Size() == 5 })
	check(t, s, takeOver("7.2.part", ""))
	if _, err := old.Write([]byte("56789")); err != nil {
		t.Log(err) // it may have been closed by now
	}
	resp, err := http.ReadResponse(bufio.NewReader(old), nil)
	if err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode/100 == 2 {
			t.Errorf("the one that was ended: %s", resp.Status)
		}
	}
	if got := read(t, dir, ".weir/7.2.part"); got != "01234" {
		t.Errorf("the part is %q", got)
	}
	broken := dial(t, s.URL(), "PUT /.weir/7.2.part HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Range: bytes 5-9/10\r\n\r\nab")
	until(t, "two more", func() bool { return len(read(t, dir, ".weir/7.2.part")) == 7 })
	if err := broken.Close(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	check(t, s, ranged("7.2.part", "c89", "bytes 7-9/10"))
	if got := read(t, dir, ".weir/7.2.part"); got != "01234abc89" || time.Since(began) > 30*time.Second {
		t.Errorf("the part is %q, after %v", got, time.Since(began))
	}
}
