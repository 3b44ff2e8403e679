package security

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"weir/internal/require"
	"weir/storage"
	"weir/storage/xrootd/security/krb5"
)

func TestNew(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "krb5.conf")
	require.NoError(t, os.WriteFile(conf, []byte("[libdefaults]\n"), 0o600))
	missing := filepath.Join(t.TempDir(), "missing")
	for name, test := range map[string]struct {
		cred storage.Credentials
		want string // names of the methods, or part of the error
	}{
		"none":               {storage.Credentials{Method: "none", Token: "t"}, ""},
		"unix, no name":      {storage.Credentials{Method: "unix", User: "a b"}, "want a name of at most 255 bytes without spaces"},
		"unix":               {storage.Credentials{Method: "unix", Token: "t"}, "unix"},
		"token":              {storage.Credentials{Method: "token", Token: "t"}, "ztn"},
		"x509":               {storage.Credentials{Method: "x509"}, ""},
		"not stated":         {storage.Credentials{}, "unix"},
		"not stated, token":  {storage.Credentials{Token: "t"}, "unix ztn"},
		"token without":      {storage.Credentials{Method: "token"}, "set auth.token_file or auth.token_variable"},
		"token of two lines": {storage.Credentials{Method: "token", Token: "a\nb"}, "is it one line"},
		"huge token":         {storage.Credentials{Method: "token", Token: strings.Repeat("a", 70000)}, "65534 are the most"},
		"basic":              {storage.Credentials{Method: "basic"}, "use none, unix, krb5, x509 or token"},
		"krb5 without": {storage.Credentials{Method: "krb5", From: storage.Auth{Krb5File: conf, TicketFile: missing}},
			"set auth.ticket_file or auth.keytab_file"},
		"krb5, no keytab": {storage.Credentials{Method: "krb5", From: storage.Auth{Krb5File: conf, KeytabFile: missing}},
			"auth: method krb5: keytab: open " + missing},
		"krb5, no krb5.conf": {storage.Credentials{Method: "krb5", From: storage.Auth{Krb5File: missing}}, "set auth.krb5_file"},
	} {
		all, err := New(test.cred)
		var names []string
		for _, m := range all {
			names = append(names, m.Name())
		}
		if err == nil && strings.Join(names, " ") != test.want || err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, %v, want %q", name, names, err, test.want)
		}
	}
}

// first returns the first message of a method.
func first(t *testing.T, m Method, s Server) string {
	t.Helper()
	e, err := m.Begin(t.Context(), s)
	require.NoError(t, err)
	b, err := e.Next(nil)
	require.NoError(t, err)
	return string(b)
}

func TestUnixMessage(t *testing.T) {
	if got := first(t, Unix("ada"), Server{}); got != "unix\x00ada\x00" {
		t.Errorf("%q", got)
	}
	own := first(t, Unix(""), Server{})
	if parts := strings.Split(own, "\x00"); len(parts) != 3 || parts[1] == "" || parts[2] != "" {
		t.Errorf("%q, want unix, a name, perhaps a group, each ended by a zero", own)
	}
}

func TestTokenMessage(t *testing.T) {
	m, err := Token(storage.Credentials{Token: "abc"})
	require.NoError(t, err)
	if d := cmp.Diff("ztn\x00\x00T\x00\x00\x00\x04abc\x00", first(t, m, Server{Secure: true, Parameters: "0:4096:"})); d != "" {
		t.Error(d)
	}
	for name, test := range map[string]struct {
		server Server
		class  error
		want   string
	}{
		"in the clear":  {Server{Parameters: "0:4096:"}, fs.ErrPermission, "use roots://"},
		"too long":      {Server{Secure: true, Parameters: "0:3:"}, fs.ErrPermission, "the server takes fewer than 3"},
		"no parameters": {Server{Secure: true}, storage.ErrProtocol, "malformed"},
		"no size":       {Server{Secure: true, Parameters: "0:"}, storage.ErrProtocol, "malformed"},
		"no end":        {Server{Secure: true, Parameters: "0:4096"}, storage.ErrProtocol, "malformed"},
		"negative":      {Server{Secure: true, Parameters: "0:-1:"}, storage.ErrProtocol, "malformed"},
	} {
		_, err := m.Begin(t.Context(), test.server)
		if !errors.Is(err, test.class) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %v with %q", name, err, test.class, test.want)
		}
	}
}

