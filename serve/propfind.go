package serve

import (
	"bufio"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

	"weir/internal/token"
)

const (
	dav         = "DAV:"
	maxPropfind = 64 << 10 // bytes of a request's body
	maxProps    = 64       // requested properties
)

// A props has the properties that a PROPFIND requests.
type props struct {
	all   bool       // all that there are
	names bool       // only their names
	asked []xml.Name // or these
}

// depthOf reads a Depth header: only 0 and 1 are supported.
func depthOf(header string) (depth int, finite bool, err error) {
	switch strings.ToLower(strings.TrimSpace(header)) {
	case "0":
		return 0, true, nil
	case "1":
		return 1, true, nil
	case "", "infinity":
		return 0, false, nil
	}
	return 0, false, errors.New("the Depth is 0 or 1")
}

// parseProps reads the body of a PROPFIND; an empty body requests all properties.
func parseProps(body io.Reader) (props, error) {
	d := xml.NewDecoder(io.LimitReader(body, maxPropfind))
	var path []xml.Name
	p := props{all: true}
	for {
		part, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		switch t := part.(type) {
		case xml.StartElement:
			path = append(path, t.Name)
			if err := p.element(path); err != nil {
				return p, err
			}
		case xml.EndElement:
			path = path[:len(path)-1]
		}
	}
}

// element takes one element of the body, given with those around it.
func (p *props) element(path []xml.Name) error {
	last := path[len(path)-1]
	switch len(path) {
	case 1:
		if last != (xml.Name{Space: dav, Local: "propfind"}) {
			return errors.New("the body is no propfind")
		}
	case 2:
		switch last {
		case xml.Name{Space: dav, Local: "prop"}:
			p.all = false
		case xml.Name{Space: dav, Local: "propname"}:
			p.names = true
		}
	case 3:
		if path[1] != (xml.Name{Space: dav, Local: "prop"}) {
			return nil
		}
		if len(p.asked) == maxProps {
			return errors.New("too many properties")
		}
		if !writable(last.Local) {
			return errors.New("a property's name is no name")
		}
		p.asked = append(p.asked, last)
	}
	return nil
}

// writable reports whether a name can be written in a response: the decoder lets names pass that
// begin with a digit, or worse.
func writable(name string) bool {
	for i, r := range name {
		if !unicode.IsLetter(r) && r != '_' && (i == 0 || !unicode.IsDigit(r) && r != '-' && r != '.') {
			return false
		}
	}
	return name != ""
}

// propfind responds to PROPFIND with the properties of a file or folder, and of its members.
func (s *Server) propfind(r *Request) {
	depth, finite, err := depthOf(r.Header.Get("Depth"))
	if err != nil {
		r.Fail(http.StatusBadRequest, err.Error())
		return
	}
	if !r.Must(token.Stat, r.Name) {
		return
	}
	p, err := parseProps(r.Body)
	if err != nil {
		r.Fail(http.StatusBadRequest, "the body cannot be read as a propfind")
		return
	}
	e, err := s.tree.stat(r.Name)
	if err == nil && r.Folder && !e.dir {
		err = fs.ErrNotExist
	}
	if err != nil {
		r.FailWith(err)
		return
	}
	if e.dir && depth > 0 && !r.Must(token.List, r.Name) {
		return
	}
	r.w.Header().Set("Content-Type", `application/xml; charset="utf-8"`)
	if !finite && e.dir {
		r.w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(r.Text(), xml.Header+`<D:error xmlns:D="DAV:"><D:propfind-finite-depth/></D:error>`+"\n")
		return
	}
	r.w.WriteHeader(http.StatusMultiStatus)
	r.broken(s.multistatus(r, e, depth, p))
}

func (s *Server) multistatus(r *Request, e entry, depth int, p props) error {
	out := bufio.NewWriterSize(r.Text(), 32<<10)
	_, _ = out.WriteString(xml.Header + `<D:multistatus xmlns:D="DAV:">` + "\n") // errors stay with out
	respond(out, r.Name, e, p)
	if depth == 1 && e.dir {
		err := s.tree.list(r.Name, func(child entry) error {
			respond(out, path.Join(r.Name, child.name), child, p)
			_, err := out.Write(nil)
			return err
		})
		if err != nil {
			return err
		}
	}
	_, _ = out.WriteString("</D:multistatus>\n")
	return out.Flush()
}

// respond writes the properties of one file or folder.
func respond(out *bufio.Writer, name string, e entry, p props) {
	_, _ = out.WriteString("<D:response><D:href>" + escape(href(name, e.dir)) + "</D:href>")
	found, missing := "", ""
	if p.all || p.names {
		for _, known := range knownProps() {
			if value, ok := e.prop(known, name); ok {
				found += element(known, value, p.names)
			}
		}
	}
	for _, asked := range p.asked {
		value, ok := "", false
		if asked.Space == dav {
			value, ok = e.prop(asked.Local, name)
		}
		if ok {
			found += element(asked.Local, value, false)
		} else {
			missing += "<" + asked.Local + ` xmlns="` + escape(asked.Space) + `"/>`
		}
	}
	propstat(out, found, "200 OK", missing == "")
	propstat(out, missing, "404 Not Found", false)
	_, _ = out.WriteString("</D:response>\n")
}

func propstat(out *bufio.Writer, elements, status string, always bool) {
	if elements != "" || always {
		_, _ = out.WriteString("<D:propstat><D:prop>" + elements + "</D:prop><D:status>HTTP/1.1 " + status + "</D:status></D:propstat>")
	}
}

func element(local, value string, empty bool) string {
	if empty || value == "" {
		return "<D:" + local + "/>"
	}
	return "<D:" + local + ">" + value + "</D:" + local + ">"
}

func knownProps() []string {
	return []string{"resourcetype", "displayname", "getcontentlength", "getcontenttype", "getetag", "getlastmodified"}
}

// prop returns a property in the form of XML.
func (e entry) prop(local, name string) (value string, ok bool) {
	switch local {
	case "resourcetype":
		if e.dir {
			return "<D:collection/>", true
		}
		return "", true
	case "displayname":
		return escape(path.Base(name)), true
	case "getlastmodified":
		return e.modified.UTC().Format(http.TimeFormat), true
	}
	if e.dir {
		return "", false
	}
	switch local {
	case "getcontentlength":
		return strconv.FormatInt(e.size, 10), true
	case "getcontenttype":
		return "application/octet-stream", true
	case "getetag":
		return escape(e.etag()), true
	case "creationdate":
		return e.modified.UTC().Format(time.RFC3339), true
	}
	return "", false
}

// href returns the path of a name, escaped for a URL.
func href(name string, dir bool) string {
	if name == "." {
		return "/"
	}
	p := (&url.URL{Path: "/" + name}).EscapedPath()
	if dir {
		p += "/"
	}
	return p
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}
