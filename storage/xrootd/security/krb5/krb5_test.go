package krb5_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"weir/internal/require"
	"weir/storage/xrootd/security/krb5"
)

// judge verifies a request like a service, and returns its sender and the authenticator's time.
func judge(t testing.TB, request []byte, file string) (string, time.Time) {
	t.Helper()
	kt, err := keytab.Load(file)
	require.NoError(t, err)
	var r messages.APReq
	require.NoError(t, r.Unmarshal(request))
	if ok, err := r.Verify(kt, time.Minute, types.HostAddress{}, nil); !ok {
		t.Fatalf("the service does not take the request: %v", err)
	}
	return r.Authenticator.CName.PrincipalNameString() + "@" + r.Authenticator.CRealm,
		r.Authenticator.CTime.Add(time.Duration(r.Authenticator.Cusec) * time.Microsecond)
}

func open(t testing.TB, c krb5.Config) *krb5.Client {
	t.Helper()
	k, err := krb5.Open(c)
	require.NoError(t, err)
	return k
}

func TestRequest(t *testing.T) {
	k := startKDC(t)
	withService := k.ticket()
	k.run("kvno", "-c", "FILE:"+withService, service)
	for name, test := range map[string]struct {
		config  krb5.Config
		user    string
		service string
		keytab  string
	}{
		"keytab, preauthentication": {krb5.Config{KeytabFile: k.file("ada.keytab")}, "ada@WEIR.TEST", service, "xrootd-localhost.keytab"},
		"keytab, none": {krb5.Config{KeytabFile: k.file("bob.keytab"), User: "bob"}, "bob@WEIR.TEST", service,
			"xrootd-localhost.keytab"},
		"ticket cache": {krb5.Config{TicketFile: k.ticket()}, "ada@WEIR.TEST", service, "xrootd-localhost.keytab"},
		"ticket cache with FILE:": {krb5.Config{TicketFile: "FILE:" + k.ticket(), User: "ada@WEIR.TEST"}, "ada@WEIR.TEST", service,
			"xrootd-localhost.keytab"},
		"ticket cache with the service's": {krb5.Config{TicketFile: withService}, "ada@WEIR.TEST", service, "xrootd-localhost.keytab"},
		"service without its realm": {krb5.Config{KeytabFile: k.file("ada.keytab")}, "ada@WEIR.TEST", "xrootd/localhost",
			"xrootd-localhost.keytab"},
		"service of another realm": {krb5.Config{KeytabFile: k.file("ada.keytab")}, "ada@WEIR.TEST", abroad, "abroad.keytab"},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.Krb5File = k.conf
			c := open(t, test.config)
			request, err := c.Request(t.Context(), test.service)
			require.NoError(t, err)
			if who, _ := judge(t, request, k.file(test.keytab)); who != test.user || c.User() != test.user {
				t.Errorf("the request is of %s, the client of %s, want %s", who, c.User(), test.user)
			}
			if left := time.Until(c.Until(test.service)); left < time.Hour || left > 11*time.Hour {
				t.Errorf("the ticket is good for %s, want about 10h", left)
			}
		})
	}
}

// TestEncryptions checks the session keys of all encryption types that we request.
func TestEncryptions(t *testing.T) {
	k := startKDC(t)
	conf := require.File(t, k.conf)
	for name, id := range map[string]int32{
		"aes256-cts-hmac-sha1-96": 18, "aes128-cts-hmac-sha1-96": 17, "aes256-cts-hmac-sha384-192": 20, "aes128-cts-hmac-sha256-128": 19,
	} {
		k.admin(realm, "setstr "+service+" session_enctypes "+name)
		own := strings.Replace(string(conf), "[libdefaults]\n", "[libdefaults]\n default_tgs_enctypes = "+name+"\n", 1)
		c := open(t, krb5.Config{KeytabFile: k.file("ada.keytab"), Krb5File: k.write("own.conf", own)})
		request, err := c.Request(t.Context(), service)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		judge(t, request, k.file("xrootd-localhost.keytab"))
		var r messages.APReq
		if err := r.Unmarshal(request); err != nil || r.EncryptedAuthenticator.EType != id {
			t.Errorf("%s: the session key is of type %d (%v)", name, r.EncryptedAuthenticator.EType, err)
		}
	}
}

