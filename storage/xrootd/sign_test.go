package xrootd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// signedBy returns the operations of TestEachLevelSignsWhatTheServerWants, and the number of signed
// requests of each operation for levels compatible to pedantic, as in XrdSecProtect.cc.
func signedBy() []struct {
	op   storage.Op
	want [levels]int
} {
	return []struct {
		op   storage.Op
		want [levels]int
	}{
		{storage.Op{Kind: storage.Mkdir, Path: "d"}, [levels]int{0, 1, 1, 1}},
		// open, two pgwrite, close; sync
		{storage.Op{Kind: storage.Write, Path: "d/f", Size: 100_000, Chunk: 50_000, Sync: true}, [levels]int{1, 1, 4, 5}},
		// with kXR_write
		{storage.Op{Kind: storage.Write, Path: "d/g", Size: 100_000, Chunk: 50_000, Plain: true}, [levels]int{1, 1, 4, 4}},
		// open, two pgread, close
		{storage.Op{Kind: storage.Read, Path: "d/f", Size: 100_000, Chunk: 50_000}, [levels]int{0, 1, 4, 4}},
		// with kXR_read
		{storage.Op{Kind: storage.Read, Path: "d/f", Size: 100_000, Chunk: 50_000, Plain: true}, [levels]int{0, 1, 2, 4}},
		// with kXR_readv
		{storage.Op{Kind: storage.Read, Path: "d/f", Size: 100_000, Ranges: []storage.Range{{Length: 9}, {Offset: 50, Length: 9}}},
			[levels]int{0, 1, 2, 3}},
		{storage.Op{Kind: storage.Stat, Path: "d/f"}, [levels]int{0, 0, 0, 1}},
		{storage.Op{Kind: storage.List, Path: "d"}, [levels]int{0, 0, 0, 1}},
		{storage.Op{Kind: storage.Checksum, Path: "d/f", Sum: "adler32"}, [levels]int{0, 0, 0, 1}},
		{storage.Op{Kind: storage.Locate, Path: "d/f"}, [levels]int{0, 0, 0, 1}},
		{storage.Op{Kind: storage.Move, Source: "d/f", Path: "d/h"}, [levels]int{1, 1, 1, 1}},
		{storage.Op{Kind: storage.Ping}, [levels]int{0, 0, 0, 0}},
		{storage.Op{Kind: storage.Remove, Path: "d/h"}, [levels]int{1, 1, 1, 1}},
	}
}

// TestEachLevelSignsWhatTheServerWants compares the number of signed requests with the reference,
// and with the server's report: the number of valid signatures, and zero invalid or unwanted
// signatures. A client that does not sign is refused if signatures are required, and only then.
func TestEachLevelSignsWhatTheServerWants(t *testing.T) {
	for name, version := range versions() {
		for i, level := range []string{"compatible", "standard", "intense", "pedantic"} {
			t.Run(name+"/"+level, func(t *testing.T) {
				t.Parallel()
				xr := labtest.Start(t, lab.XRootDConfig{Version: version, Auth: "gsi", Extra: "sec.level all " + level + "\n"})
				s := storagetest.Open(t, Driver(), storagetest.TargetOf(t, xr.URL, credentials(t, settings(t, xr))))
				signing, all := closing(t, s), 0
				for _, c := range signedBy() {
					c.op.Timeout = 30 * time.Second
					if want := c.want[i]; want > 0 {
						refusedUnsigned(t, closing(t, s), c.op, "Request not signed")
					}
					r, err := signing.Do(t.Context(), &c.op, &events{})
					if err != nil || r.Signed != c.want[i] {
						t.Errorf("%s of %s, plain %v: %d requests were signed, want %d: %v", c.op.Kind, c.op.Path, c.op.Plain, r.Signed, c.want[i], err)
					}
					all += r.Signed
				}
				text, err := s.(storage.Reporter).Report(t.Context(), strings.Split(xr.URL, "/")[2])
				require.NoError(t, err)
				ok := regexp.MustCompile(`<sig><ok>(\d+)</ok><bad>(\d+)</bad><ign>(\d+)</ign></sig>`).FindStringSubmatch(string(text))
				if i == levels-1 {
					all++ // this request itself
				}
				if ok == nil || ok[1] != fmt.Sprint(all) || ok[3] != "0" {
					t.Errorf("the server says %q of right, wrong and unwanted signatures, want %d right and none unwanted", ok, all)
				}
			})
		}
	}
}

