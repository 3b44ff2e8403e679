package xrootd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
	"weir/storage"
	"weir/storage/wireclient"
)

// recorded returns the recorded conversations of real servers, and the bodies of their responses
// with a given status (any for 0).
func recorded(f *testing.F, status uint16) (all, bodies [][]byte) {
	f.Helper()
	files, err := filepath.Glob(captureFile("*"))
	if err != nil || len(files) == 0 {
		f.Fatal("no recorded conversations: ", err)
	}
	slices.Sort(files)
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		all = append(all, b)
		for len(b) >= headSize {
			h, err := parseFrame(b)
			if err != nil || int64(len(b)) < headSize+h.size {
				f.Fatalf("%s: %v", name, err)
			}
			body := b[headSize : headSize+h.size]
			b = b[headSize+h.size:]
			if h.status == stStatus {
				b = b[binary.BigEndian.Uint32(body[12:]):]
			}
			if h.status == status {
				bodies = append(bodies, body)
			}
		}
	}
	return all, bodies
}

func seed(f *testing.F, status uint16, more ...string) {
	f.Helper()
	_, bodies := recorded(f, status)
	for _, b := range bodies {
		if len(b) < 1000 {
			f.Add(b)
		}
	}
	for _, s := range more {
		f.Add([]byte(s))
	}
}

// protocolOnly checks that the only error for garbage is ErrProtocol.
func protocolOnly(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, storage.ErrProtocol) || len(errText(err)) > 2000 {
		t.Errorf("error %v", err)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func FuzzFrame(f *testing.F) {
	all, _ := recorded(f, stOK)
	for _, b := range all {
		f.Add(b[:headSize])
	}
	f.Add([]byte("SSH-2.0-"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headSize {
			return
		}
		h, err := parseFrame(b)
		protocolOnly(t, err)
		if err == nil && (h.size < 0 || h.size > maxFrame || statusName(h.status) == "") {
			t.Errorf("frame %+v", h)
		}
	})
}

func FuzzStatus(f *testing.F) {
	seed(f, stStatus, sheet{}.text()[headSize:])
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseStatus(frame{stream: 1}, b)
		if err != nil && !errors.Is(err, storage.ErrChecksum) {
			protocolOnly(t, err)
		}
		if err == nil && (s.size < 0 || s.size > maxFrame || s.offset < 0 || requestName(s.request) == "") {
			t.Errorf("status %+v", s)
		}
	})
}

func FuzzRedirect(f *testing.F) {
	seed(f, stRedirect, number(1094)+"127.0.0.1?a=b&c=d?login", number(0)+"[::1]", number(-1)+"roots://user@host:1234//path?x=y",
		number(1)+"h?&")
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRedirect(b)
		protocolOnly(t, err)
		if err == nil && (r.port == 0 || wireclient.CheckHost(r.host) != nil || strings.ContainsAny(r.opaque, "\n\x00") ||
			len(r.opaque) > maxRedirect) {
			t.Errorf("redirect %+v", r)
		}
	})
}

func FuzzStat(f *testing.F) {
	seed(f, stOK, "1 2 3 4\x00", "  1\t9223372036854775807 51 0 x y z")
	f.Fuzz(func(t *testing.T, b []byte) {
		size, flags, err := parseStat(b)
		protocolOnly(t, err)
		if size < 0 || flags < 0 || err != nil && size != 0 {
			t.Errorf("size %d, flags %d, error %v", size, flags, err)
		}
	})
}

func FuzzLocate(f *testing.F) {
	seed(f, stOK, "Sr[::127.0.0.1]:1094 Mw[::ffff:10.0.0.1]:1213\x00", "srhost.example:1", "S")
	f.Fuzz(func(t *testing.T, b []byte) {
		servers, managers, err := parseLocate(b)
		protocolOnly(t, err)
		var s locator
		for _, name := range append(servers, managers...) {
			at, err := s.named(name)
			if err != nil || at.port == 0 || wireclient.CheckHost(at.host) != nil {
				t.Errorf("location %q: %v", name, err)
			}
		}
	})
}