// TestRequestsTogether runs many concurrent requests: the KDC receives one request, and all times
// are different.
func TestRequestsTogether(t *testing.T) {
	k := startKDC(t)
	c := open(t, krb5.Config{KeytabFile: k.file("ada.keytab"), Krb5File: k.conf})
	const clients, each = 50, 20
	requests := make(chan []byte, clients*each)
	var wait sync.WaitGroup
	for range clients {
		wait.Go(func() {
			for range each {
				r, err := c.Request(t.Context(), service)
				if err != nil {
					t.Error(err)
					return
				}
				requests <- r
			}
		})
	}
	wait.Wait()
	close(requests)
	times := map[time.Time]bool{}
	tickets := map[string]bool{}
	for b := range requests {
		_, at := judge(t, b, k.file("xrootd-localhost.keytab"))
		times[at] = true
		var r messages.APReq
		require.NoError(t, r.Unmarshal(b))
		tickets[string(r.Ticket.EncPart.Cipher)] = true
	}
	if len(times) != clients*each || len(tickets) != 1 {
		t.Errorf("%d requests have %d different times and %d tickets, want as many times and 1 ticket", clients*each, len(times), len(tickets))
	}
}

func TestRefused(t *testing.T) {
	k := startKDC(t)
	stale := k.file("stale.keytab")
	copyFile(t, k.file("ada.keytab"), stale)
	k.admin(realm, "addprinc -randkey carol")
	k.admin(realm, "ktadd -k "+k.file("carol.keytab")+" carol")
	k.admin(realm, "delprinc -force carol")
	k.admin(realm, "cpw -randkey ada")
	k.admin(realm, "ktadd -norandkey -k "+k.file("ada.keytab")+" ada")
	k.admin(realm, "addprinc -randkey -allow_tix dave")
	k.admin(realm, "ktadd -norandkey -k "+k.file("dave.keytab")+" dave")
	expired := k.ticket("-l", "1s")
	for name, test := range map[string]struct {
		config  krb5.Config
		service string
		want    string
	}{
		"changed key":  {krb5.Config{KeytabFile: stale}, service, "was changed since"},
		"unknown user": {krb5.Config{KeytabFile: k.file("carol.keytab")}, service, "does not know carol@WEIR.TEST"},
		"locked user":  {krb5.Config{KeytabFile: k.file("dave.keytab")}, service, "locked or expired"},
		"unknown service": {krb5.Config{KeytabFile: k.file("ada.keytab")}, "xrootd/elsewhere@WEIR.TEST",
			"does not know the service xrootd/elsewhere@WEIR.TEST"},
		"unknown realm": {krb5.Config{KeytabFile: k.file("ada.keytab")}, "xrootd/localhost@NOWHERE.TEST",
			"does not know the service xrootd/localhost@NOWHERE.TEST"},
		"nonsense":       {krb5.Config{KeytabFile: k.file("ada.keytab")}, "x y/z", "as which the server presents itself"},
		"expired ticket": {krb5.Config{TicketFile: expired}, service, "expired at 20"},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.Krb5File = k.conf
			c := open(t, test.config)
			if name == "expired ticket" {
				waitUntil(t, time.Now().Add(1100*time.Millisecond))
			}
			_, err := c.Request(t.Context(), test.service)
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q, want a denial with %q", err, test.want)
			}
			t.Log(err)
		})
	}
}

// waitUntil waits for a time of a ticket, which is a time of the KDC's clock.
func waitUntil(t *testing.T, when time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(when)):
	case <-t.Context().Done():
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	require.NoError(t, err)
}

// TestRenewal checks that a ticket valid for seconds is renewed by later requests, and a ticket
// from a cache after kinit.
func TestRenewal(t *testing.T) {
	k := startKDC(t)
	k.admin(realm, "modprinc -maxlife 3s ada")
	cache := k.ticket()
	fromKeytab := open(t, krb5.Config{KeytabFile: k.file("ada.keytab"), Krb5File: k.conf})
	fromCache := open(t, krb5.Config{TicketFile: cache, Krb5File: k.conf})
	for _, c := range []*krb5.Client{fromKeytab, fromCache} {
		if _, err := c.Request(t.Context(), service); err != nil {
			t.Fatal(err)
		}
	}
	first := fromKeytab.Until(service)
	waitUntil(t, first.Add(500*time.Millisecond))
	if _, err := fromCache.Request(t.Context(), service); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("with an expired cache: error %v, want a denial", err)
	}
	copyFile(t, k.ticket(), cache)
	for _, c := range []*krb5.Client{fromKeytab, fromCache} {
		request, err := c.Request(t.Context(), service)
		require.NoError(t, err)
		judge(t, request, k.file("xrootd-localhost.keytab"))
		if !c.Until(service).After(first) {
			t.Errorf("the ticket ends at %s, as the first one (%s) did", c.Until(service), first)
		}
	}
}

