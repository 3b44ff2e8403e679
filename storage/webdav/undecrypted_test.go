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
	"weir/lab"
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

// tlsServers starts all servers; nginx once for each cipher suite of TLS 1.3, as only servers choose among these.
func tlsServers(t *testing.T) map[string]tlsServer {
	const both = "ssl_protocols TLSv1.2 TLSv1.3; "
	all := map[string]tlsServer{}
	for _, suite := range []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"} {
		ng := lab.StartNginx(t, lab.NginxConfig{Config: lab.Config{TLS: true}, Extra: both + "ssl_conf_command Ciphersuites " + suite + ";"})
		place(t, ng.Data, "file", 1, undecryptedSize)
		all["nginx "+suite] = tlsServer{ng.URLs["https"], trust(t, ng.CAFile)}
	}
	small := lab.StartNginx(t, lab.NginxConfig{Config: lab.Config{TLS: true}, Extra: both + "ssl_buffer_size 6k;"})
	place(t, small.Data, "file", 1, undecryptedSize)
	all["nginx, small records"] = tlsServer{small.URLs["https"], trust(t, small.CAFile)}

	xr := lab.StartXRootD(t, lab.XRootDConfig{Config: lab.Config{TLS: true}})
	place(t, xr.Data, "file", 1, undecryptedSize)
	all["XRootD"] = tlsServer{xr.URLs["https"], trust(t, xr.CAFile)}

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

func trust(t *testing.T, caFile string) *tls.Config {
	cred, err := storage.Auth{CAFile: caFile}.Read()
	if err != nil {
		t.Fatal(err)
	}
	return cred.TLS
}

// TestDiscardedUndecrypted reads from real servers with TLS 1.2 and 1.3: as many bytes as the file has are counted, most
// of them undecrypted, and what is verified on the same connection before and after is right.
func TestDiscardedUndecrypted(t *testing.T) {
	b := make([]byte, undecryptedSize)
	content.Fill(b, 1, 0)
	sum := fmt.Sprintf("adler32:%08x", adler32.Checksum(b))
	for name, srv := range tlsServers(t) {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(name+", "+tls.VersionName(version), func(t *testing.T) {
				conf := srv.tls.Clone()
				conf.MinVersion, conf.MaxVersion = version, version
				c := storagetest.Client(t, Driver(), storagetest.TargetOf(t, srv.url, storage.Credentials{TLS: conf}))
				for i := range 6 {
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

// TestResumption has each operation in a session of its own at real servers: with tickets of its own a client resumes from its
// second connection on, with those of all clients from the first of the second client on. XRootD resumes none unless its
// configuration has http.tlsreuse on.
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
					if err != nil {
						t.Fatal(err)
					}
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
