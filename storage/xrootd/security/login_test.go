package security_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
)

// wants checks the result of a login: want is part of the error or of its hint; "" means that the
// login must have succeeded.
func wants(t *testing.T, name, hint string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v (%s)", name, err, hint)
	case want != "" && err == nil:
		t.Errorf("%s: the login worked, want an error with %q", name, want)
	case want != "" && !strings.Contains(err.Error()+" "+hint, want):
		t.Errorf("%s: error %q (%s), want one with %q", name, err, hint, want)
	case want != "":
		t.Logf("%s: %v (%s)", name, err, hint)
	}
}

func TestLoginUnix(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{Auth: "unix"})
	for name, test := range map[string]struct {
		cred storage.Credentials
		want string
	}{
		"by the lab's settings": {credentials(t, s, nil), ""},
		"not stated":            {storage.Credentials{}, ""},
		"another user":          {storage.Credentials{Method: "unix", User: "somebody"}, ""},
		"none":                  {storage.Credentials{Method: "none"}, "the server takes unix; weir has no credentials: set auth.method: unix"},
		"a token only":          {storage.Credentials{Method: "token", Token: "t"}, "the server takes unix; we have ztn: set auth.method: unix"},
	} {
		hint, err := login(t.Context(), s, methods(t, test.cred))
		wants(t, name, hint, err, test.want)
		if test.want != "" && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: error %v is no denial", name, err)
		}
	}
}

func TestLoginKerberos(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{Auth: "krb5"})
	expired, err := s.TicketFor(t.Context(), 0)
	require.NoError(t, err)
	for name, test := range map[string]struct {
		change func(*storage.Auth)
		want   string
	}{
		"keytab":              {nil, ""},
		"keytab, first in it": {func(a *storage.Auth) { a.User = "" }, ""},
		"ticket cache":        {func(a *storage.Auth) { a.KeytabFile, a.TicketFile = "", s.TicketCache }, ""},
		"expired ticket":      {func(a *storage.Auth) { a.KeytabFile, a.TicketFile = "", expired }, "expired at 20"},
		"unix": {func(a *storage.Auth) { a.Method, a.KeytabFile = "unix", "" }, "the server takes krb5; we have unix: " +
			"set auth.method: krb5"},
	} {
		hint, err := login(t.Context(), s, methods(t, credentials(t, s, test.change)))
		wants(t, name, hint, err, test.want)
		if test.want != "" && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: error %v is no denial", name, err)
		}
	}
}

// TestLoginsTogether tests the server's replay cache with many clients that log in at once.
func TestLoginsTogether(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{Auth: "krb5"})
	m := methods(t, credentials(t, s, nil))
	const clients, each = 200, 3
	start := make(chan struct{})
	var wait sync.WaitGroup
	for range clients {
		wait.Go(func() {
			<-start
			for range each {
				if hint, err := login(t.Context(), s, m); err != nil {
					t.Errorf("%v (%s)", err, hint)
					return
				}
			}
		})
	}
	began := time.Now()
	close(start)
	wait.Wait()
	t.Logf("%d logins in %s", clients*each, time.Since(began).Round(time.Millisecond))
}

// TestLoginForeignTicket checks that a server with another identity than the KDC's refuses, and
// that the hint names the client's identity.
func TestLoginForeignTicket(t *testing.T) {
	one := labtest.Start(t, lab.XRootDConfig{Auth: "krb5"})
	two := labtest.Start(t, lab.XRootDConfig{Auth: "krb5"})
	hint, err := login(t.Context(), two, methods(t, credentials(t, one, nil)))
	wants(t, "ticket of another KDC", hint, err, "the client was ada@WEIR.TEST with a ticket for xrootd/localhost@WEIR.TEST")
}

func TestLoginToken(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{Auth: "ztn"})
	file := func(text string, err error) func(*storage.Auth) {
		t.Helper()
		require.NoError(t, err)
		return func(a *storage.Auth) { a.TokenFile = text }
	}
	broken, err := s.BrokenToken()
	require.NoError(t, err)
	brokenFile := t.TempDir() + "/broken"
	require.NoError(t, os.WriteFile(brokenFile, []byte(broken), 0o600))
	for name, test := range map[string]struct {
		change func(*storage.Auth)
		want   string
	}{
		"token":            {nil, ""},
		"not stated":       {func(a *storage.Auth) { a.Method = "" }, ""},
		"short-lived":      {file(s.TokenFor(time.Minute, "storage.read:/")), ""},
		"expired":          {file(s.TokenFor(0, "")), "the token expired at 20"},
		"broken signature": {file(brokenFile, nil), "the server says"},
	} {
		hint, err := login(t.Context(), s, methods(t, credentials(t, s, test.change)))
		wants(t, name, hint, err, test.want)
	}
}

// TestLoginTokenRefreshed checks that a token file that is replaced during a run is used from then
// on.
func TestLoginTokenRefreshed(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{Auth: "ztn"})
	file, err := s.TokenFor(0, "")
	require.NoError(t, err)
	m := methods(t, credentials(t, s, func(a *storage.Auth) { a.TokenFile = file }))
	hint, err := login(t.Context(), s, m)
	wants(t, "expired", hint, err, "the token expired at")
	fresh, err := s.Token(time.Hour, "")
	if err == nil {
		err = os.WriteFile(file, []byte(fresh), 0o600)
	}
	require.NoError(t, err)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		if _, err = login(t.Context(), s, m); err == nil {
			return
		}
		<-tick.C
	}
	t.Errorf("after the file was replaced: %v", err)
}
