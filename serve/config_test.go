package serve

import (
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/serve/servetest/requests"
)

func TestCredentials(t *testing.T) {
	s := start(t, Config{Synthetic: []Set{{1, 10}}, User: "joe", Password: "pa:ss", Token: "tok"})
	for _, c := range []struct {
		authorization string
		code          int
	}{
		{"", 401}, {"Basic am9lOnBhOnNz", 200}, {"Basic am9lOndyb25n", 401}, {"Basic !!", 401}, {"Bearer tok", 200}, {"bearer tok", 200},
		{"Bearer tok2", 401}, {"Bearer ", 401}, {"tok", 401}, {"Basic tok", 401},
	} {
		h := map[string]string{}
		if c.authorization != "" {
			h["Authorization"] = c.authorization
		}
		for _, p := range []string{"/file000000.dat", "/metrics"} {
			check(t, s, exchange{Method: "GET", Path: p, Header: h, Code: c.code})
		}
	}
	resp, _ := do(t, s, exchange{Method: "PUT", Path: "/x", Body: "x"})
	if got := resp.Header.Values("Www-Authenticate"); len(got) != 2 {
		t.Errorf("challenges %q", got)
	}
}

func TestConfigRefuses(t *testing.T) {
	dir := t.TempDir()
	set := []Set{{1, 1}}
	for _, c := range []Config{
		{}, {Dir: dir, Synthetic: set}, {Dir: filepath.Join(dir, "none")}, {Dir: requests.Write(t, "", dir, "file")}, {Synthetic: []Set{{0, 1}}},
		{Dir: dir, CertFile: "x"}, {Dir: dir, User: "x"}, {Dir: dir, Rate: -1}, {Dir: dir, Delay: -1},
	} {
		if s, err := New(c); err == nil {
			t.Errorf("%+v is accepted", c)
			_ = s.Close()
		}
	}
	for _, c := range []Config{
		{Synthetic: set, Listen: "0.0.0.0:0"}, {Synthetic: set, Listen: ":0"}, {Synthetic: set, Listen: "[::]:0"},
		{Synthetic: set, Listen: "192.0.2.1:0"},
		{Synthetic: set, Listen: "example.org:80"}, {Synthetic: set, Listen: "127.0.0.1"}, {Synthetic: set, Listen: ":0", Token: "x"},
		{Synthetic: set, Listen: "127.0.0.1:99999"},
	} {
		s, err := New(c)
		require.NoError(t, err)
		if l, err := s.Listen(t.Context()); err == nil {
			t.Errorf("Listen %s is accepted", c.Listen)
			_ = l.Close()
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	start(t, Config{Synthetic: set, Listen: "0.0.0.0:0", Public: true})
	start(t, Config{Synthetic: set, Listen: "localhost:0"})
}
