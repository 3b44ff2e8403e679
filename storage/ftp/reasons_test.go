package ftp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
)

// withoutReasons returns the URL of a proxy to a server. Refusals of the server with 550 have no
// reason, as from vsftpd and pure-ftpd, and MLST and MLSD are not supported.
func withoutReasons(t *testing.T, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	require.NoError(t, err)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := u.Host
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	lines := func(from, to net.Conn, change func(string) string) {
		defer from.Close()
		defer to.Close()
		in := bufio.NewReader(from)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if _, err := io.WriteString(to, change(line)); err != nil {
				return
			}
		}
	}
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			there, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
			if err != nil {
				_ = client.Close()
				continue
			}
			all.Go(func() {
				lines(client, there, func(line string) string {
					if strings.HasPrefix(line, "MLS") {
						return "X" + line
					}
					return line
				})
			})
			all.Go(func() {
				lines(there, client, func(line string) string {
					if strings.HasPrefix(line, "550") {
						return "550 Operation failed.\r\n"
					}
					return line
				})
			})
		}
	})
	u.Host = l.Addr().String()
	return u.String()
}

// TestRefusalsWithoutReasons checks that a refusal without a reason is not taken as evidence that a
// file is missing: folders are removed, and a file that remains is not reported as missing.
func TestRefusalsWithoutReasons(t *testing.T) {
	f := labtest.Start(t, lab.ProFTPDConfig{})
	c := serviceAt(t, withoutReasons(t, f.URL), secret(f)).Client()
	defer c.Close()
	do := func(op storage.Op) (storage.Result, error) { return c.Do(t.Context(), &op, &quiet{}) }
	for _, folder := range []string{"a", "a/b", "kept", "kept/inner"} {
		must(t, c, storage.Op{Kind: storage.Mkdir, Path: folder})
	}
	must(t, c, storage.Op{Kind: storage.Write, Path: "a/file", Size: 1000})
	for path, dir := range map[string]bool{"a": true, "a/b": true, "a/file": false} {
		size := int64(-1)
		if !dir {
			size = 1000
		}
		if res, err := do(storage.Op{Kind: storage.Stat, Path: path}); err != nil || res.Size != size {
			t.Errorf("stat %s: %d, %v", path, res.Size, err)
		}
	}
	for _, op := range []storage.Op{
		{Kind: storage.Stat, Path: "none"}, {Kind: storage.Stat, Path: "none/inner/file"}, {Kind: storage.List, Path: "none"},
		{Kind: storage.Read, Path: "none", Size: -1},
		{Kind: storage.Read, Path: "none/file", Size: -1, Ranges: []storage.Range{{Length: 9}}},
		{Kind: storage.Move, Path: "other", Source: "none"}, {Kind: storage.Remove, Path: "none"},
		{Kind: storage.Remove, Path: "none", Folder: true}, {Kind: storage.Remove, Path: "a/none/x"},
	} {
		if _, err := do(op); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s %s, which is not there: %v", op.Kind, op.Path, err)
		}
	}
	if _, err := do(storage.Op{Kind: storage.Mkdir, Path: "a/b"}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder that is there is made: %v", err)
	}
	if _, err := do(storage.Op{Kind: storage.Mkdir, Path: "none/b"}); err == nil || errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder is made in one that is not there: %v", err)
	}
	if _, err := do(storage.Op{Kind: storage.Read, Path: "a/b", Size: -1}); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a folder is read: %v", err)
	}
	q := &quiet{}
	_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "a/none", Size: -1}, q)
	if !errors.Is(err, fs.ErrNotExist) || q.moved > 0 {
		t.Errorf("%v, and %d bytes of a listing count as payload", err, q.moved)
	}
	require.NoError(t, os.WriteFile(filepath.Join(f.Data, "kept/inner/foreign"), nil, 0o644))
	for _, folder := range []bool{true, false} {
		for _, path := range []string{"kept/inner", "kept"} { // not empty, and the server does not say so
			if _, err := do(storage.Op{Kind: storage.Remove, Path: path, Folder: folder}); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("remove %s, which is not empty: %v", path, err)
			}
		}
	}
	must(t, c, storage.Op{Kind: storage.Remove, Path: "a/file"})
	must(t, c, storage.Op{Kind: storage.Remove, Path: "a/b", Folder: true})
	must(t, c, storage.Op{Kind: storage.Remove, Path: "a"}) // not known to be a folder
	left, err := os.ReadDir(f.Data)
	require.NoError(t, err)
	if names := fmt.Sprint(left); !strings.Contains(names, "kept") || strings.Contains(names, "d a/") {
		t.Errorf("left: %s", names)
	}
}
