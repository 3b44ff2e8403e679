package krb5

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"weir/internal/require"
)

func write(t *testing.T, file, text string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestSettings(t *testing.T) {
	dir := t.TempDir()
	more := filepath.Join(dir, "more.d")
	require.NoError(t, os.Mkdir(more, 0o700))
	write(t, filepath.Join(more, "site.conf"), "[realms]\nSITE.ORG = {\n kdc = kdc1.site.org\n kdc = tcp/[::1]:750\n}\n")
	write(t, filepath.Join(more, "left.out~"), "nonsense")
	write(t, filepath.Join(dir, "extra"), "[domain_realm]\n .far.org = FAR.ORG\n")
	main := write(t, filepath.Join(dir, "krb5.conf"), `# a comment
include `+filepath.Join(dir, "extra")+`
includedir `+more+`
includedir /nowhere/at/all
[libdefaults]
	default_realm = "EXAMPLE.ORG"
	ticket_lifetime = 1d2h
	clockskew = 60
	dns_lookup_kdc = no
	default_tgs_enctypes = aes256-cts camellia256-cts-cmac
[realms]
	EXAMPLE.ORG = {
		kdc = 10.0.0.1:88*
		auth_to_local_names = {
			kdc = not-a-host
		}
		admin_server = a.example.org
	}
[domain_realm]
	Host.Example.org = EXAMPLE.ORG
[appdefaults]
	pam = { 
	}
`)
	s, err := readSettings(filepath.Join(dir, "missing") + ":" + main)
	require.NoError(t, err)
	l := s.lib.LibDefaults
	got := map[string]any{
		"realm": l.DefaultRealm, "life": l.TicketLifetime, "skew": l.Clockskew, "dns": s.dns,
		"login": l.DefaultTktEnctypeIDs, "grant": l.DefaultTGSEnctypeIDs, "kdcs": s.kdcs,
		"host": s.realmOf("HOST.example.org.", "-"), "domain": s.realmOf("a.b.far.org", "-"), "elsewhere": s.realmOf("x.org", "-"),
	}
	want := map[string]any{
		"realm": "EXAMPLE.ORG", "life": 26 * time.Hour, "skew": time.Minute, "dns": false,
		"login": []int32{18, 17, 20, 19, 23}, "grant": []int32{18},
		"kdcs": map[string][]string{"EXAMPLE.ORG": {"10.0.0.1:88"}, "SITE.ORG": {"kdc1.site.org:88", "[::1]:750"}},
		"host": "EXAMPLE.ORG", "domain": "FAR.ORG", "elsewhere": "-",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := s.servers(t.Context(), "NONE.ORG"); err == nil || !strings.Contains(err.Error(), "has no KDC of realm NONE.ORG") {
		t.Errorf("error %v", err)
	}
}

func TestSettingsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"[realms]\nA = {\nkdc = b\n":                           "A = { is not closed",
		"[realms]\n}\n":                                        "line 2: } closes nothing",
		"kdc = a\n":                                            "line 1",
		"[libdefaults]\nclockskew = soon\n":                    "want a duration",
		"[libdefaults]\nclockskew\n":                           `"clockskew": want`,
		"[libdefaults]\npermitted_enctypes = des\n":            "none is known",
		"include " + filepath.Join(t.TempDir(), "gone") + "\n": "no such file",
	} {
		file := write(t, filepath.Join(t.TempDir(), "krb5.conf"), text)
		if _, err := readSettings(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
	loop := filepath.Join(t.TempDir(), "loop.conf")
	if _, err := readSettings(write(t, loop, "include "+loop+"\n")); err == nil || !strings.Contains(err.Error(), "include each other") {
		t.Errorf("error %v", err)
	}
}

func TestOpenWrong(t *testing.T) {
	dir := t.TempDir()
	conf := write(t, filepath.Join(dir, "krb5.conf"), "[libdefaults]\ndefault_realm = A.ORG\n")
	empty := write(t, filepath.Join(dir, "empty"), "")
	text := write(t, filepath.Join(dir, "text"), "not what it should be")
	for name, test := range map[string]struct {
		config Config
		want   string
	}{
		"no configuration": {Config{Krb5File: dir + "/none"}, "set auth.krb5_file or KRB5_CONFIG"},
		"no keytab":        {Config{Krb5File: conf, KeytabFile: dir + "/none"}, "no such file"},
		"empty keytab":     {Config{Krb5File: conf, KeytabFile: empty}, "no keytab"},
		"text as keytab":   {Config{Krb5File: conf, KeytabFile: text}, "no keytab"},
		"cut keytab": {Config{Krb5File: conf, KeytabFile: write(t, filepath.Join(dir, "cut"), "\x05\x02\x00\x00\x00\x30\x00\x09")},
			"no keytab"},
		"no cache":        {Config{Krb5File: conf, TicketFile: dir + "/none"}, "run kinit, or set auth.ticket_file or auth.keytab_file"},
		"empty cache":     {Config{Krb5File: conf, TicketFile: empty}, "no ticket cache"},
		"text as cache":   {Config{Krb5File: conf, TicketFile: text}, "no ticket cache"},
		"folder as cache": {Config{Krb5File: conf, TicketFile: dir}, "is a directory"},
		"keyring":         {Config{Krb5File: conf, TicketFile: "KEYRING:persistent:0"}, "kinit -c FILE:/path"},
	} {
		if _, err := Open(test.config); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
}

func TestCacheFile(t *testing.T) {
	usual := fmt.Sprintf("/tmp/krb5cc_%d", os.Geteuid())
	_, err := os.Stat(usual)
	there := err == nil // then it comes before the configuration's
	for name, test := range map[string]struct{ given, variable, standard, want string }{
		"given":               {"/a", "/b", "/c", "/a"},
		"variable":            {"", "FILE:/b", "/c", "/b"},
		"configuration":       {"", "", "FILE:/c_%{uid}", fmt.Sprintf("/c_%d", os.Geteuid())},
		"usual":               {"", "", "", usual},
		"colon in its path":   {"/a:b", "", "", "/a:b"},
		"one file of several": {"DIR::/a/tkt1", "", "", "/a/tkt1"},
		"several":             {"DIR:/a", "", "", "auth.ticket_file DIR:/a is no file"},
		"daemon's":            {"", "KCM:", "", "KRB5CCNAME KCM: is no file"},
		"kernel's":            {"", "", "KEYRING:persistent:%{uid}", "default_ccache_name KEYRING:persistent:"},
	} {
		t.Setenv("KRB5CCNAME", test.variable)
		if there && test.given == "" && test.variable == "" {
			test.want = usual
		}
		got, err := cacheFile(test.given, test.standard)
		if err == nil && got != test.want || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %s, %v, want %s", name, got, err, test.want)
		}
	}
}

func TestParsePrincipal(t *testing.T) {
	for text, want := range map[string]string{
		"ada":            "ada@HOME",
		"ada@B":          "ada@B",
		"xrootd/a.b@C.D": "xrootd/a.b@C.D",
		"":               "", "@A": "", "a@": "", "a@b@c": "", "a//b@C": "", "a b@C": "", "a\x00@C": "", "/@C": "",
		strings.Repeat("a", 600): "",
	} {
		p, err := parsePrincipal(text, "HOME")
		if got := p.String(); (err == nil && got != want) || (err != nil) != (want == "") {
			t.Errorf("%q: %s, %v, want %q", text, got, err, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int]string{
		0: "\x02\x01\x00", 127: "\x02\x01\x7f", 128: "\x02\x02\x00\x80", 999999: "\x02\x03\x0f\x42\x3f",
		-128: "\x02\x01\x80", -129: "\x02\x02\xff\x7f",
	} {
		if got := string(derNumber(n)); got != want {
			t.Errorf("%d: % x, want % x", n, got, want)
		}
	}
	for n, want := range map[int]string{
		0: "\x04\x00", 127: "\x04\x7f", 128: "\x04\x81\x80", 255: "\x04\x81\xff", 256: "\x04\x82\x01\x00",
		65535: "\x04\x82\xff\xff", 65536: "\x04\x84\x00\x01\x00\x00",
	} {
		if got := string(der(derOctets, make([]byte, n))); got != want+strings.Repeat("\x00", n) {
			t.Errorf("%d bytes begin with % x, want % x", n, got[:len(got)-n], want)
		}
	}
}

func TestParseCache(t *testing.T) {
	b, err := os.ReadFile("testdata/cache") // of kinit and kvno
	require.NoError(t, err)
	owner, tickets, err := parseCache(b)
	require.NoError(t, err)
	got := []string{owner.String()}
	for _, x := range tickets {
		got = append(got, x.client.String()+" to "+x.service.String()+" for "+x.end.Sub(x.start).String())
	}
	want := []string{"ada@WEIR.TEST", "ada@WEIR.TEST to krbtgt/WEIR.TEST@WEIR.TEST for 5s",
		"ada@WEIR.TEST to xrootd/localhost@WEIR.TEST for 5s"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for n := range len(b) {
		if _, cut, err := parseCache(b[:n]); err == nil && len(cut) == len(tickets) {
			t.Errorf("cut after %d of %d bytes it is read whole", n, len(b))
		}
	}
}

func TestNow(t *testing.T) {
	k := &Client{}
	synctest.Test(t, func(t *testing.T) { // with a clock that stands still
		start := time.Now()
		for i := range 1000 {
			if got := k.now(); !got.Equal(start.Add(time.Duration(i) * time.Microsecond)) {
				t.Fatalf("call %d: %s after the start", i, got.Sub(start))
			}
		}
		k.last.Store(start.Add(time.Hour).UnixMicro())
		if got := k.now(); !got.Equal(start) {
			t.Errorf("after the clock was set back: %s after it", got.Sub(start))
		}
	})
}

func FuzzProfile(f *testing.F) {
	f.Add("[libdefaults]\n default_realm = A\n clockskew = 1d2h\n[realms]\nA = {\n kdc = h:1*\n}\n[domain_realm]\n.a = A\n")
	f.Add("[realms]\nA={\n}\n}\n")
	f.Add("[[[\n=\n}\n{\n= {\n[libdefaults]*\nticket_lifetime=9:9:9\n")
	f.Fuzz(func(t *testing.T, text string) {
		p := profile{}
		if p.add(text, func(string, string) error { return nil }) != nil {
			return
		}
		s, err := p.settings()
		if err != nil {
			return
		}
		if l := s.lib.LibDefaults; l.Clockskew < 0 || l.TicketLifetime < 0 || len(l.DefaultTktEnctypeIDs) == 0 {
			t.Errorf("%+v", l)
		}
	})
}

func FuzzCache(f *testing.F) {
	f.Add([]byte("\x05\x04\x00\x0c\x00\x01\x00\x08\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01A\x00\x00\x00\x03ada"))
	f.Add([]byte("\x05\x03\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01A\x00\x00\x00\x03ada\x00\x00\x00\x01\x7f\xff\xff\xff"))
	real, err := os.ReadFile("testdata/cache") // of kinit and kvno, expired long ago
	require.NoError(f, err)
	f.Add(real)
	f.Fuzz(func(t *testing.T, b []byte) {
		owner, tickets, err := parseCache(b)
		if err != nil {
			return
		}
		if len(owner.name.NameString) == 0 {
			t.Error("a cache of nobody")
		}
		for _, x := range tickets {
			if x.prepare() != nil {
				continue // reported, not sent
			}
			if _, err := x.form.request(time.Unix(1, 999_999_000)); err != nil {
				t.Errorf("worked before: %v", err)
			}
		}
	})
}

// FuzzReply passes arbitrary responses of a KDC to all functions that read them.
func FuzzReply(f *testing.F) {
	for _, name := range []string{"login", "grant", "refusal"} { // answers of a real KDC
		b, err := os.ReadFile("testdata/" + name)
		require.NoError(f, err)
		f.Add(b)
	}
	user := principal{types.NewPrincipalName(1, "ada"), "WEIR.TEST"}
	kt := keytab.New()
	require.NoError(f, kt.AddEntry("ada", user.realm, "secret", time.Unix(1, 0), 1, 18))
	s, err := profile{}.settings()
	require.NoError(f, err)
	k := &Client{settings: s, user: user, login: credentials.NewFromPrincipalName(user.name, user.realm).WithKeytab(kt)}
	granter := &ticket{key: kt.Entries[0].Key}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 0 && b[0] == errorTag && refusal(b) == nil {
			t.Error("a refusal is taken for an answer")
		}
		if _, err := k.openLogin(messages.ASReq{}, b); err == nil {
			t.Error("a login that nobody asked for")
		}
		if _, err := k.openGrant(granter, messages.TGSReq{}, b); err == nil {
			t.Error("a grant that nobody asked for")
		}
		_ = k.prove(&messages.ASReq{KDCReqFields: messages.KDCReqFields{ReqBody: messages.KDCReqBody{EType: []int32{18}}}}, b)
	})
}
