package bench

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/trust"
	"weir/lab"
)

// secureNginx starts nginx with a version of TLS and more directives. The url of the server is
// https, and ca is the file of the certificate authority.
func (r *rig) secureNginx(version, more string) (srv server, ca string) {
	return r.secured(lab.NginxConfig{Extra: "ssl_protocols " + version + "; " + more})
}

// secured starts nginx with TLS and the settings of c, as secureNginx does.
func (r *rig) secured(c lab.NginxConfig) (srv server, ca string) {
	c.TLS, c.Dir = true, r.path("nginx")
	s, err := c.Start(r.Context())
	r.must(err)
	r.ends(s.Stop)
	return server{url: s.URLs["https"], group: s.Pids()[0], data: s.Data}, s.CAFile
}

func secureDownload(streams int, version string, s scale) comparison {
	most := 1. / 6
	if streams > 1 {
		most = 1. / 8
	}
	name, files := "tls-download-"+strconv.Itoa(streams), max(streams, s.gets/8)
	if version != "TLSv1.3" {
		name += "-" + version[len("TLSv"):]
	}
	return comparison{
		name:  name,
		title: fmt.Sprintf("Download with TLS %s, %s", version[len("TLSv"):], streamsText(streams)),
		about: fmt.Sprintf("GET of a %d MiB file from nginx over TLS, which reports its checksum. weir with \"all verified\", curl and a bare "+
			"loop with Go's crypto/tls decrypt it; weir compares the checksum as well. %s", s.size>>20, curlText(streams, files)),
		metrics: []metric{throughput, clientCPU, serverCPU, serverBusy},
		bars: []bar{
			{metric: clientCPU, a: "weir", b: "curl", limit: most},
			{metric: clientCPU, a: allVerified, b: "bare loop", limit: 1.05},
			{metric: throughput, a: "weir", b: "curl", least: true, limit: 1,
				why: "The server's core is busy with encryption."},
		},
		setup: func(r *rig) []side {
			made := r.path("payload")
			r.file(made, s.size)
			sum, err := fileSum(made)
			r.must(err)
			srv, ca := r.secureNginx(version, "add_header Digest adler32="+sum+";")
			r.must(os.Rename(made, filepath.Join(srv.data, theFile)))
			l := r.reads(srv, theFile, streams)
			l.auth = "auth: {ca_file: " + ca + "}\n"
			args := append(curlGets(srv.url+"/"+theFile, files, streams), "--cacert", ca)
			sides := r.shapes(l, srv.group, shape{"weir", ""}, shape{allVerified, "  verify: 100%\n"})
			if streams == 1 {
				sides = append(sides, r.limitSide("read", srv.url+"/"+theFile, ca, files, s.size, 1))
			}
			return append(sides,
				r.curlSide(files, int64(files)*s.size, srv.group, args...),
				side{"bare loop", func() (figures, error) {
					return r.bulk(srv.group, files, int64(files)*s.size, self(), tlsWord, srv.url+"/"+theFile, ca,
						strconv.Itoa(files), strconv.Itoa(streams))
				}},
			)
		},
	}
}

func secureSessions(s scale) comparison {
	const streams, size = 100, 4 << 10
	files := 4 * s.puts
	return comparison{
		name:  "tls-sessions-100",
		title: "TLS 1.3 handshakes, 100 clients",
		about: fmt.Sprintf("GET of %d KiB, each over a new connection with a full handshake, from nginx (one worker, which resumes no "+
			"session). wrk runs one thread, sends Connection: close and does not verify the certificate; curl is a process for each of %d "+
			"requests, 100 at a time.", size>>10, files),
		metrics: []metric{rate, requestCPU, serverBusy},
		bars: []bar{
			{metric: rate, a: "weir", b: "curl", least: true, limit: 5},
			{metric: requestCPU, a: "weir", b: "curl", limit: 1. / 3},
			{metric: rate, a: "weir", b: "wrk", least: true, limit: 1,
				why: "The server and the client share two cores; the handshakes of the server take one of them."},
			{metric: requestCPU, a: "weir", b: "wrk", limit: 1,
				why: "weir verifies the server's certificate in each handshake, wrk does not."},
		},
		setup: func(r *rig) []side {
			srv, ca := r.secureNginx("TLSv1.3", "ssl_session_tickets off; ssl_session_cache off;")
			r.file(filepath.Join(srv.data, theFile), size)
			l := r.reads(srv, theFile, streams)
			l.settle, l.auth = 500*time.Millisecond, "auth: {ca_file: "+ca+"}\n"
			sides := r.shapes(l, srv.group, shape{"weir", "  session: fresh\n"})
			script := fmt.Sprintf("seq %d | xargs -P %d -I{} curl --silent --show-error --fail --cacert %s --output /dev/null %s/%s",
				files, streams, ca, srv.url, theFile)
			return append(sides, r.wrkSide(srv.url+"/"+theFile, streams, "Connection: close"),
				r.script("curl", files, int64(files)*size, srv.group, script))
		},
	}
}

