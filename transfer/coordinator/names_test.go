package coordinator

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"weir/internal/require"
	"weir/internal/tpc"
	"weir/serve"
	"weir/serve/servetest"
	"weir/transfer/access"
)

// nameServer makes this process resolve all names with a server that fails for names that contain
// "broken", and has no other names. No other test may run in parallel with the caller.
func nameServer(t *testing.T) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for b := make([]byte, 1500); ; {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil {
				continue
			}
			m.Response, m.RecursionAvailable, m.Additionals, m.RCode = true, true, nil, dnsmessage.RCodeNameError
			if strings.Contains(m.Questions[0].Name.String(), "broken") {
				m.RCode = dnsmessage.RCodeServerFailure
			}
			if answer, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = server.Close()
		<-ended
	})
}

// If a host does not exist, the files of jobs fail after their attempts, even if the host was
// probed before. If the DNS server fails for a host, the files wait.
func TestHostsThatDoNotExist(t *testing.T) {
	nameServer(t)
	dir := t.TempDir()
	at := servetest.Start(t, serve.Config{Dir: dir, Extensions: thirdParty()})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("hello"), 0o644))
	h := start(t, Config{Approve: -1, Plain: true, JobArea: tpc.Loopback})
	u := h.ftsUser("ada", access.MaySubmit)
	submit := func(from, to string) string {
		return u.submit(fmt.Sprintf(`{"files":[{"sources":[%q],"destinations":[%q],"filesize":5}],"params":{"retry":-1}}`, from, to))
	}
	for i := range 2 {
		for _, scheme := range []string{"http", "root"} {
			none := scheme + "://nothing.example.org"
			to, from := fmt.Sprintf("%s/to%d", none, i), fmt.Sprintf("%s/from%s%d", at, scheme, i)
			for _, pair := range [][2]string{{at + "/f", to}, {none + "/f", from}} {
				if j := u.ended(submit(pair[0], pair[1])); j.State != "FAILED" || !strings.Contains(j.Files[0].Reason, "no such host") {
					t.Errorf("%v: %+v", pair, j)
				}
			}
		}
		sites, err := h.Client.Sites(t.Context())
		require.NoError(t, err)
		for _, s := range sites {
			h.registry.Probe(t.Context(), s.Name)
		}
	}
	id := submit(at+"/f", "http://broken.example.org/f")
	until(t, "it was tried", func() bool {
		var files []struct{ Reason string }
		return u.ask("GET", "/jobs/"+id+"/files", "", &files) == http.StatusOK && files[0].Reason != ""
	})
	var j ftsJob
	if u.ask("GET", "/jobs/"+id, "", &j); j.State == "FAILED" {
		t.Errorf("%+v", j)
	}
}
