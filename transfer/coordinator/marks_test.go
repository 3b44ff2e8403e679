package coordinator

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"weir/internal/require"
	"weir/internal/tpc"
	"weir/lab"
	"weir/lab/labtest"
	"weir/serve"
	"weir/serve/servetest"
	"weir/transfer/access"
)

// A headerLog records the headers of requests to a server.
type headerLog struct {
	url  string
	mu   sync.Mutex
	seen []string // METHOD Header=value
}

func logHeaders(t *testing.T, to string) *headerLog {
	t.Helper()
	u, err := url.Parse(to)
	require.NoError(t, err)
	l := &headerLog{}
	s := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(u)
		r.Out.Host = r.In.Host // the host of Destination
		l.mu.Lock()
		defer l.mu.Unlock()
		for name, values := range r.In.Header {
			l.seen = append(l.seen, r.In.Method+" "+name+"="+strings.Join(values, ","))
		}
	}})
	t.Cleanup(s.Close)
	l.url = s.URL
	return l
}

func (l *headerLog) saw(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.seen {
		if strings.EqualFold(one, what) {
			return true
		}
	}
	return false
}

// The flow label of a file and its metadata for the archive are sent to the endpoints, and are
// included in responses.
func TestMarksOfJobs(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	source := logHeaders(t, servetest.Start(t, serve.Config{Dir: from, Extensions: thirdParty()}))
	dest := logHeaders(t, servetest.Start(t, serve.Config{Dir: to, Extensions: thirdParty()}))
	at := servetest.Start(t, serve.Config{Dir: t.TempDir()})
	plain, other := logHeaders(t, at), logHeaders(t, at) // two names of a server without COPY
	require.NoError(t, os.WriteFile(filepath.Join(from, "f"), []byte("hello"), 0o644))
	h := start(t, Config{Approve: -1, Plain: true, JobArea: tpc.Loopback})
	u := h.ftsUser("rucio", access.MaySubmit)
	archive := base64.StdEncoding.EncodeToString([]byte(`{"scheduling_hints":{"priority":"100"}}`))
	for _, c := range []struct {
		name, source string
		to           *headerLog
		seen         map[*headerLog][]string
	}{
		{"pulled", source.url + "/f", dest, map[*headerLog][]string{
			dest:   {"COPY SciTag=129", "COPY TransferHeaderSciTag=129", "COPY ArchiveMetadata=" + archive},
			source: {"GET SciTag=129"},
		}},
		{"pushed", source.url + "/f", plain, map[*headerLog][]string{
			source: {"COPY SciTag=129", "COPY TransferHeaderSciTag=129", "COPY TransferHeaderArchiveMetadata=" + archive},
			plain:  {"PUT SciTag=129", "PUT ArchiveMetadata=" + archive},
		}},
		{"streamed", plain.url + "/pushed", other, map[*headerLog][]string{
			plain: {"GET SciTag=129"},
			other: {"PUT SciTag=129", "PUT ArchiveMetadata=" + archive},
		}},
	} {
		id := u.submit(fmt.Sprintf(`{"files":[{"sources":[%q],"destinations":[%q],"scitag":129,"archive_metadata":
			{"scheduling_hints":{"priority":"100"}}}],"params":{"retry":-1}}`, c.source, c.to.url+"/"+c.name))
		if j := u.ended(id); j.State != "FINISHED" {
			t.Fatalf("%s: %+v", c.name, j)
		}
		for at, all := range c.seen {
			for _, what := range all {
				if !at.saw(what) {
					t.Errorf("%s: no %s in %q", c.name, what, at.seen)
				}
			}
		}
		var files []struct {
			SciTag  int            `json:"scitag"`
			Archive map[string]any `json:"archive_metadata"`
		}
		u.ask("GET", "/jobs/"+id+"/files", "", &files)
		if len(files) != 1 || files[0].SciTag != 129 || files[0].Archive["scheduling_hints"] == nil {
			t.Errorf("%+v", files)
		}
	}
}

// In the XRootD protocol the flow label follows the path.
func TestSciTagOfRootJobs(t *testing.T) {
	t.Parallel()
	x := labtest.Start(t, lab.XRootDConfig{})
	y := labtest.Start(t, lab.XRootDConfig{})
	source, dest := tap(t, x.URLs["root"]), tap(t, y.URLs["root"]) // they end after the coordinator
	p := &ftsPair{start(t, Config{Approve: -1, JobArea: tpc.Loopback}), x, y}
	u := p.ftsUser("rucio", access.MaySubmit)
	p.put(x, "m/f", []byte("hello"))
	j := u.ended(u.submit(fmt.Sprintf(`{"files":[{"sources":["%s/m/f"],"destinations":["%s/m/g"],"scitag":129}]}`, source.url, dest.url)))
	if j.State != "FINISHED" {
		t.Fatalf("%+v", j)
	}
	for _, at := range []*tapped{source, dest} {
		if !at.saw("scitag.flow=129") {
			t.Error("the label is not sent")
		}
	}
}

// A tapped relays connections to a server and records the data that clients send.
type tapped struct {
	logged
	url string
}

func (p *tapped) saw(text string) bool { return strings.Contains(p.String(), text) }

func tap(t *testing.T, to string) *tapped {
	t.Helper()
	u, err := url.Parse(to)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &tapped{}
	server := u.Host
	u.Host = l.Addr().String()
	p.url = u.String()
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				_ = in.Close()
				continue
			}
			all.Go(func() { _, _ = io.Copy(io.MultiWriter(out, p), in); _ = out.Close() })
			all.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
		}
	})
	return p
}