// sleepingSecured measures the memory that TLS adds to a client that mostly sleeps.
func sleepingSecured(s scale) comparison {
	return comparison{
		name:  "tls-clients-memory",
		title: "Memory of a client with TLS 1.3",
		about: fmt.Sprintf("%d clients in one process, each with its own connection, think for %v between reads of 64 KiB. "+
			"Resident memory (VmRSS, median over the measurement time) minus that of a run with one client, per client; beside the same "+
			"without TLS.", s.crowd, s.think),
		metrics: []metric{clients, resident, rate, failed},
		bars: []bar{{metric: resident, a: "weir", limit: 16 << 10}, {metric: resident, a: "weir", b: "weir, plain", limit: 2},
			{metric: failed, a: "weir", limit: 0}},
		setup: func(r *rig) []side {
			srv, ca := r.secured(r.crowded())
			r.file(filepath.Join(srv.data, theFile), 64<<10)
			of := func(n int) load {
				l := r.asleep(srv, n)
				l.auth = "auth: {ca_file: " + ca + "}\n"
				return l
			}
			plain := r.smallServer(r.crowded(), 64<<10)
			return []side{
				r.residentSide("weir", r.crowd, of),
				r.residentSide("weir, plain", r.crowd, func(n int) load { return r.asleep(plain, n) }),
			}
		},
	}
}

func secureUpload(s scale) comparison {
	size := s.size / 4
	files := s.puts / 4
	return comparison{
		name:    "tls-upload-1",
		title:   "Upload with TLS 1.3, one stream",
		about:   fmt.Sprintf("PUT of %d MiB files to nginx. %s", size>>20, curlText(1, files)),
		metrics: []metric{throughput, clientCPU, serverCPU, serverBusy},
		bars:    []bar{{metric: clientCPU, a: "weir", b: "curl", limit: 1 / 1.5}},
		setup: func(r *rig) []side {
			srv, ca := r.secureNginx("TLSv1.3", "")
			source := r.path("source")
			r.file(source, size)
			l := load{target: srv.url, kind: "write", size: size, clients: "1", settle: 200 * time.Millisecond, hold: r.hold, most: 5 << 30,
				auth: "auth: {ca_file: " + ca + "}\n"}
			args := append(curlPuts(source, srv.url, files, 1), "--cacert", ca)
			return []side{r.weirSide(l, srv.group), r.curlSide(files, int64(files)*size, srv.group, args...),
				r.limitSide("write", srv.url+"/limit", ca, files, size, 1)}
		},
	}
}

func secureRootDownload(s scale) comparison {
	size := 4 * s.size
	return comparison{
		name:    "roots-download-1",
		title:   "roots:// download, one stream",
		about:   fmt.Sprintf("A %d MiB file from XRootD over TLS; xrdcp several times in a row. \"plain\" requests no page checksums.", size>>20),
		metrics: []metric{throughput, clientCPU, serverCPU, serverBusy},
		bars: []bar{
			{metric: clientCPU, a: "weir", b: "xrdcp", limit: 1. / 6},
			{metric: clientCPU, a: "weir, plain", b: "xrdcp, plain", limit: 1. / 6},
		},
		setup: func(r *rig) []side {
			sys, err := lab.XRootDConfig{Config: lab.Config{Dir: r.path("xrootd"), TLS: true}}.Start(r.Context())
			r.must(err)
			r.ends(sys.Stop)
			srv := server{url: sys.URLs["roots"], group: sys.Pids()[0], data: sys.Data}
			r.file(filepath.Join(srv.data, theFile), size)
			l := r.reads(srv, theFile, 1)
			l.auth = "auth: {ca_dir: " + sys.CADir + "}\n"
			sides := r.shapes(l, srv.group, shape{"weir", ""}, shape{"weir, plain", "  plain: true\n"})
			trust := "X509_CERT_DIR=" + sys.CADir
			return append(sides, r.xrdcpReads("xrdcp", srv, size, 1, trust), r.xrdcpReads("xrdcp, plain", srv, size, 1, trust, plainXrdcp))
		},
	}
}

// tlsWord makes this program run a bare loop of GETs with crypto/tls instead of the comparison.
const tlsWord = "tls-loop"

// runTLS reads a URL a number of times over a number of connections. Its arguments are the URL, the
// file of the authority, the number of reads and the number of connections.
func runTLS(args []string, _ io.Writer) error {
	pool, err := trust.Authorities(args[1])
	if err != nil {
		return err
	}
	files, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	streams, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	var left atomic.Int64
	left.Store(files)
	failed := make(chan error, streams)
	var all sync.WaitGroup
	for range streams {
		all.Go(func() {
			c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableCompression: true}}
			buf := make([]byte, 256<<10)
			for left.Add(-1) >= 0 {
				if err := drain(c, args[0], buf); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

func drain(c *http.Client, url string, buf []byte) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, buf)
	return err
}
