package redact

import (
	"net/url"
	"strings"
	"testing"
)

// URLs without secrets are unchanged, byte by byte. In other URLs only the secrets are changed.
func TestURL(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		"built-in":                          "built-in",
		"http://localhost:8080/data":        "http://localhost:8080/data",
		"http://[::1]:8080/":                "http://[::1]:8080/",
		"root://[fe80::1%25eth0]:1094//a/b": "root://[fe80::1%25eth0]:1094//a/b",
		"file:///tmp/100%25%20a?b":          "file:///tmp/100%25%20a?REDACTED",
		"simulated://demo?servers=4&service=10ms&secret=1":   "simulated://demo?servers=4&service=10ms&secret=1",
		"https://h/d?sig=abc":                                "https://h/d?sig=REDACTED",
		"https://h/d?a=1&format=json&b=2":                    "https://h/d?a=REDACTED&format=json&b=REDACTED",
		"https://h/d?FORMAT=json&%66ormat=x":                 "https://h/d?FORMAT=json&%66ormat=x",
		"https://h/d?s%69g=abc":                              "https://h/d?s%69g=REDACTED",
		"https://h/d?format=json;sig=abc":                    "https://h/d?format=REDACTED",
		"https://h/d?format=a%26sig%3Dabc":                   "https://h/d?format=REDACTED",
		"https://h/d?JustATokenAlone":                        "https://h/d?REDACTED",
		"https://h/d?sig=":                                   "https://h/d?sig=",
		"https://h/d?a=b?c=d":                                "https://h/d?a=REDACTED?c=REDACTED",
		"https://h/d?sig=a/b#frag":                           "https://h/d?sig=REDACTED#REDACTED",
		"https://h/d#access_token=x":                         "https://h/d#REDACTED",
		"https://h/a/b%3Fsig=abc":                            "https://h/a/b%3FREDACTED",
		"https://h/a/b%3fsig%3dabc":                          "https://h/a/b%3fREDACTED",
		"https://h/a/what%3F":                                "https://h/a/what%3F",
		"ftp://anonymous@h/d":                                "ftp://anonymous@h/d",
		"ftp://alice.b@h/d":                                  "ftp://alice.b@h/d",
		"ftp://alice:p:w@h/d":                                "ftp://alice:REDACTED@h/d",
		"ftp://alice:p@w@h/d":                                "ftp://alice:REDACTED@h/d",
		"https://ghp1234567890abcdef@h/d":                    "https://REDACTED@h/d",
		"https://h/d?X-Amz-Algorithm=A&X-Amz-Signature=0":    "https://h/d?X-Amz-Algorithm=A&X-Amz-Signature=REDACTED",
		"https://h?x=" + strings.Repeat("a", 100):            "https://h?x=REDACTED",
		"/a/b?authz=Bearer%20x":                              "/a/b?authz=REDACTED",
		"https://h/d?eyJhbGciOiJFUzI1NiIsImtpZCI6=1":         "https://h/d?REDACTED=REDACTED",
		"https://h/d?version=" + strings.Repeat("0f", 80):    "https://h/d?version=REDACTED",
		"http://h:8086/write?db=weir&u=me&p=pw&precision=ns": "http://h:8086/write?db=weir&u=REDACTED&p=REDACTED&precision=ns",
	} {
		got := URL(in)
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
		if again := URL(got); again != got {
			t.Errorf("%s: redacted again it is %s", got, again)
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"read http://h/a b: HTTP status 404 Not Found":                 "read http://h/a b: HTTP status 404 Not Found",
		`Get "http://h/m?tok=x1y2": dial tcp [::1]:9: refused`:         `Get "http://h/m?tok=REDACTED": dial tcp [::1]:9: refused`,
		"see (https://h/x?sig=ab), and https://h/y?sig=cd.":            "see (https://h/x?sig=REDACTED), and https://h/y?sig=REDACTED.",
		"served by http://[::1]: why":                                  "served by http://[::1]: why",
		"GET /data/x?sig=abcdef HTTP/1.1":                              "GET /data/x?sig=REDACTED HTTP/1.1",
		"read /data/x%3Fsig=abcdef: no such file":                      "read /data/x%3FREDACTED: no such file",
		"Authorization: Bearer abcdefgh.ijkl":                          "Authorization: Bearer REDACTED",
		"bearer abcdefghij is wrong":                                   "bearer REDACTED is wrong",
		"the token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc fails":     "the token REDACTED fails",
		"password=hunter2 is wrong":                                    "password=REDACTED is wrong",
		`{"token": "abcdef"}`:                                          `{"token": "REDACTED"}`,
		"throughput: 5 Gbit/s; p50=3 ms":                               "throughput: 5 Gbit/s; p50=3 ms",
		"--remote-write-auth: unknown field \"token\": use token_file": "--remote-write-auth: unknown field \"token\": use token_file",
		"auth.password: leave it out":                                  "auth.password: leave it out",
		"what? a=b":                                                    "what? a=b",
		"--target=ftp://a:secret@h/d":                                  "--target=ftp://a:REDACTED@h/d",
		"target=[https://a/?sig=one,https://b/?sig=two]":               "target=[https://a/?sig=REDACTED?sig=REDACTED]",
	} {
		if got := Text(in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

// A known secret is removed in every form in which a text repeats it.
func TestValues(t *testing.T) {
	var v Values
	v.Learn("https://alice:pass%2Fword@h/d?sig=one%2Btwo%3D&format=json&x=1")
	for _, form := range []string{"pass%2Fword", "pass/word", "one%2Btwo%3D", "one+two="} {
		if got := v.Text("the signature " + form + " is wrong"); strings.Contains(got, form) || !Has(got) {
			t.Errorf("%s", got)
		}
	}
	if got := v.Text("1 json at h"); got != "1 json at h" {
		t.Errorf("%s", got)
	}
	if got := v.Text("the signature one%2Btwo is wrong"); got != "the signature REDACTED is wrong" {
		t.Errorf("%s", got)
	}
	var none *Values
	none.Learn("https://h/?sig=abcdef")
	if got := none.Text("abcdef https://h/?sig=abcdef"); got != "abcdef https://h/?sig=REDACTED" {
		t.Errorf("%s", got)
	}
}

// Removed text does not appear in the result, with any URL, and the result is a URL of the same
// service.
func FuzzURL(f *testing.F) {
	f.Add("https://a:b@h:1/p?sig=", "x", "y")
	f.Fuzz(func(t *testing.T, path, name, value string) {
		value = "S3cr" + value + "3tV4lue"
		if harmless(strings.ToLower(name)) {
			return
		}
		in := "https://alice:" + url.QueryEscape(value) + "@h:1/" + url.PathEscape(path) + "?" + url.QueryEscape(name) + "=" +
			url.QueryEscape(value) + "#" + url.QueryEscape(value)
		out := URL(in)
		if strings.Contains(out, "3tV4lue") {
			t.Errorf("%s: %s", in, out)
		}
		a, bad := url.Parse(in)
		b, err := url.Parse(out)
		if bad == nil && (err != nil || a.Host != b.Host || a.Scheme != b.Scheme) {
			t.Errorf("%s: %s, %v", in, out, err)
		}
		if strings.Contains(Text(in), "3tV4lue") {
			t.Errorf("%s: %s", in, Text(in))
		}
	})
}