// TestTokenFile checks that a changed file is read again, at most once a second, and that a file
// without a valid token leaves the old token in use.
func TestTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	set := func(text string, at time.Time) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(file, at, at))
	}
	synctest.Test(t, func(t *testing.T) {
		set("one\n", time.Unix(1, 0))
		auth := storage.Auth{Method: "token", TokenFile: file}
		cred, err := auth.Read()
		require.NoError(t, err)
		m, err := Token(cred)
		require.NoError(t, err)
		for i, step := range []struct {
			text  string
			sleep time.Duration
			want  string
		}{
			{"one", 0, "one"},
			{"two", 500 * time.Millisecond, "one"},
			{"two", 600 * time.Millisecond, "two"},
			{" \n", 2 * time.Second, "two"},
			{"thr\x00ee", 2 * time.Second, "two"},
			{"four", 2 * time.Second, "four"},
		} {
			set(step.text, time.Unix(int64(10+i), 0))
			time.Sleep(step.sleep) // of the bubble's clock
			if got := first(t, m, Server{Secure: true, Parameters: "0:4096:"})[10:]; got != step.want+"\x00" {
				t.Errorf("step %d: %q, want %q", i, got, step.want)
			}
		}
		require.NoError(t, os.Remove(file))
		time.Sleep(2 * time.Second)
		if got := first(t, m, Server{Secure: true, Parameters: "0:4096:"})[10:]; got != "four\x00" {
			t.Errorf("without the file: %q", got)
		}
	})
}

func TestExpiry(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	jwt := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
	}
	for token, want := range map[string]string{
		jwt(`{"exp":1767322800}`):                  "the token expired at 2026-01-02T03:00:00Z",
		jwt(`{"exp":1767322800.5,"nbf":1}`):        "the token expired at 2026-01-02T03:00:00Z",
		jwt(`{"exp":1767999999}`):                  "",
		jwt(`{"exp":1767999999,"nbf":1767990000}`): "the token is not valid before 2026-01-09T20:20:00Z",
		jwt(`{"exp":1e300}`):                       "",
		jwt(`{"exp":"soon"}`):                      "",
		jwt(`[`):                                   "",
		"opaque":                                   "",
		"a.!.c":                                    "",
	} {
		if got := expiry(token, now); got != want {
			t.Errorf("%s: %q, want %q", token, got, want)
		}
	}
}

// TestKerberosParameters checks parameters that a server may send instead of its principal.
func TestKerberosParameters(t *testing.T) {
	dir := t.TempDir()
	kt := keytab.New()
	require.NoError(t, kt.AddEntry("ada", "A.ORG", "secret", time.Now(), 1, 18))
	keys, err := kt.Marshal()
	require.NoError(t, err)
	for name, text := range map[string][]byte{"keytab": keys, "krb5.conf": []byte("[libdefaults]\ndns_lookup_kdc = no\n")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	m, err := Kerberos(krb5.Config{KeytabFile: filepath.Join(dir, "keytab"), Krb5File: filepath.Join(dir, "krb5.conf")})
	require.NoError(t, err)
	for parameters, want := range map[string]string{
		"":                 "does not say which service it is",
		"  ,fwd":           "does not say which service it is",
		"a/b@A.ORG,fwd":    "wants our ticket itself",
		"a//b@A.ORG":       "a part of the name is empty",
		"@":                "is no Kerberos principal",
		"\x1b[2J@A.ORG":    "is no Kerberos principal",
		" xrootd/b@A.ORG":  "has no KDC of realm A.ORG",
		"xrootd/b@OTHER.B": "has no KDC of realm A.ORG",
	} {
		if _, err := m.Begin(t.Context(), Server{Parameters: parameters}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", parameters, err, want)
		}
	}
}
