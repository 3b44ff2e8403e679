package endpoint

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/serve"
	"weir/serve/servetest/requests"
	"weir/transfer"
)

// keeping starts a server that keeps parts; busy are items that another client writes.
func keeping(t *testing.T, c serve.Config, busy ...int64) (*serve.Server, string) {
	t.Helper()
	c.Dir = t.TempDir()
	c.Extensions = []serve.Extension{&Parts{Busy: func(item int64) bool { return len(busy) > 0 && busy[0] == item }}}
	require.NoError(t, os.Mkdir(filepath.Join(c.Dir, transfer.Hidden), 0o755))
	return start(t, c), c.Dir
}

func ranged(name, body, span string) exchange {
	return exchange{Method: "PUT", Path: "/.weir/" + name, Body: body, Header: map[string]string{"Content-Range": span}, Code: 204}
}

func takeOver(name, want string) exchange {
	return exchange{Method: "POST", Path: "/.weir/" + name + "?size=1048576", Code: 200, Want: want}
}

// The bytes of an interrupted push are available to a later epoch of the same item, and to no other
// client.
func TestPartsAreTakenOver(t *testing.T) {
	s, dir := keeping(t, serve.Config{Sync: true}, 9)
	nothing := `{"size_bytes":0,"chunk_bytes":0,"adler32":[]}` + "\n"
	check(t, s, exchange{Method: "OPTIONS", Path: "/", Code: 200, Answer: map[string]string{"Dav": "1, weir-parts"}})
	check(t, s, takeOver("7.2.part", nothing))
	first := ranged("7.2.part", "0123456789", "bytes 0-9/20")
	first.Code = 201
	check(t, s, first)
	check(t, s, ranged("7.2.part", "abc", "bytes 5-7/20"))
	requests.Write(t, "older", dir, ".weir/7.1.part")
	requests.Write(t, "of others", dir, ".weir/77.1.part")
	requests.Write(t, "is written here", dir, ".weir/9.1.part")
	for name, want := range map[string]string{"8.3.part": nothing, "9.3.part": nothing, "7.2.part": ""} {
		check(t, s, takeOver(name, want))
	}
	check(t, s, takeOver("7.3.part", `{"size_bytes":10,"chunk_bytes":1048576,"adler32":["0d0f0292"]}`+"\n"))
	check(t, s, ranged("7.3.part", "9876543210", "bytes 10-19/20"))
	if got := requests.Read(t, dir, ".weir/7.3.part"); got != "01234abc899876543210" {
		t.Errorf("the part is %q", got)
	}
	check(t, s, exchange{Method: "MOVE", Path: "/.weir/7.3.part", Header: map[string]string{"Destination": "/f", "Overwrite": "F"}, Code: 201})
	if got := requests.Names(t, filepath.Join(dir, ".weir")); !strings.Contains(got, "77.1.part") || !strings.Contains(got, "9.1.part") ||
		len(strings.Fields(got)) != 2 {
		t.Errorf("left: %s", got)
	}
}

// Names, ranges, rights and links that are not valid for parts are refused.
func TestPartsThatAreNone(t *testing.T) {
	s, dir := keeping(t, serve.Config{})
	requests.Write(t, "data", dir, "data")
	requests.Write(t, "0123456789", dir, ".weir/7.2.part")
	require.NoError(t, os.Symlink("../data", filepath.Join(dir, ".weir/5.1.part")))
	require.NoError(t, os.Link(filepath.Join(dir, "data"), filepath.Join(dir, ".weir/6.1.part")))
	for name, code := range map[string]int{"5.1.part": 403, "6.1.part": 403, "07.2.part": 400, "7.2.part.x": 400, "x": 400,
		"sub/7.2.part": 400, "0.1.part": 400} {
		x := ranged(name, "x", "bytes 0-0/4")
		x.Code = code
		check(t, s, x)
	}
	for span, code := range map[string]int{"bytes 11-11/20": 409, "bytes 0-1/20": 400, "bytes 1-0/20": 400, "bytes 0-0/*": 400,
		"bytes 0-0/0": 400, "bytes -1-0/9": 400, "octets 0-0/9": 400, "bytes +0-0/9": 400, "bytes 0-0/99999999999999999999": 400} {
		x := ranged("7.2.part", "x", span)
		x.Code = code
		check(t, s, x)
	}
	check(t, s, exchange{Method: "PUT", Path: "/data", Body: "x", Header: map[string]string{"Content-Range": "bytes 0-0/4"}, Code: 400})
	check(t, s, exchange{Method: "POST", Path: "/data", Code: 405})
	check(t, s, exchange{Method: "POST", Path: "/.weir/7.2.part?size=1", Code: 400})
	if got := requests.Read(t, dir, "data") + requests.Read(t, dir, ".weir/7.2.part"); got != "data0123456789" {
		t.Errorf("now %q", got)
	}
	if _, err := serve.New(serve.Config{Dir: dir, ReadOnly: true, Extensions: []serve.Extension{new(Parts)}}); err == nil {
		t.Error("parts of what is only read")
	}
	plain := start(t, serve.Config{Dir: dir})
	check(t, plain, exchange{Method: "OPTIONS", Path: "/", Code: 200, Answer: map[string]string{"Dav": "1"}})
	check(t, plain, exchange{Method: "POST", Path: "/.weir/7.3.part?size=1048576", Code: 405})
	x := ranged("7.2.part", "x", "bytes 0-0/4")
	x.Code = 400
	check(t, plain, x)
}

