package ftp

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/storage"
	"weir/storage/gridcert/gridcerttest"
	"weir/storage/storagetest"
)

// TestGSIRefusals checks that a fault on either side leads to one error of one class, with a
// description of the fault.
func TestGSIRefusals(t *testing.T) {
	g, _ := gridTarget(t, nil)
	expired, err := g.ProxyFor(-time.Minute)
	require.NoError(t, err)
	_, wrong, err := g.WrongCA()
	require.NoError(t, err)
	stranger := gridcerttest.Member(t, gridcerttest.NewCA(t, "Stranger")).From
	for name, c := range map[string]struct {
		change func(*storage.Auth)
		url    string
		says   string
	}{
		"unknown authority":              {change: func(a *storage.Auth) { a.CADir = stranger.CADir }, says: "unknown certificate authority"},
		"another authority of that name": {change: func(a *storage.Auth) { a.CADir = wrong }, says: "authorities: " + wrong},
		"another host": {url: strings.Replace(g.URL, "localhost", "127.0.0.2", 1), says: "for localhost, localhost, " +
			"127.0.0.1, not for 127.0.0.2"},
		"a proxy that the server refuses":  {change: func(a *storage.Auth) { a.ProxyFile = stranger.ProxyFile }, says: "530"},
		"an account that it is not for":    {change: func(a *storage.Auth) { a.User = "root" }, says: "530"},
		"a proxy that expires before this": {change: func(a *storage.Auth) { a.ProxyFile = expired }, says: "expired at"},
	} {
		t.Run(name, func(t *testing.T) {
			url := g.URL
			if c.url != "" {
				url = listenAs(t, c.url, g.URL)
			}
			s, err := open(storagetest.TargetOf(t, url, gridCred(t, g, c.change)))
			if err == nil {
				client := s.Client()
				_, err = client.Do(t.Context(), &storage.Op{Kind: storage.Login, Timeout: time.Minute}, &quiet{})
				if cerr := errors.Join(client.Close(), s.Close()); cerr != nil {
					t.Error(cerr)
				}
			}
			if storage.Classify(err) != storage.Denied || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v (%s), want it denied with %q", err, storage.Classify(err), c.says)
			}
		})
	}
}

// listenAs forwards one connection from the host of url, another name of this machine, to a server,
// and returns the URL to use.
func listenAs(t *testing.T, url, server string) string {
	t.Helper()
	u, to := storagetest.TargetOf(t, url, storage.Credentials{}).URL, storagetest.TargetOf(t, server, storage.Credentials{}).URL
	l, err := net.Listen("tcp", u.Hostname()+":0")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // it also ends with its only connection
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		d, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", to.Port()))
		if err != nil {
			return
		}
		defer d.Close()
		go func() { _, _ = bufio.NewReader(d).WriteTo(c) }() // until either side ends
		_, _ = bufio.NewReader(c).WriteTo(d)
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// TestGSINonsense checks that servers that violate the protocol lead to an error, and that no
// client waits for them.
func TestGSINonsense(t *testing.T) {
	cred := gridcerttest.Member(t, gridcerttest.NewCA(t, "Nonsense"))
	token := func(b string) string { return "335 ADAT=" + base64.StdEncoding.EncodeToString([]byte(b)) + "\r\n" }
	for name, c := range map[string]struct {
		auth, adat string
		class      storage.Class
		says       string
	}{
		"no GSI":                  {"500 AUTH not understood\r\n", "", storage.Other, "use an ftp:// URL"},
		"other mechanisms only":   {"504 Unknown mechanism\r\n", "", storage.Other, "use an ftp:// URL"},
		"no reply to AUTH":        {"200 fine\r\n", "", storage.Other, "200"},
		"no token":                {"", "335 well\r\n", storage.Other, "unexpected reply 335"},
		"empty token":             {"", "335 ADAT=\r\n", storage.Other, "an empty token"},
		"authenticated too early": {"", "235 ADAT=AAAA\r\n", storage.Other, "unexpected reply 235"},
		"not base64":              {"", "335 ADAT=*%&\r\n", storage.Other, "not base64"},
		"base64 cut off":          {"", "335 ADAT=AAA\r\n", storage.Other, "not base64"},
		"no TLS":                  {"", token("hello, how are you?"), storage.Other, "TLS handshake"},
		"a record cut off":        {"", token("\x16\x03\x03\x40\x00\x02\x00"), storage.Other, "TLS handshake"},
		"a record of nothing":     {"", token("\x16\x03\x03\x00\x00"), storage.Other, "TLS handshake"},
		"an alert":                {"", token("\x15\x03\x03\x00\x02\x02\x30"), storage.Denied, "unknown certificate authority"},
		"giant token":             {"", "335 ADAT=" + endless("A") + "\r\n", storage.Other, "more than 65536 bytes"},
		"giant lines":             {"", "335-ADAT=AAAA\r\n" + endless("AAAA\r\n") + "335 end\r\n", storage.Other, "more than 65536 bytes"},
		"refused":                 {"", "535 Authentication failed: no such user\r\n", storage.Denied, "535 Authentication failed"},
		"busy":                    {"", "421 Too many connections\r\n", storage.Busy, "421"},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string]string{"AUTH": c.auth, "ADAT": c.adat}
			if c.auth == "" {
				answers["AUTH"] = "334 go on\r\n"
			}
			s := serviceAt(t, "gsiftp://"+impostor{answers: answers}.start(t), cred)
			client := s.Client()
			defer client.Close()
			_, err := client.Do(t.Context(), &storage.Op{Kind: storage.Login, Timeout: 20 * time.Second}, &quiet{})
			if got := storage.Classify(err); got != c.class || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v (%s), want %s with %q", err, got, c.class, c.says)
			}
		})
	}
}

