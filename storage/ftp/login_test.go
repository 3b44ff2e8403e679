package ftp

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"sync"
	"testing"

	"weir/internal/require"
	"weir/storage"
)

// gate starts an FTP server with the reply 331 to USER, and a refusal to PASS.
func gate(t *testing.T, refusal string) (target string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				_, _ = fmt.Fprint(c, "220 ready\r\n")
				for lines := bufio.NewScanner(c); lines.Scan(); {
					if !strings.HasPrefix(lines.Text(), "USER ") {
						_, _ = fmt.Fprint(c, refusal+"\r\n")
						return
					}
					_, _ = fmt.Fprint(c, "331 password\r\n")
				}
			})
		}
	})
	return "ftp://" + l.Addr().String() + "/"
}

// TestLoginIsRefused checks that the refusal of a login is storage.ErrLogin for each operation,
// with any text of the server, and never the error of an operation that the server does not support
// or of a missing file.
func TestLoginIsRefused(t *testing.T) {
	for refusal, needsTLS := range map[string]bool{
		"500 OOPS: vsftpd: refusing to run with writable root inside chroot()": false,
		"502 Command not implemented":                                          false,
		"530 Login incorrect.":                                                 false,
		"550 Home directory not found":                                         false,
		"550 SSL/TLS required on the control channel":                          true,
		"530 Non-anonymous sessions must use encryption.":                      true,
		"421 Sorry, cleartext sessions are not accepted on this server.":       true,
		"503 Use AUTH first.":                                                  true,
	} {
		target := gate(t, refusal)
		for _, op := range []storage.Op{
			{Kind: storage.Login}, {Kind: storage.List}, {Kind: storage.Mkdir, Path: "d"}, {Kind: storage.Write, Path: "f", Size: 1},
			{Kind: storage.Remove, Path: "f"}, {Kind: storage.Stat, Path: "f"},
		} {
			s := serviceAt(t, target, storage.Credentials{})
			_, err := s.Client().Do(t.Context(), &op, &quiet{})
			if !errors.Is(err, storage.ErrLogin) || errors.Is(err, errors.ErrUnsupported) ||
				errors.Is(err, fs.ErrNotExist) || errors.Is(err, storage.ErrNeedsTLS) != needsTLS || !strings.Contains(err.Error(), refusal) {
				t.Errorf("%v after %q: %v, %v", op.Kind, refusal, storage.Classify(err), err)
			}
		}
	}
}