// The token of an attempt is valid for its part, and thereby for the parts of earlier attempts at
// the same item.
func TestPartsRights(t *testing.T) {
	i := newIssuer(t)
	s, dir := keeping(t, serve.Config{Authenticate: trusting(t, i)})
	raw := newToken(t, i, "storage.modify:/.weir/7.3.part storage.read:/.weir/7.3.part storage.create:/f")
	for _, name := range []string{"7.1.part", "7.4.part", "8.1.part"} {
		requests.Write(t, name, dir, ".weir", name)
	}
	for _, c := range []struct {
		method, name string
		code         int
	}{
		{"POST", "7.2.part", 403}, {"POST", "7.4.part", 403}, {"POST", "8.3.part", 403}, {"PUT", "7.4.part", 403}, {"DELETE", "7.4.part", 403},
		{"GET", "7.1.part", 403},
		{"PUT", "8.1.part", 403}, {"MOVE", "7.1.part", 403}, {"POST", "7.3.part", 200}, {"PUT", "7.3.part", 204}, {"DELETE", "7.3.part", 204},
	} {
		x := exchange{Method: c.method, Path: "/.weir/" + c.name + "?size=1048576", Code: c.code,
			Header: map[string]string{"Authorization": "Bearer " + raw, "Destination": "/f"}}
		if c.method == "PUT" {
			x.Body, x.Header["Content-Range"] = "x", "bytes 1-1/9"
		}
		check(t, s, x)
	}
	for span, code := range map[string]int{"bytes 0-0/10": 201, "bytes 0-0/11": 413} { // the token allows 10 bytes
		x := ranged("9.1.part", "x", span)
		x.Code, x.Header["Authorization"] = code, "Bearer "+sized(t, i, 10, "storage.modify:/.weir/9.1.part")
		check(t, s, x)
		_ = os.Remove(filepath.Join(dir, ".weir/9.1.part"))
	}
	if got := requests.Read(t, dir, ".weir/7.4.part") + requests.Read(t, dir, ".weir/8.1.part"); got != "7.4.part8.1.part" {
		t.Errorf("now %q", got)
	}
}

// A client that takes over a part ends the previous writer, which writes no further bytes.
func TestPartsHaveOneWriter(t *testing.T) {
	s, dir := keeping(t, serve.Config{})
	part := filepath.Join(dir, ".weir", "7.1.part")
	old := requests.Dial(t, s.URL(),
		"PUT /.weir/7.1.part HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nContent-Range: bytes 0-9/10\r\n\r\n01234")
	require.Eventually(t, "five bytes", func() bool { info, err := os.Stat(part); return err == nil && info.Size() == 5 })
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
	if got := requests.Read(t, dir, ".weir/7.2.part"); got != "01234" {
		t.Errorf("the part is %q", got)
	}
	broken := requests.Dial(t, s.URL(),
		"PUT /.weir/7.2.part HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Range: bytes 5-9/10\r\n\r\nab")
	require.Eventually(t, "two more", func() bool { return len(requests.Read(t, dir, ".weir/7.2.part")) == 7 })
	require.NoError(t, broken.Close())
	began := time.Now()
	check(t, s, ranged("7.2.part", "c89", "bytes 7-9/10"))
	if got := requests.Read(t, dir, ".weir/7.2.part"); got != "01234abc89" || time.Since(began) > 30*time.Second {
		t.Errorf("the part is %q, after %v", got, time.Since(began))
	}
}