// closing returns a client that is closed at the end of the test.
func closing(t *testing.T, s storage.Service) *client {
	t.Helper()
	c := s.Client().(*client)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// refusedUnsigned checks the refusal of unsigned requests of a client that has logged in.
func refusedUnsigned(t *testing.T, c *client, op storage.Op, text string) {
	t.Helper()
	login(t, c)
	c.home.signs = nil
	refusedSignature(t, c, op, text)
}

func login(t *testing.T, c *client) {
	t.Helper()
	if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Login, Timeout: 30 * time.Second}, &events{}); err != nil {
		t.Fatal(err)
	}
	if c.home.signs == nil {
		t.Fatal("nothing is signed on this session")
	}
}

func refusedSignature(t *testing.T, c *client, op storage.Op, text string) {
	t.Helper()
	_, err := c.Do(t.Context(), &op, &events{})
	if refused(err) != erSigVer || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want kXR_SigVerErr with %q", op.Kind, err, text)
	}
}

// A tampering wire changes the bytes that are written.
type tampering struct {
	wire
	change func([]byte) []byte
}

func (c tampering) Write(p []byte) (int, error) {
	_, err := c.wire.Write(c.change(bytes.Clone(p)))
	return len(p), err
}

// TestWrongSignaturesAreRefused changes requests of a client on their way: a server must refuse
// them, with a key and, if it forces signatures without a key, with the bare hash.
func TestWrongSignaturesAreRefused(t *testing.T) {
	const sig = requestSize // where a signature begins
	request := func(p []byte) []byte { return p[sig+int(binary.BigEndian.Uint32(p[20:])):] }
	set := func(at int, b ...byte) func([]byte) []byte {
		return func(p []byte) []byte {
			copy(p[at:], b)
			return p
		}
	}
	wrong := map[string]struct {
		change func([]byte) []byte
		text   string
	}{
		"the signature is taken away":  {request, "not signed"},
		"of another request":           {set(4, 0x0b, 0xc3), "requestid mismatch"},
		"of another stream":            {set(0, 0, 9), "streamid mismatch"},
		"number of one before":         {set(8, 0, 0, 0, 0, 0, 0, 0, 1), "signature sequence"},
		"another number":               {set(8, 1), "mismatch"},
		"another version":              {set(6, 1), "signature version"},
		"another hash":                 {set(16, 2), "signature hash"},
		"an RSA key":                   {set(16, 0x81), "signature key"},
		"without the arguments":        {set(7, 1), "mismatch"},
		"another path":                 {func(p []byte) []byte { p[len(p)-1] ^= 1; return p }, "mismatch"},
		"another bit in the head":      {func(p []byte) []byte { request(p)[4] ^= 2; return p }, "mismatch"},
		"another bit in the signature": {func(p []byte) []byte { p[sig+20] ^= 1; return p }, ""},
		"half of the signature": {func(p []byte) []byte {
			rest := bytes.Clone(request(p))
			binary.BigEndian.PutUint32(p[20:], 16)
			return append(p[:sig+16], rest...)
		}, ""},
	}
	for name, version := range versions() {
		for _, auth := range []string{"gsi", "unix"} {
			t.Run(name+"/"+auth, func(t *testing.T) {
				t.Parallel()
				xr := labtest.Start(t, lab.XRootDConfig{Version: version, Auth: auth, Extra: "sec.level all pedantic force\n"})
				require.NoError(t, xr.WriteFile("file", []byte("x")))
				s := storagetest.Open(t, Driver(), storagetest.TargetOf(t, xr.URL, credentials(t, settings(t, xr))))
				stat := storage.Op{Kind: storage.Stat, Path: "file", Timeout: 30 * time.Second}
				for what, w := range wrong {
					c := closing(t, s)
					login(t, c)
					for range 2 { // so that there are earlier numbers
						if _, err := c.Do(t.Context(), &stat, &events{}); err != nil {
							t.Fatal(err)
						}
					}
					good := c.home.wire
					c.home.wire = tampering{good, w.change}
					t.Run(what, func(t *testing.T) { refusedSignature(t, c, stat, w.text) })
					if c.home.wire != nil {
						c.home.wire = good
					}
					if r, err := c.Do(t.Context(), &stat, &events{}); err != nil || r.Signed == 0 { // on a new session
						t.Errorf("%s: the client is not let in again: %v", what, err)
					}
				}
				c := closing(t, s)
				login(t, c)
				var sent []byte
				c.home.wire = tampering{c.home.wire, func(p []byte) []byte {
					if sent == nil {
						sent = p
					}
					return sent
				}}
				if _, err := c.Do(t.Context(), &stat, &events{}); err != nil {
					t.Fatal(err)
				}
				refusedSignature(t, c, stat, "signature sequence") // the same bytes again
			})
		}
	}
}

