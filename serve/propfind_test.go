package serve

import (
	"bufio"
	"encoding/xml"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/serve/servetest/requests"
)

// A multistatus has the parts of a response to PROPFIND that tests check.
type multistatus struct {
	Responses []struct {
		Href  string `xml:"href"`
		Stats []struct {
			Status string `xml:"status"`
			Prop   struct {
				Length     string    `xml:"getcontentlength"`
				Tag        string    `xml:"getetag"`
				Name       string    `xml:"displayname"`
				Collection *struct{} `xml:"resourcetype>collection"`
				Any        []struct {
					XMLName xml.Name
				} `xml:",any"`
			} `xml:"prop"`
		} `xml:"propstat"`
	} `xml:"DAV: response"`
}

func propfind(t *testing.T, s *Server, path, depth, body string) multistatus {
	t.Helper()
	resp, text := do(t, s, exchange{Method: "PROPFIND", Path: path, Header: map[string]string{"Depth": depth}, Body: body})
	if resp.StatusCode != 207 {
		t.Fatalf("PROPFIND %s: %d %s", path, resp.StatusCode, text)
	}
	var m multistatus
	if err := xml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return m
}

func TestPropfind(t *testing.T) {
	dir := t.TempDir()
	name := "a b&<ü>%23"
	requests.Write(t, "12345", dir, name)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	requests.Write(t, "", dir, hidden+"-folders")
	s := start(t, Config{Dir: dir})
	got := map[string]string{}
	for _, r := range propfind(t, s, "/", "1", "").Responses {
		path, err := url.PathUnescape(r.Href)
		if err != nil || len(r.Stats) != 1 || r.Stats[0].Status != "HTTP/1.1 200 OK" {
			t.Errorf("%+v: %v", r, err)
			continue
		}
		kind := "file of " + r.Stats[0].Prop.Length
		if r.Stats[0].Prop.Collection != nil {
			kind = "folder" + r.Stats[0].Prop.Length
		}
		got[path] = kind
	}
	if diff := cmp.Diff(map[string]string{"/": "folder", "/sub/": "folder", "/" + name: "file of 5"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(propfind(t, s, "/", "0", "").Responses); n != 1 {
		t.Errorf("depth 0 gives %d responses", n)
	}
}

func TestPropfindOfSomeProperties(t *testing.T) {
	dir := t.TempDir()
	requests.Write(t, "12345", dir, "f")
	s := start(t, Config{Dir: dir})
	m := propfind(t, s, "/f", "0",
		`<?xml version="1.0"?><propfind xmlns="DAV:"><prop><getcontentlength/><x:color xmlns:x="urn:&quot;x"/></prop></propfind>`)
	if len(m.Responses) != 1 || len(m.Responses[0].Stats) != 2 {
		t.Fatalf("%+v", m)
	}
	found, missing := m.Responses[0].Stats[0], m.Responses[0].Stats[1]
	if found.Prop.Length != "5" || found.Prop.Tag != "" {
		t.Errorf("found %+v", found)
	}
	if missing.Status != "HTTP/1.1 404 Not Found" || len(missing.Prop.Any) != 1 ||
		missing.Prop.Any[0].XMLName != (xml.Name{Space: `urn:"x`, Local: "color"}) {
		t.Errorf("missing %+v", missing)
	}
}

func TestPropfindRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	requests.Write(t, "12345", dir, "f")
	s := start(t, Config{Dir: dir})
	for _, x := range []exchange{
		{Path: "/", Header: map[string]string{"Depth": "infinity"}, Code: 403},
		{Path: "/", Code: 403},
		{Path: "/f", Code: 207}, // without members any depth is finite
		{Path: "/", Header: map[string]string{"Depth": "2"}, Code: 400},
		{Path: "/none", Header: map[string]string{"Depth": "0"}, Code: 404},
		{Path: "/f/", Header: map[string]string{"Depth": "0"}, Code: 404},
		{Path: "/", Header: map[string]string{"Depth": "0"}, Body: "<propfind", Code: 400},
		{Path: "/", Header: map[string]string{"Depth": "0"}, Body: "<other/>", Code: 400},
		{Path: "/", Header: map[string]string{"Depth": "0"}, Body: `<D:propfind xmlns:D="DAV:"><D:prop>` + strings.Repeat("<D:a/>", 1000) +
			`</D:prop></D:propfind>`, Code: 400},
		{Path: "/", Header: map[string]string{"Depth": "0"}, Body: strings.Repeat("<a>", 1<<20), Code: 400},
	} {
		x.Method = "PROPFIND"
		check(t, s, x)
	}
	_, body := do(t, s, exchange{Method: "PROPFIND", Path: "/", Header: map[string]string{"Depth": "infinity"}})
	if !strings.Contains(body, "<D:propfind-finite-depth/>") {
		t.Errorf("the reason is not given: %s", body)
	}
}

func FuzzPropfind(f *testing.F) {
	f.Add("0", `<D:propfind xmlns:D="DAV:"><D:prop><D:getetag/><a xmlns="x"/></D:prop></D:propfind>`)
	f.Add("1", `<propfind xmlns="DAV:"><allprop/></propfind>`)
	f.Add("infinity", `<propfind xmlns="DAV:"><propname/></propfind>`)
	f.Add("", "<a><b></a>")
	f.Fuzz(func(t *testing.T, depth, body string) {
		if d, finite, err := depthOf(depth); d < 0 || d > 1 || err != nil && finite {
			t.Errorf("Depth %q: %d, %v, %v", depth, d, finite, err)
		}
		p, err := parseProps(strings.NewReader(body))
		if err != nil {
			return
		}
		if len(p.asked) > maxProps {
			t.Errorf("%d properties", len(p.asked))
		}
		out := render(p)
		if err := xml.Unmarshal([]byte(out), new(multistatus)); err != nil {
			t.Errorf("%q gives %q: %v", body, out, err)
		}
	})
}

// render returns the answer about one file.
func render(p props) string {
	var b strings.Builder
	out := bufio.NewWriter(&b)
	respond(out, "f\x01<", entry{name: "f", size: 5}, p)
	_ = out.Flush() // a Builder does not fail
	return `<D:multistatus xmlns:D="DAV:">` + b.String() + "</D:multistatus>"
}

// Names that no request can have are not listed.
func TestListsOnlyWhatIsServed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", `b\c`, hidden + "x"} {
		requests.Write(t, "x", dir, name)
	}
	s := start(t, Config{Dir: dir})
	resp, body := do(t, s, exchange{Method: "PROPFIND", Path: "/", Header: map[string]string{"Depth": "1"}})
	if resp.StatusCode != 207 || strings.Count(body, ":response>") != 4 || !strings.Contains(body, "/a<") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