// TestCredentialsOfGrid checks that invalid credentials are reported before the network is touched.
func TestCredentialsOfGrid(t *testing.T) {
	cred := gridcerttest.Member(t, gridcerttest.NewCA(t, "Credentials"))
	for says, change := range map[string]func(*storage.Credentials){
		"does not exist":    func(c *storage.Credentials) { c.From.ProxyFile = filepath.Join(t.TempDir(), "none") },
		"x509 only":         func(c *storage.Credentials) { c.Method = storage.BasicAuth },
		"auth.data_channel": func(c *storage.Credentials) { c.From.DataChannel = "secret" },
		"characters":        func(c *storage.Credentials) { c.User = "a\r\nDELE b" },
	} {
		own := cred
		change(&own)
		if _, err := open(storagetest.TargetOf(t, "gsiftp://h/", own)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

// TestDerived checks that a data server has to present a proxy that descends from the client's.
func TestDerived(t *testing.T) {
	ca := gridcerttest.NewCA(t, "Derived")
	user := ca.User(t)
	proxy := user.Proxy(t, time.Now().Add(time.Hour))
	s := &grid{}
	if s.encrypts() {
		t.Error("the zero value encrypts")
	}
	cred := storage.Credentials{From: storage.Auth{ProxyFile: gridcerttest.ProxyFile(t, proxy, user), CADir: gridcerttest.CADir(t, ca)}}
	g, err := newGrid(storage.Target{Cred: cred})
	require.NoError(t, err)
	id, err := g.source.Current(time.Now())
	require.NoError(t, err)
	first := proxy.Proxy(t, time.Now().Add(time.Hour))
	second := first.Proxy(t, time.Now().Add(time.Hour))
	foreign := user.Proxy(t, time.Now().Add(time.Hour)).Proxy(t, time.Now().Add(time.Hour))
	der := func(all ...gridcerttest.Pair) (shown [][]byte) {
		for _, p := range all {
			shown = append(shown, p.Cert.Raw)
		}
		return shown
	}
	for name, c := range map[string]struct {
		shown [][]byte
		fine  bool
	}{
		"delegated": {der(first, proxy, user), true}, "delegated twice": {der(second, first, proxy, user), true},
		"our own":                              {der(proxy, user), true},
		"a proxy of the user that is not ours": {der(foreign, user), false}, "the same, with ours beside it": {der(foreign, proxy, user), false},
		"the user": {der(user), false}, "a link is missing": {der(second, proxy), false},
	} {
		if err := derived(c.shown, id); (err == nil) != c.fine || err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzToken sends arbitrary responses to ADAT. Each session must end in an error of a known kind,
// and read no more bytes than were sent.
func FuzzToken(f *testing.F) {
	for _, seed := range []string{"", "AAAA", "FgMDAAA=", base64.StdEncoding.EncodeToString([]byte("\x15\x03\x03\x00\x02\x02\x30")), "=",
		"*"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		token, err := appendToken(nil, text)
		if err != nil {
			if !errors.Is(err, storage.ErrProtocol) {
				t.Fatalf("an error of no known kind: %v", err)
			}
			return
		}
		asked := 0
		p := &tokens{exchange: func([]byte) ([]byte, error) {
			if asked++; asked > 1 {
				return nil, fs.ErrPermission
			}
			return token, nil
		}}
		c := tls.Client(p, &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, InsecureSkipVerify: true})
		err = handshakeError(c.Handshake())
		if !errors.Is(err, storage.ErrProtocol) && !errors.Is(err, fs.ErrPermission) {
			t.Fatalf("an error of no known kind: %v", err)
		}
		ch := &channel{tls: c}
		if plain, err := ch.unprotect(nil, token); err == nil && len(plain) > len(token) {
			t.Fatalf("%d bytes of a token of %d", len(plain), len(token))
		}
		next := [][]byte{token}
		read := func(b []byte) (int, error) {
			if len(next) == 0 {
				return 0, fs.ErrClosed
			}
			n := copy(b, next[0])
			next[0] = next[0][n:]
			if len(next[0]) == 0 {
				next = nil
			}
			return n, nil
		}
		if der, err := readDER(read); err == nil {
			if !bytes.HasPrefix(token, der) {
				t.Fatalf("%x of %x", der, token)
			}
		}
	})
}
