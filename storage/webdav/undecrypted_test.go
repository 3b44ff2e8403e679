package webdav

import (
	"crypto/tls"
	"fmt"
	"hash/adler32"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/internal/tlsconn/tlsconntest"
	"weir/lab"
	"weir/lab/labtest"
	"weir/serve"
	"weir/serve/servetest"
	"weir/storage"
	"weir/storage/storagetest"
)

const undecryptedSize = 8 << 20

// A tlsServer is a real server with a file "file" of undecryptedSize bytes.
type tlsServer struct {
	url string
	tls *tls.Config
}

// tlsServers starts all servers.
func tlsServers(t *testing.T) map[string]tlsServer {
	const both = "ssl_protocols TLSv1.2 TLSv1.3; "
	all := map[string]tlsServer{}
	add := func(name string, s *lab.System) {
		place(t, s.Data, "file", 1, undecryptedSize)
		all[name] = tlsServer{s.URLs["https"], trust(t, s.CAFile)}
	}
	nginx := func(more string) *lab.System {
		return labtest.Start(t, lab.NginxConfig{Config: lab.Config{TLS: true}, Extra: both + more})
	}
	add("nginx", nginx(""))
	add("nginx, small records", nginx("ssl_buffer_size 6k;"))
	add("Apache", labtest.Start(t, lab.FolderConfig{Server: "apache2", WebDAV: true}))
	add("XRootD", labtest.Start(t, lab.XRootDConfig{Config: lab.Config{TLS: true}}))

	dir := t.TempDir()
	place(t, dir, "file", 1, undecryptedSize)
	std := httptest.NewUnstartedServer(http.FileServer(http.Dir(dir)))
	std.EnableHTTP2 = false
	std.StartTLS()
	t.Cleanup(std.Close)
	all["net/http"] = tlsServer{std.URL, std.Client().Transport.(*http.Transport).TLSClientConfig}

	all["weir serve"] = tlsServer{servetest.Start(t, serve.Config{Dir: dir, Certificate: &std.TLS.Certificates[0]}), all["net/http"].tls}
	return all
}

func trust(t testing.TB, caFile string) *tls.Config {
	cred, err := storage.Auth{CAFile: caFile}.Read()
	require.NoError(t, err)
	return cred.TLS
}

// TestDiscardedUndecrypted reads from real servers with TLS 1.2 and 1.3 and all cipher suites: the
// number of bytes counted is the size of the file, most of them were not decrypted, and data that
// is verified on the same connection before and after is correct.
func TestDiscardedUndecrypted(t *testing.T) {
	b := make([]byte, undecryptedSize)
	content.Fill(b, 1, 0)
	sum := fmt.Sprintf("adler32:%08x", adler32.Checksum(b))
	for name, srv := range tlsServers(t) {
		for _, suite := range tlsconntest.Suites() {
			t.Run(name+", "+suite.Name, func(t *testing.T) {
				conf := srv.tls.Clone()
				suite.Limit(t, conf)
				negotiated := agreedOn(t, srv.url, conf)
				if !slices.Contains(suite.IDs, negotiated) {
					t.Fatalf("the server chose %s", tls.CipherSuiteName(negotiated))
				}
				c := storagetest.Client(t, Driver(), storagetest.TargetOf(t, srv.url, storage.Credentials{TLS: conf}))
				for i := range 4 {
					op := &storage.Op{Kind: storage.Read, Path: "file", Size: undecryptedSize, Timeout: 20 * time.Second}
					if i%2 == 0 {
						op.Sum = "adler32"
					} else if i == 3 {
						op.Ranges = []storage.Range{{Offset: 5, Length: 3 << 20}, {Offset: 5 << 20, Length: 1}}
					}
					var e events
					res, err := c.Do(t.Context(), op, &e)
					if err != nil {
						t.Fatalf("operation %d: %v", i, err)
					}
					want := int64(undecryptedSize)
					if op.Ranges != nil {
						want = 3<<20 + 1
					}
					switch {
					case e.moved != want:
						t.Errorf("operation %d: %d bytes counted, want %d", i, e.moved, want)
					case op.Sum != "" && (res.Sum != sum || res.Discarded != 0):
						t.Errorf("operation %d: checksum %s and %d bytes discarded, want %s", i, res.Sum, res.Discarded, sum)
					case op.Sum == "" && (res.Discarded < want*8/10 || res.Discarded >= want):
						t.Errorf("operation %d: %d of %d bytes discarded", i, res.Discarded, want)
					case i > 0 && slices.Contains(e.phases, storage.Secured):
						t.Errorf("operation %d: a new connection", i)
					}
				}
			})
		}
	}
}

// agreedOn returns the cipher suite of a handshake of crypto/tls with conf.
func agreedOn(t *testing.T, url string, conf *tls.Config) uint16 {
	at := storagetest.TargetOf(t, url, storage.Credentials{}).URL
	c, err := tls.Dial("tcp", at.Host, conf)
	require.NoError(t, err)
	defer c.Close()
	return c.ConnectionState().CipherSuite
}

// TestResumption runs each operation in a session of its own at real servers: a client with tickets
// of its own resumes from its second connection on; with the tickets of all clients, the second
// client resumes from its first connection on. XRootD resumes no sessions unless its configuration
// has http.tlsreuse on.
func TestResumption(t *testing.T) {
	for name, srv := range tlsServers(t) {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for mode, want := range map[storage.Resumption][4]int{
				"": {}, storage.ResumeNone: {}, storage.ResumeOwn: {0, 1, 0, 1}, storage.ResumeShared: {0, 1, 1, 1},
			} {
				t.Run(fmt.Sprintf("%s, %s, %q", name, tls.VersionName(version), mode), func(t *testing.T) {
					conf := srv.tls.Clone()
					conf.MinVersion, conf.MaxVersion = version, version
					target := storagetest.TargetOf(t, srv.url, storage.Credentials{TLS: conf})
					target.Resume = mode
					service, err := Driver().Open(t.Context(), target)
					require.NoError(t, err)
					defer service.Close()
					var got [4]int
					for i := range 2 {
						c := service.Client()
						for k := range 2 {
							var e events
							op := &storage.Op{Kind: storage.Read, Path: "file", Size: undecryptedSize, Timeout: 20 * time.Second}
							res, err := c.Do(t.Context(), op, &e)
							if err != nil || e.moved != undecryptedSize || res.Handshakes != 1 || res.Discarded < undecryptedSize*8/10 {
								t.Fatalf("%d bytes, %d not decrypted, %d handshakes: %v", e.moved, res.Discarded, res.Handshakes, err)
							}
							got[2*i+k] = res.Resumed
							_ = c.Close()
						}
					}
					if name == "XRootD" {
						want = [4]int{}
					}
					if got != want {
						t.Errorf("resumed %v, want %v", got, want)
					}
				})
			}
		}
	}
}
