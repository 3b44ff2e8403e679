package storage

import (
	"net/url"
	"testing"

	"weir/internal/require"
)

func TestInClear(t *testing.T) {
	token, password := Credentials{Method: "token", Token: "t"}, Credentials{Method: "basic", User: "u", Password: "p"}
	for _, c := range []struct {
		url     string
		cred    Credentials
		refused bool
	}{
		{"http://se.example.org/data", token, true},
		{"dav://se.example.org:8080/data", token, true},
		{"http://10.0.0.1/data", password, true},
		{"http://u:p@10.0.0.1/data", Credentials{}, true},
		{"http://localhost.example.org/", token, true},
		{"https://se.example.org/data", token, false},
		{"davs://u:p@se.example.org/data", Credentials{}, false},
		{"http://se.example.org/data", Credentials{}, false},
		{"http://127.0.0.1:8080/data", token, false},
		{"http://[::1]:8080/data", password, false},
		{"http://localhost/data", token, false},
		{"http://se.example.org/data", Credentials{Token: "t", From: Auth{Insecure: true}}, false},
	} {
		u, err := url.Parse(c.url)
		require.NoError(t, err)
		if err := (&Target{URL: u, Cred: c.cred}).InClear(); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.url, err)
		}
	}
}
