package ftp

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// A quiet Progress records its calls.
type quiet struct {
	phases  []storage.Phase
	servers []string
	moved   int64
}

func (q *quiet) Reached(p storage.Phase) { q.phases = append(q.phases, p) }
func (q *quiet) Moved(n int)             { q.moved += int64(n) }
func (q *quiet) ServedBy(host string)    { q.servers = append(q.servers, host) }

func serviceAt(t testing.TB, url string, cred storage.Credentials) storage.Service {
	t.Helper()
	return storagetest.Open(t, Driver(), storagetest.TargetOf(t, url, cred))
}

// place creates a file of content without using the server.
func place(t testing.TB, s *lab.System, name string, seed uint64, size int64) {
	t.Helper()
	b := make([]byte, size)
	content.Fill(b, seed, 0)
	require.NoError(t, s.WriteFile(name, b))
}

func must(t testing.TB, c storage.Client, op storage.Op) (storage.Result, *quiet) {
	t.Helper()
	q := &quiet{}
	res, err := c.Do(t.Context(), &op, q)
	require.NoError(t, err)
	return res, q
}

// TestPlainFTP works with the facts of current plain FTP servers.
func TestPlainFTP(t *testing.T) {
	f := labtest.Start(t, lab.ProFTPDConfig{})
	c := serviceAt(t, f.URL, secret(f)).Client()
	defer c.Close()
	must(t, c, storage.Op{Kind: storage.Mkdir, Path: "d"})
	must(t, c, storage.Op{Kind: storage.Write, Path: "d/ünï 漢", Size: 70_000, Seed: 5})
	if got, err := os.ReadFile(filepath.Join(f.Data, "d/ünï 漢")); err != nil || !content.Equal(got, 5, 0) || len(got) != 70_000 {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if res, _ := must(t, c, storage.Op{Kind: storage.Stat, Path: "d/ünï 漢"}); res.Size != 70_000 {
		t.Errorf("size %d", res.Size)
	}
	res, _ := must(t, c, storage.Op{Kind: storage.List, Path: "d"})
	if want := []storage.Entry{{Name: "ünï 漢", Size: 70_000}}; !slices.Equal(res.Entries, want) {
		t.Errorf("%+v, want %+v", res.Entries, want)
	}
	if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Write, Path: "d/ünï 漢", Size: 7}, &quiet{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("writing over a file: %v", err)
	}
	must(t, c, storage.Op{Kind: storage.Remove, Path: "d/ünï 漢"})
	must(t, c, storage.Op{Kind: storage.Remove, Path: "d"})
}

// TestWrongPassword checks that a wrong password is refused, and not part of the error.
func TestWrongPassword(t *testing.T) {
	f := labtest.Start(t, lab.ProFTPDConfig{})
	cred := secret(f)
	cred.Password = "not this one"
	c := serviceAt(t, f.URL, cred).Client()
	defer c.Close()
	_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "x", Timeout: time.Minute}, &quiet{})
	if storage.Classify(err) != storage.Denied || strings.Contains(err.Error(), cred.Password) {
		t.Error(err)
	}
}

// TestUnfinishedWrite checks that an unfinished file is written again, but only by the client that
// left it. The size of the file afterwards is undefined: the server may still be writing the bytes
// that it received from the first write.
func TestUnfinishedWrite(t *testing.T) {
	g := labtest.Start(t, lab.GridFTPConfig{})
	s := serviceAt(t, g.URL, storage.Credentials{})
	c, other := s.Client(), s.Client()
	defer c.Close()
	defer other.Close()
	ctx, cancel := context.WithCancel(t.Context())
	op := storage.Op{Kind: storage.Write, Path: "f", Size: 1 << 40, Seed: 1}
	if _, err := c.Do(ctx, &op, ending{cancel}); storage.Classify(err) != storage.Canceled {
		t.Fatal(err)
	}
	op.Size = 100_000
	if _, err := other.Do(t.Context(), &op, &quiet{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("another client: %v", err)
	}
	must(t, c, op)
	if _, err := c.Do(t.Context(), &op, &quiet{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("after it ended well: %v", err)
	}
}

// ending cancels a context at the first bytes.
type ending struct{ cancel func() }

func (ending) Reached(storage.Phase) {}
func (e ending) Moved(int)           { e.cancel() }
func (ending) ServedBy(string)       {}

// TestForeignNames checks that names are refused that the server would take for another file.
func TestForeignNames(t *testing.T) {
	g := labtest.Start(t, lab.GridFTPConfig{})
	place(t, g, "n", 1, 100)
	c := serviceAt(t, g.URL, storage.Credentials{}).Client()
	defer c.Close()
	for _, kind := range []storage.Kind{storage.Read, storage.Stat, storage.Remove, storage.Write} {
		_, err := c.Do(t.Context(), &storage.Op{Kind: kind, Path: "ün", Size: -1}, &quiet{})
		if err == nil {
			t.Errorf("%s of ün works, which the server takes for n", kind)
		}
	}
	must(t, c, storage.Op{Kind: storage.Read, Path: "n", Size: 100})
}

// TestDataAddress checks that the address is reported as the server of a transfer.
func TestDataAddress(t *testing.T) {
	g := labtest.Start(t, lab.GridFTPConfig{})
	place(t, g, "f", 1, 100)
	c := serviceAt(t, strings.Replace(g.URL, "127.0.0.1", "localhost", 1), storage.Credentials{}).Client()
	defer c.Close()
	_, q := must(t, c, storage.Op{Kind: storage.Read, Path: "f", Size: 100})
	want := []storage.Phase{storage.Connected, storage.Authenticated, storage.Opened, storage.FirstByte}
	if !slices.Equal(q.servers, []string{"127.0.0.1"}) || !slices.Equal(q.phases, want) {
		t.Errorf("servers %v, phases %v", q.servers, q.phases)
	}
}

func mustPort(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
