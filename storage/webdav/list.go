package webdav

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"weir/storage"
	"weir/storage/wireclient"
)

// Limits of a listing. One entry has at most maxEntry bytes, whatever else stands between it and the one before
// included: a name or a nest of elements that does not end must not fill the memory.
const (
	maxListing = 1 << 29
	maxEntry   = 1 << 20
)

var errLongEntry = wireclient.ProtocolError("listing: an entry of more than %d bytes", maxEntry)

// portions is a reader that fails when too much is read before the next entry.
type portions struct {
	r    io.Reader
	left int
}

func (p *portions) next() { p.left = maxEntry }

func (p *portions) Read(b []byte) (int, error) {
	if p.left <= 0 {
		return 0, errLongEntry
	}
	n, err := p.r.Read(b[:min(len(b), p.left)])
	p.left -= n
	return n, err
}

const propfind = `<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/></prop></propfind>`

// list is PROPFIND or, where that gives no listing, a GET of the folder.
func (x *call) list() error {
	if x.c.s.noPropfind.Load() {
		return x.listIndex()
	}
	l, err := x.exchange(&request{
		method: "PROPFIND", path: x.Op.Path, slash: true,
		extra: "Depth: 1\r\nContent-Type: application/xml\r\n", text: propfind,
	})
	if err != nil {
		return err
	}
	status := x.head.status
	if status == http.StatusMultiStatus {
		x.Reach(storage.Opened)
		return x.listBody(l, func(r io.Reader) ([]storage.Entry, error) {
			return parseMultistatus(r, x.folder())
		})
	}
	refused := x.refuse(l)
	if errors.Is(refused, storage.ErrBusy) || !indexed(status) { // XRootD's busy is of this request only
		return refused
	}
	err = x.listIndex()
	if err == nil || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented {
		x.c.s.noPropfind.Store(true)
	}
	if status == http.StatusForbidden || status == http.StatusNotFound {
		if err != nil && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, storage.ErrRedirected) {
			return refused
		}
	}
	return err
}

// indexed reports whether a server that answers PROPFIND with status may still have a listing for browsers. Caddy
// answers any method with 200.
func indexed(status int) bool {
	switch status {
	case http.StatusOK, http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		return true
	}
	return false
}

// folder returns the path that the listing is about, as hrefs have it.
func (x *call) folder() string {
	path := string(x.path)
	if path == "" {
		path = string(x.appendTarget(nil, &request{path: x.Op.Path, slash: true}))
	}
	path, _, _ = strings.Cut(path, "?")
	if u, err := url.PathUnescape(path); err == nil {
		return u
	}
	return path
}

// listBody gives the body to a parser and the entries to the result.
func (x *call) listBody(l *link, parse func(io.Reader) ([]storage.Entry, error)) error {
	entries, err := parse(io.LimitReader(bodyReader{x, l}, maxListing))
	if err != nil {
		x.drop(l)
		return err
	}
	x.skip(l)
	x.Result.Entries = entries
	return nil
}

type bodyReader struct {
	x *call
	l *link
}

func (r bodyReader) Read(p []byte) (int, error) { return r.x.readBody(r.l, p) }

// A response is one element of a multistatus (RFC 4918, 14.24).
type response struct {
	Href     string `xml:"DAV: href"`
	Propstat []struct {
		Status string `xml:"DAV: status"`
		Prop   struct {
			Length string `xml:"DAV: getcontentlength"`
			Type   struct {
				Collection *struct{} `xml:"DAV: collection"`
			} `xml:"DAV: resourcetype"`
		} `xml:"DAV: prop"`
	} `xml:"DAV: propstat"`
}

func (r *response) entry() (e storage.Entry) {
	e.Size = -1
	for i := range r.Propstat {
		p := &r.Propstat[i]
		if p.Status != "" && !strings.Contains(p.Status, " 200") {
			continue
		}
		if n, ok := wireclient.Decimal([]byte(strings.TrimSpace(p.Prop.Length))); ok {
			e.Size = n
		}
		e.Dir = e.Dir || p.Prop.Type.Collection != nil
	}
	if e.Dir {
		e.Size = -1 // what servers report on a folder is the size of something else
	}
	return e
}

// elements calls f with each element of a listing in XML; decode reads the whole of that element, and what stands in it is no element
// for f then.
func elements(r io.Reader, f func(name string, decode func(any) error) error) error {
	part := &portions{r, maxEntry}
	d := xml.NewDecoder(part)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return listingError(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		err = f(start.Name.Local, func(item any) error {
			if err := d.DecodeElement(item, &start); err != nil {
				return listingError(err)
			}
			part.next()
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// parseMultistatus reads the answer to a PROPFIND of folder, an unescaped path. The folder itself is not among the
// entries.
func parseMultistatus(r io.Reader, folder string) (entries []storage.Entry, err error) {
	folder = strings.Trim(folder, "/")
	err = elements(r, func(name string, decode func(any) error) error {
		if name != "response" {
			return nil
		}
		var item response
		if err := decode(&item); err != nil {
			return err
		}
		path := hrefPath(item.Href)
		e := item.entry()
		if path == folder {
			if !e.Dir {
				return syscall.ENOTDIR
			}
			return nil
		}
		e.Name = path[strings.LastIndexByte(path, '/')+1:]
		entries, err = wireclient.AppendEntry(entries, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// listingError keeps what the connection said and blames the rest on the listing.
func listingError(err error) error {
	var syntax *xml.SyntaxError
	var broken *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	var number *strconv.NumError
	if errors.Is(err, errLongEntry) {
		return errLongEntry
	}
	if errors.As(err, &syntax) || errors.As(err, &broken) || errors.As(err, &wrong) || errors.As(err, &number) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return wireclient.ProtocolError("listing: %v", err)
	}
	return fmt.Errorf("listing: %w", err)
}

// hrefPath returns the unescaped path of an href, without slashes at its ends. XRootD 5.5 writes paths unescaped,
// as they are: that shows when they have characters that no URL has, or a percent sign that escapes nothing. An
// href of a listing has no query, so a question mark belongs to the path.
func hrefPath(href string) string {
	path := strings.TrimSpace(href)
	if _, rest, ok := strings.Cut(path, "://"); ok && !strings.HasPrefix(path, "/") {
		path = rest[max(0, strings.IndexByte(rest, '/')):]
	}
	unescaped, err := url.PathUnescape(path)
	if err != nil || strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		unescaped = path
	}
	return strings.Trim(unescaped, "/")
}
