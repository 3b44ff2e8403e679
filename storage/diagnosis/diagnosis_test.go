package diagnosis

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
)

func TestMain(m *testing.M) { os.Exit(tier.Main(m)) }

func parsed(t *testing.T, target string) *url.URL {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	return u
}

var (
	errNoFiles = errors.New("no files")
	errNoSizes = errors.New("no sizes")
)

type asks struct{ names []string }

func (*asks) Error() string      { return "401" }
func (*asks) Unwrap() error      { return fs.ErrPermission }
func (a *asks) Offers() []string { return a.names }

// TestKindsOfErrors checks that the diagnosis of an error follows from its types, with any
// wrapping.
func TestKindsOfErrors(t *testing.T) {
	for want, err := range map[Kind]error{
		Redirected:  &storage.RedirectError{To: "https://other.example/data/"},
		NoListing:   fmt.Errorf("%w: %w", storage.ErrNoListing, fs.ErrPermission),
		NoFiles:     errNoFiles,
		NoSizes:     fmt.Errorf("%w: %w", errNoSizes, fs.ErrNotExist),
		WrongSize:   storage.CheckSize(2, 1),
		UnknownCA:   x509.UnknownAuthorityError{},
		Expired:     x509.CertificateInvalidError{Reason: x509.Expired},
		OtherName:   x509.HostnameError{Host: "a.example", Certificate: &x509.Certificate{DNSNames: []string{"b.example"}}},
		UnknownHost: &net.DNSError{Err: "no such host", Name: "a.example", IsNotFound: true},
		Refused:     syscall.ECONNREFUSED,
		IsFile:      syscall.ENOTDIR,
		LocalFile:   &fs.PathError{Op: "open", Path: "/etc/shadow", Err: syscall.EACCES},
		Credentials: &asks{[]string{"Basic", "Bearer"}},
		Forbidden:   fs.ErrPermission,
		Missing:     fs.ErrNotExist,
		SpeaksTLS:   fmt.Errorf("%w: %w", storage.ErrNeedsTLS, fs.ErrPermission),
		SpeaksNoTLS: fmt.Errorf("%w: %w", storage.ErrNoTLS, fs.ErrPermission),
	} {
		wrapped := fmt.Errorf("files.listing: %w", &storage.OpError{Kind: storage.List, URL: "http://a.example/", Err: err})
		of := Caller{NoFiles: errNoFiles, NoSizes: errNoSizes}
		d, ok := Of(t.Context(), parsed(t, "http://a.example/data/f"), storage.Auth{}, wrapped, of, false)
		if !ok || d.Kind != want || d.Hint() == "" || strings.Contains(d.Hint()+d.Text(), "\n") {
			t.Errorf("%v: %q, %q, want %q", err, d.Kind, d.Hint(), want)
		}
	}
	if d, ok := Of(t.Context(), parsed(t, "http://a.example/"), storage.Auth{}, io.ErrUnexpectedEOF, Caller{}, false); ok {
		t.Errorf("an end without a reason is %q", d.Kind)
	}
	if d, _ := Of(t.Context(), parsed(t, "http://a.example/"), storage.Auth{}, os.ErrDeadlineExceeded, Caller{}, false); d.Kind != "" {
		t.Errorf("without a look at the port, silence is %q", d.Kind)
	}
}

// greeting starts a server that only sends text to each client.
func greeting(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, text)
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return l.Addr().String()
}

// TestProbes checks that a connection to a port detects its protocol.
func TestProbes(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	plain, encrypted := httptest.NewServer(hello), httptest.NewTLSServer(hello)
	t.Cleanup(plain.Close)
	t.Cleanup(encrypted.Close)
	web, tls := plain.Listener.Addr().String(), encrypted.Listener.Addr().String()
	ftp, ssh, mute := greeting(t, "220 ready\r\n"), greeting(t, "SSH-2.0-x\r\n"), greeting(t, "")
	for _, tt := range []struct {
		target, speaks string
		kind           Kind
	}{
		{"http://" + tls, "", SpeaksTLS},
		{"dav://" + tls, "", SpeaksTLS},
		{"ftp://" + tls, "", SpeaksTLS},
		{"root://" + tls, "TLS", OtherProtocol},
		{"https://" + web, "", SpeaksNoTLS},
		{"davs://" + web, "", SpeaksNoTLS},
		{"roots://" + web, "http", OtherProtocol},
		{"ftp://" + web, "http", OtherProtocol},
		{"https://" + ftp, "ftp", OtherProtocol},
		{"root://" + ftp, "ftp", OtherProtocol},
		{"http://" + ssh, "ssh", OtherProtocol},
		{"http://" + mute, "", Silent},
		{"http://" + web, "", ""}, // it responds: the operation took too long for another reason
		{"https://" + tls, "", ""},
		{"root://" + mute, "", Silent},
	} {
		t.Run(tt.target[:strings.Index(tt.target, ":")]+" "+string(tt.kind)+tt.speaks, func(t *testing.T) {
			t.Parallel()
			if tt.kind == Silent || tt.speaks == "http" && strings.HasPrefix(tt.target, "roots:") { // it waits for the end of a line
				tier.Slow(t, "a look at a port that says nothing takes three seconds")
			}
			d, ok := Of(context.WithoutCancel(t.Context()), parsed(t, tt.target+"/data"), storage.Auth{}, os.ErrDeadlineExceeded, Caller{}, true)
			said := tt.kind != ""
			if ok != said || d.Kind != tt.kind || d.Speaks != tt.speaks || (d.Text() != "") != said || (d.Hint() != "") != said {
				t.Errorf("%q speaking %q, %q, want %q speaking %q", d.Kind, d.Speaks, d.Hint(), tt.kind, tt.speaks)
			}
		})
	}
}

// TestBusyXRootD checks that an XRootD server that also supports http on its port, with an
// operation that takes too long, is not reported to have another protocol.
func TestBusyXRootD(t *testing.T) {
	server := labtest.Start(t, lab.XRootDConfig{})
	for _, err := range []error{os.ErrDeadlineExceeded, syscall.ECONNRESET, io.ErrUnexpectedEOF} {
		if d, ok := Of(t.Context(), parsed(t, server.URL), storage.Auth{}, err, Caller{}, true); ok {
			t.Errorf("%v: %s", err, d.Text())
		}
	}
}
