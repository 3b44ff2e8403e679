package gsi

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/gridcert/gridcerttest"
	"weir/storage/xrootd/security"
)

// A site is a real server and the credentials of its clients.
type site struct {
	*lab.System
	address string
	cred    storage.Credentials
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := labtest.Start(t, lab.XRootDConfig{Auth: "gsi"})
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.Data, "a"), []byte("hello\n"), 0o644))
	return &site{
		System: s, address: net.JoinHostPort("127.0.0.1", u.Port()),
		cred: storage.Credentials{From: storage.Auth{ProxyFile: s.Proxy, CADir: s.CADir}},
	}
}

// works logs in and uses the session.
func (s *site) works(m *Method, host string, adapt func(string) string) error {
	session, err := login(m, s.address, host, adapt)
	if session != nil {
		defer session.conn.Close()
	}
	if err != nil {
		return err
	}
	size, err := session.stat("/data/a")
	if err == nil && size != "6" {
		err = errors.New("the file has the size " + size)
	}
	return err
}

func TestRealServer(t *testing.T) {
	s := newSite(t)
	t.Run("variants", s.variants)
	t.Run("credentials", s.credentials)
	t.Run("refusals", s.refusals)
	t.Run("man in the middle", s.middle)
	t.Run("together", s.together)
	t.Run("renewal", s.renewal)
}

