package security

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/storage"
)

const offer = "&P=krb5,xrootd/localhost@WEIR.TEST&P=gsi,v:10400,c:ssl,ca:abc.0&P=ztn,0:4096:&P=unix"

func TestPick(t *testing.T) {
	unix := Unix("ada")
	token, err := Token(storage.Credentials{Token: "secret"})
	require.NoError(t, err)
	type picked struct{ Name, Parameters, Error string }
	for name, test := range map[string]struct {
		offer   string
		secure  bool
		methods []Method
		want    picked
	}{
		"nothing asked":         {"", false, nil, picked{}},
		"nothing understood":    {"\x00\x01", false, []Method{unix}, picked{}},
		"unix":                  {offer, false, []Method{unix}, picked{Name: "unix"}},
		"the server's order":    {offer, true, []Method{unix, token}, picked{Name: "ztn", Parameters: "0:4096:"}},
		"no token in the clear": {offer, false, []Method{unix, token}, picked{Name: "unix"}},
		"final zero":            {"&P=unix\x00", false, []Method{unix}, picked{Name: "unix"}},
		"text before":           {"x&Q=1&P=unix,a,b&", false, []Method{unix}, picked{Name: "unix", Parameters: "a,b"}},
		"token without TLS": {"&P=ztn,0:4096:", false, []Method{token},
			picked{Error: "the server takes ztn; ours of these is sent over TLS only: use roots:// instead of root://: permission denied"}},
		"others": {"&P=krb5,x&P=gsi,y&P=gsi,z", false, []Method{unix},
			picked{Error: "the server takes krb5 or gsi; we have unix: set auth.method: krb5 or auth.method: x509: permission denied"}},
		"none": {"&P=krb5,x", false, nil, picked{Error: "the server takes krb5; weir has no credentials: set auth.method: krb5: " +
			"permission denied"}},
		"strange": {"&P=\x1b[2J", false, []Method{unix},
			picked{Error: `the server takes "\x1b[2J"; we have unix: weir does not know these ways: permission denied`}},
	} {
		m, parameters, err := Pick(test.offer, test.secure, test.methods)
		got := picked{Parameters: parameters}
		if m != nil {
			got.Name = m.Name()
		}
		if err != nil {
			got.Error = err.Error()
			if !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: error %v is no denial", name, err)
			}
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func FuzzPick(f *testing.F) {
	f.Add(offer, true)
	f.Add("&P=&P=,&&P=unix&P=unix", false)
	f.Add(strings.Repeat("&P=a", 5000), false)
	unix := Unix("ada")
	token, err := Token(storage.Credentials{Token: "secret"})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, offer string, secure bool) {
		m, parameters, err := Pick(offer, secure, []Method{unix, token})
		switch {
		case m != nil && !strings.Contains(offer, "&P="+m.Name()) && !strings.HasPrefix(offer, "P="+m.Name()):
			t.Errorf("%s was not offered", m.Name())
		case m == token && !secure:
			t.Error("a token in the clear")
		case err != nil && (len(err.Error()) > 8192 || !utf8.ValidString(err.Error())):
			t.Errorf("error of %d bytes", len(err.Error()))
		}
		if m == nil {
			return
		}
		e, err := m.Begin(t.Context(), Server{Parameters: parameters, Secure: secure})
		if err != nil {
			return
		}
		message, err := e.Next(nil)
		if err != nil || !strings.HasPrefix(string(message), m.Name()+"\x00") {
			t.Errorf("%q, %v", message, err)
		}
		if _, err := e.Next([]byte("more")); !errors.Is(err, storage.ErrProtocol) {
			t.Errorf("asked for more: %v", err)
		}
	})
}