// A locator looks up the server that a location names.
type locator struct{}

func (locator) named(name string) (*server, error) {
	s := &service{home: &server{host: "h", port: 1, name: "h:1"}}
	return s.serverNamed(name)
}

func FuzzList(f *testing.F) {
	seed(f, stOK, ".\n0 0 0 0\na\n1 2 16 3\nb\n1 4 2 3\x00", "a\nb c\n..", ".\n0 0 0 0 0 0 0 0 x\n")
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := parseList(b)
		protocolOnly(t, err)
		if err != nil && entries != nil {
			t.Errorf("entries beside error %v", err)
		}
		for _, e := range entries {
			if e.Name == "" || strings.ContainsAny(e.Name, "/\x00\n") || e.Size < -1 || e.Dir && e.Size >= 0 {
				t.Errorf("entry %+v", e)
			}
		}
	})
}

func FuzzChecksum(f *testing.F) {
	seed(f, stOK, "adler32 1a2b\x00", "ADLER32 12345678", "adler32 123456789")
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, alg := range []string{"adler32", "md5", "odd"} {
			sum, err := parseChecksum(b, alg)
			protocolOnly(t, err)
			hex, ok := strings.CutPrefix(sum, alg+":")
			if err == nil && (!ok || hex == "" || strings.Trim(hex, "0123456789abcdef") != "" || alg == "adler32" && len(hex) != 8) ||
				err != nil && sum != "" {
				t.Errorf("sum %q, error %v", sum, err)
			}
		}
	})
}

func FuzzError(f *testing.F) {
	seed(f, stError, number(3011)+"no such file\x00", number(-1), "abc")
	f.Fuzz(func(t *testing.T, b []byte) {
		err := parseError(b)
		if err == nil || err.Error() == "" || len(err.Error()) > 2000 || storage.Classify(err) == storage.None || len(b) >= 4 && broken(err) {
			t.Errorf("error %v", err)
		}
	})
}

// FuzzConversation runs a server that sends arbitrary bytes to each operation, twice. Redirects are
// left out: they would lead out of this machine. (Run it in a network of its own, such as "unshare
// -n", which has only the loopback.)
func FuzzConversation(f *testing.F) {
	ops := captures()
	names := make([]string, 0, len(ops))
	for name := range ops {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		b, err := os.ReadFile(captureFile(name))
		require.NoError(f, err)
		f.Add(b, byte(i))
		f.Add(b[:len(b)*2/3], byte(i))
	}
	var saying atomic.Pointer[[]byte]
	url := parrot(f, func() []byte { return *saying.Load() })
	f.Fuzz(func(t *testing.T, said []byte, which byte) {
		saying.Store(&said)
		if bytes.Contains(said, []byte{stRedirect >> 8, stRedirect & 0xff}) {
			return
		}
		op := ops[names[int(which)%len(names)]]
		op.Timeout = 200 * time.Millisecond
		c := clientAt(t, url, storage.Credentials{})
		for range 2 {
			var e events
			begin := time.Now()
			res, err := c.Do(t.Context(), &op, &e)
			if d := time.Since(begin); d > 10*time.Second {
				t.Errorf("%s took %v", op.Kind, d)
			}
			var oe *storage.OpError
			if err != nil && (!errors.As(err, &oe) || storage.Classify(err) == storage.None) {
				t.Errorf("error %v", err)
			}
			if op.Kind == storage.Read && (e.moved > captured || err == nil && e.moved != captured && len(op.Ranges) < 2) {
				t.Errorf("moved %d, error %v", e.moved, err)
			}
			for _, entry := range res.Entries {
				if entry.Name == "" || entry.Name == "." || entry.Name == ".." || strings.ContainsAny(entry.Name, "/\x00\n") {
					t.Errorf("entry %+v", entry)
				}
			}
		}
	})
}