// TestUnsignableIsExplained runs a server that refuses requests that cannot be signed after a login
// without a key.
func TestUnsignableIsExplained(t *testing.T) {
	p := &peer{demand: "S\x00\x00\x00\x04\x00"}
	p.answer = func(c *talk, q query) bool { return c.say(q, stError, number(erSigVer)+"Request not signed\x00") }
	p.start(t)
	for _, shared := range []bool{false, true} {
		for _, op := range []storage.Op{{Kind: storage.Stat}, {Kind: storage.Read, Size: 1}, {Kind: storage.Write, Size: 1}} {
			op.Path, op.Timeout = "f", 10*time.Second
			_, err := clientOf(t, p.url, shared).Do(t.Context(), &op, &events{})
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "use auth.method x509") {
				t.Errorf("%s, shared %v: %v", op.Kind, shared, err)
			}
		}
	}
	wants := &peer{demand: "S\x00\x00\x01\x04\x00"}
	wants.start(t)
	_, err := clientOf(t, wants.url, false).Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "f", Timeout: 10 * time.Second}, &events{})
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "data of writes") {
		t.Errorf("a server that wants data signed: %v", err)
	}
}

// TestOverridesOfLevels runs a server that forces signatures, with exceptions for two requests.
func TestOverridesOfLevels(t *testing.T) {
	for _, c := range []struct {
		demand     string
		stat, open int
	}{
		{"S\x00\x00\x02\x00\x00", 0, 0},                 // forced, but no level
		{"S\x00\x00\x02\x04\x00", 1, 3},                 // stat; open, pgread, close
		{"S\x00\x00\x02\x63\x00", 1, 3},                 // a level that does not exist is pedantic
		{"S\x00\x00\x02\x00\x01\x11\x02", 1, 0},         // only stat
		{"S\x00\x00\x02\x04\x02\x11\x00\x0a\x01", 0, 2}, // all except stat, open if it changes something
		{"S\x00\x00\x02\x04\x01\xff\x09", 1, 3},         // a request that does not exist
		{"S\x00\x00\x00\x04\x00", 0, 0},                 // not forced
		{"X", 0, 0},                                     // something else
	} {
		for _, shared := range []bool{false, true} {
			p := (&peer{demand: c.demand, offer: "&P=unix", file: made(10)}).start(t)
			client := clientOf(t, p.url, shared)
			for _, x := range []struct {
				op   storage.Op
				want int
			}{{storage.Op{Kind: storage.Stat}, c.stat}, {storage.Op{Kind: storage.Read, Size: 10}, c.open}} {
				x.op.Path, x.op.Timeout = "f", 10*time.Second
				r, err := client.Do(t.Context(), &x.op, &events{})
				if err != nil || r.Signed != x.want {
					t.Errorf("%q, shared %v: %d requests of a %s were signed, want %d: %v", c.demand, shared, r.Signed, x.op.Kind, x.want, err)
				}
			}
			if signed := p.queries(rqSigver); len(signed) != c.stat+c.open || !slices.IsSortedFunc(signed, func(a, b query) int {
				return strings.Compare(string(a.params[4:12]), string(b.params[4:12]))
			}) {
				t.Errorf("%q, shared %v: the server got the signatures %v", c.demand, shared, signed)
			}
		}
	}
	short := (&peer{demand: "S\x00\x00\x02\x04\x02\x11\x00"}).start(t)
	_, err := clientOf(t, short.url, false).Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "f", Timeout: 10 * time.Second}, &events{})
	if !errors.Is(err, storage.ErrProtocol) {
		t.Errorf("less than it announces: %v", err)
	}
}

// TestSigningDoesNotAllocate checks requests on a kept session.
func TestSigningDoesNotAllocate(t *testing.T) {
	s := newSigner(demands{level: levels, forced: true}, nil)
	p, b := [16]byte{}, make([]byte, 0, 256)
	request := append(appendRequest(nil, 1, rqStat, &p, 4), "path"...)
	if n := testing.AllocsPerRun(100, func() { b, _ = s.append(b[:0], request) }); n > 0 || len(b) < 2*requestSize {
		t.Errorf("%v allocations for %d bytes", n, len(b))
	}
}

func BenchmarkSign(b *testing.B) {
	s := newSigner(demands{level: levels, forced: true}, nil)
	p, buf := [16]byte{}, make([]byte, 0, 256)
	request := append(appendRequest(nil, 1, rqStat, &p, 40), make([]byte, 40)...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.append(buf[:0], request); err != nil {
			b.Fatal(err)
		}
	}
}