// TestSilentKDC checks that a KDC that accepts the connection and sends nothing does not delay a
// request beyond its own timeout, and that a KDC that does not listen causes no delay.
func TestSilentKDC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	k := &kdc{t: t, dir: t.TempDir()}
	c := open(t, krb5.Config{KeytabFile: fakeKeytab(t), Krb5File: k.write("krb5.conf", k.config(l.Addr().String()))})
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, err := c.Request(ctx, service); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want that the time is over", err)
			}
		})
	}
	wait.Wait()
	if !testing.Short() { // a request without a deadline ends as well
		if _, err := c.Request(t.Context(), service); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "does not answer") {
			t.Errorf("error %v, want that the KDC does not answer in time", err)
		}
	}
	require.NoError(t, l.Close())
	_, err = c.Request(t.Context(), service)
	if err == nil || errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("error %v, want that the KDC does not answer", err)
	}
	t.Log(err)
}

// fakeKeytab returns a keytab with a key of ada that no KDC has.
func fakeKeytab(t testing.TB) string {
	t.Helper()
	kt := keytab.New()
	require.NoError(t, kt.AddEntry("ada", realm, "secret", time.Now(), 1, 18))
	b, err := kt.Marshal()
	require.NoError(t, err)
	file := t.TempDir() + "/fake.keytab"
	require.NoError(t, os.WriteFile(file, b, 0o600))
	return file
}

func BenchmarkRequest(b *testing.B) {
	k := startKDC(b)
	c := open(b, krb5.Config{KeytabFile: k.file("ada.keytab"), Krb5File: k.conf})
	if _, err := c.Request(b.Context(), service); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Request(b.Context(), service); err != nil {
			b.Fatal(err)
		}
	}
}

// answering starts a KDC that sends the same bytes to every client.
func answering(t *testing.T, reply []byte) *krb5.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write(reply)
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wait.Wait()
	})
	k := &kdc{t: t, dir: t.TempDir()}
	return open(t, krb5.Config{KeytabFile: fakeKeytab(t), Krb5File: k.write("krb5.conf", k.config(l.Addr().String()))})
}

// TestStrangeKDC sends responses of a KDC that have no ticket. A clock of this machine cannot be
// wrong on purpose, so the refusal for a wrong clock is created here.
func TestStrangeKDC(t *testing.T) {
	skewed := messages.NewKRBError(types.NewPrincipalName(2, "krbtgt/"+realm), realm, 37, "")
	skewed.STime = time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	refusal, err := skewed.Marshal()
	require.NoError(t, err)
	login, err := os.ReadFile("testdata/login") // encrypted for another key
	require.NoError(t, err)
	framed := func(b []byte) []byte { return append([]byte{0, 0, byte(len(b) >> 8), byte(len(b))}, b...) }
	for name, test := range map[string]struct {
		reply []byte
		class error
		want  string
	}{
		"clocks differ":     {framed(refusal), fs.ErrPermission, "clocks of this machine and of the KDC differ by 1h0m"},
		"another's ticket":  {framed(login), fs.ErrPermission, "is its key of ada@WEIR.TEST outdated?"},
		"2 GiB announced":   {[]byte{0x7f, 0xff, 0xff, 0xff}, nil, "this is no KDC"},
		"nothing announced": {[]byte{0, 0, 0, 0}, nil, "this is no KDC"},
		"web server":        {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), nil, "this is no KDC"},
		"cut off":           {framed(login)[:100], io.ErrUnexpectedEOF, "does not answer"},
		"half a refusal":    {framed(refusal[:20]), nil, "unmarshal"},
		"nonsense":          {framed([]byte("nonsense")), fs.ErrPermission, "cannot be read"},
	} {
		_, err := answering(t, test.reply).Request(t.Context(), service)
		if err == nil || !strings.Contains(err.Error(), test.want) || test.class != nil && !errors.Is(err, test.class) {
			t.Errorf("%s: error %v, want %v with %q", name, err, test.class, test.want)
		}
		t.Log(err)
	}
}

func TestWrongUser(t *testing.T) {
	k := startKDC(t)
	for want, c := range map[string]krb5.Config{
		"the keytab has no key of eve@WEIR.TEST, but of ada@WEIR.TEST: set auth.user": {KeytabFile: k.file("ada.keytab"), User: "eve"},
		"is of ada@WEIR.TEST and auth.user is eve@WEIR.TEST":                          {TicketFile: k.ticket(), User: "eve"},
		"is no Kerberos principal":                                                    {KeytabFile: k.file("ada.keytab"), User: "e v e"},
	} {
		c.Krb5File = k.conf
		if _, err := krb5.Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