// variants logs in as clients of several versions: a server of version 10600 treats clients as the
// version that they announce, so it stands in for older servers.
func (s *site) variants(t *testing.T) {
	m := newMethod(t, s.cred)
	old := newMethod(t, s.cred)
	old.version = 10300
	for name, err := range map[string]error{
		"as it is":   s.works(m, "localhost", nil),
		"not padded": s.works(m, "localhost", func(o string) string { return strings.Replace(o, "c:ssl", "c:sslnopad", 1) }),
		"not signed": s.works(old, "localhost", nil),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func (s *site) credentials(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key.pem")
	text, err := os.ReadFile(s.UserKey)
	require.NoError(t, err)
	gridcerttest.WriteFile(t, 0o600, key, text)
	for name, from := range map[string]storage.Auth{
		"certificate and key":     {CertFile: s.UserCert, KeyFile: key, CADir: s.CADir},
		"one file of authorities": {ProxyFile: s.Proxy, CAFile: s.CAFile},
		"name of the mapped user": {ProxyFile: s.Proxy, CADir: s.CADir, User: s.User},
		"no check of the server":  {ProxyFile: s.Proxy, CADir: t.TempDir(), Insecure: true},
	} {
		if err := s.works(newMethod(t, storage.Credentials{User: from.User, From: from}), "localhost", nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.works(newMethod(t, storage.Credentials{From: storage.Auth{ProxyFile: toolProxy(t, s, key), CADir: s.CADir}}), "localhost",
		nil); err != nil {
		t.Errorf("proxy made by xrdgsiproxy: %v", err)
	}
	t.Setenv("X509_USER_PROXY", s.Proxy)
	t.Setenv("X509_CERT_DIR", s.CADir)
	if err := s.works(newMethod(t, storage.Credentials{}), "localhost", nil); err != nil {
		t.Errorf("variables alone: %v", err)
	}
}

// toolProxy makes a proxy with XRootD's own tool.
func toolProxy(t *testing.T, s *site, key string) string {
	t.Helper()
	labtest.Need(t, "xrdgsiproxy")
	file := filepath.Join(t.TempDir(), "x509up")
	cmd := exec.CommandContext(t.Context(), "xrdgsiproxy", "init", "-f", file, "-cert", s.UserCert, "-key", key, "-certdir", s.CADir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

func (s *site) refusals(t *testing.T) {
	expired, err := s.ProxyFor(-time.Minute)
	require.NoError(t, err)
	_, wrong, err := s.WrongCA()
	require.NoError(t, err)
	stranger := gridcerttest.Member(t, gridcerttest.NewCA(t, "Stranger")).From.ProxyFile
	for _, c := range []struct {
		name, host string
		from       storage.Auth
		reason     string
		theirs     bool // the server refuses
	}{
		{"expired proxy", "localhost", storage.Auth{ProxyFile: expired, CADir: s.CADir}, "expired at 2", false},
		{"other host", "example.org", storage.Auth{ProxyFile: s.Proxy, CADir: s.CADir}, "not for example.org", false},
		{"folder without the authority", "localhost", storage.Auth{ProxyFile: s.Proxy, CADir: t.TempDir()}, ".0, which is not in /", false},
		{"authority of the same name", "localhost", storage.Auth{ProxyFile: s.Proxy, CADir: wrong}, "unknown authority", false},
		{"proxy of an unknown authority", "localhost", storage.Auth{ProxyFile: stranger, CADir: s.CADir},
			"unknown CA: cannot verify client", true},
	} {
		m, err := New(storage.Credentials{From: c.from})
		if err == nil {
			m.names.DNS = false
			err = s.works(m, c.host, nil)
		}
		if err == nil || !strings.Contains(err.Error(), c.reason) || !c.theirs && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: got %v, want a refusal that says %q", c.name, err, c.reason)
		}
	}
}

// middle changes the real server's messages on their way to the client.
func (s *site) middle(t *testing.T) {
	m := newMethod(t, s.cred)
	another := gridcerttest.NewCA(t, "Middle")
	earlier, err := login(m, s.address, "localhost", nil)
	require.NoError(t, err)
	_ = earlier.conn.Close()
	swap := func(kind uint32, data []byte) func([]byte) []byte {
		return func(b []byte) []byte {
			msg, err := parseBuffer(b)
			if err != nil {
				t.Error(err)
			}
			for i := range msg.buckets {
				if msg.buckets[i].kind == kind {
					msg.buckets[i].data = data
				}
			}
			return encode(msg.step, msg.buckets...)
		}
	}
	old, err := parseBuffer(earlier.took)
	require.NoError(t, err)
	oldMain, _ := old.find(bucketMain)
	oldHalf, _ := old.find(bucketAgreement)
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		is     error
	}{
		{"another certificate", swap(bucketCertificates, another.Host(t, "localhost").CertPEM()), fs.ErrPermission},
		{"the answer of an earlier login", func([]byte) []byte { return bytes.Clone(earlier.took) }, fs.ErrPermission},
		{"the signed tag of an earlier login", swap(bucketMain, oldMain), fs.ErrPermission},
		{"an agreement that is not signed", swap(bucketAgreement, bytes.Repeat([]byte{1}, len(oldHalf))), fs.ErrPermission},
		{"cut off", func(b []byte) []byte { return b[:len(b)/2] }, storage.ErrProtocol},
		{"nothing", func([]byte) []byte { return nil }, storage.ErrProtocol},
		{"garbage", func(b []byte) []byte { return bytes.Repeat([]byte{0xff}, len(b)) }, storage.ErrProtocol},
	} {
		session, err := dial(s.address)
		require.NoError(t, err)
		offer, err := session.greet()
		require.NoError(t, err)
		e, err := m.Begin(t.Context(), security.Server{Host: "localhost", Parameters: offer})
		require.NoError(t, err)
		if err := session.authenticate(e, c.change); !errors.Is(err, c.is) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.is)
		}
		_ = session.conn.Close()
	}
}

// together logs a hundred clients in at the same time with one method.
func (s *site) together(t *testing.T) {
	m := newMethod(t, s.cred)
	var group sync.WaitGroup
	failed := make(chan error, 100)
	for range cap(failed) {
		group.Go(func() {
			if err := s.works(m, "localhost", nil); err != nil {
				failed <- err
			}
		})
	}
	group.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
}

// renewal replaces the proxy's file in the middle of a run.
func (s *site) renewal(t *testing.T) {
	text := require.File(t, s.Proxy)
	file := gridcerttest.WriteFile(t, 0o600, "x509up", text)
	m := newMethod(t, storage.Credentials{From: storage.Auth{ProxyFile: file, CADir: s.CADir}})
	now := time.Now()
	m.clock = func() time.Time { return now }
	require.NoError(t, s.works(m, "localhost", nil))
	first := m.current(t)
	another, err := s.ProxyFor(time.Hour)
	require.NoError(t, err)
	require.NoError(t, os.Rename(another, file))
	if err := s.works(m, "localhost", nil); err != nil || m.current(t) != first {
		t.Errorf("within the second: %v, read again: %v", err, m.current(t) != first)
	}
	now = now.Add(time.Second)
	if err := s.works(m, "localhost", nil); err != nil || m.current(t) == first {
		t.Errorf("after a second: %v, read again: %v", err, m.current(t) != first)
	}
}
