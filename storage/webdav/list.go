package webdav

import (
	"bufio"
	"cmp"
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
	"unicode/utf8"

	"weir/storage"
	"weir/storage/wireclient"
)

// Limits of a listing. One entry has at most maxEntry bytes, including all text between it and the
// previous entry: a name or a nest of elements without an end must not fill the memory.
const (
	maxListing = 1 << 29
	maxEntry   = 1 << 20
)

var errLongEntry = wireclient.ProtocolError("listing: an entry of more than %d bytes", maxEntry)

// portions is a reader that fails if too much is read before the next entry.
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

// list uses PROPFIND or, if that returns no listing, a GET of the folder.
func (x *call) list() error {
	if x.s.noPropfind.Load() {
		return x.listIndex()
	}
	l, err := x.wire.do(&request{
		method: "PROPFIND", path: x.Op.Path, slash: true,
		extra: "Depth: 1\r\nContent-Type: application/xml\r\n", text: propfind,
	})
	if err != nil {
		return err
	}
	status := x.wire.head.status
	if status == http.StatusMultiStatus {
		x.Reach(storage.Opened)
		return x.listBody(l, func(r io.Reader) (wireclient.Listing, error) {
			return parseMultistatus(r, x.folder())
		})
	}
	refused := x.refuse(l)
	if errors.Is(refused, storage.ErrBusy) || !indexed(status) { // XRootD's busy concerns this request only
		return refused
	}
	err = x.listIndex()
	if err == nil || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented {
		x.s.noPropfind.Store(true)
	}
	if status == http.StatusForbidden || status == http.StatusNotFound {
		if err != nil && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, storage.ErrRedirected) {
			return refused
		}
	}
	return err
}

// indexed reports whether a server may still have a listing for browsers if its response to
// PROPFIND has this status. Caddy's response to any method is 200.
func indexed(status int) bool {
	switch status {
	case http.StatusOK, http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		return true
	}
	return false
}

// folder returns the escaped path of the listed folder.
func (x *call) folder() string {
	return withoutQuery(x.wire.current(&request{path: x.Op.Path, slash: true}))
}

// listBody passes the body to a parser and the entries to the result.
func (x *call) listBody(l *link, parse func(io.Reader) (wireclient.Listing, error)) error {
	listing, err := parse(io.LimitReader(bodyReader{&x.wire.answer, l}, maxListing))
	if err != nil {
		x.wire.drop(l)
		return err
	}
	x.wire.skip(l)
	x.SetListing(listing)
	return nil
}

type bodyReader struct {
	a *answer
	l *link
}

func (r bodyReader) Read(p []byte) (int, error) { return r.a.readBody(r.l, p) }

// A response is one element of a multistatus (RFC 4918, 14.24).
type response struct {
	Href     string `xml:"DAV: href"`
	Status   string `xml:"DAV: status"` // instead of Propstat
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
		e.Size = -1 // servers report an unrelated size for a folder
	}
	return e
}

// elements calls f with each element of a listing in XML, whose outermost element is root; decode
// reads the whole element, and f is not called with the elements in it then. Characters that XML
// cannot have are U+FFFD.
func elements(r io.Reader, root string, f func(name string, decode func(any) error) error) error {
	part := &portions{r, maxEntry}
	d := xml.NewDecoder(&characters{bufio.NewReader(part)})
	for depth := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && depth > 0 {
			return nil
		}
		if err != nil {
			return listingError(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if depth++; depth == 1 && start.Name.Local != root {
			return wireclient.ProtocolError("listing: it begins with <%.60s> where <%s> was expected", start.Name.Local, root)
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

// errDamaged is the reason to leave out a name that arrived with U+FFFD, which replaces characters
// that the listing cannot have.
var errDamaged = errors.New("it has characters that the listing cannot carry")

// damaged returns an error if the raw text of a name was damaged on its way.
func damaged(text string) error {
	if !strings.ContainsRune(text, utf8.RuneError) {
		return nil
	}
	return fmt.Errorf("%.200q: %w", text, errDamaged)
}

// characters is a reader of XML that replaces characters that XML 1.0 does not allow by U+FFFD:
// control characters, raw or as references, and bytes that are not UTF-8. They occur in names of
// files.
type characters struct{ r *bufio.Reader }

// Read implements io.Reader.
func (c *characters) Read(p []byte) (n int, err error) {
	for n+utf8.UTFMax <= len(p) {
		n += c.plain(p[n:])
		if n > 0 && (c.r.Buffered() == 0 || n+utf8.UTFMax > len(p)) {
			return n, nil
		}
		char, size, err := c.r.ReadRune()
		if err != nil {
			if n > 0 {
				return n, nil // and err in the next call
			}
			return 0, err
		}
		if char == '&' {
			char = c.reference()
		}
		if char == utf8.RuneError && size == 1 || !allowed(char) {
			char = utf8.RuneError
		}
		n += utf8.EncodeRune(p[n:], char)
	}
	return n, nil
}

// plain copies buffered text up to the first character that may have to be replaced.
func (c *characters) plain(p []byte) int {
	text, _ := c.r.Peek(min(c.r.Buffered(), len(p))) // it is buffered
	n := 0
	for n < len(text) && (text[n] >= ' ' && text[n] < utf8.RuneSelf && text[n] != '&' || text[n] == '\n') {
		n++
	}
	copy(p, text[:n])
	_, _ = c.r.Discard(n)
	return n
}

// reference reads the text after an ampersand if it is a reference to a character that is not
// allowed, and returns that character. Otherwise it returns the ampersand.
func (c *characters) reference() rune {
	const longest = len("#x10FFFF;")
	text, _ := c.r.Peek(longest) // fewer at the end
	body, _, ended := strings.Cut(string(text), ";")
	digits, numeric := strings.CutPrefix(body, "#")
	base := 10
	if hex, ok := strings.CutPrefix(digits, "x"); ok {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(digits, base, 31)
	if !ended || !numeric || err != nil || allowed(rune(n)) {
		return '&'
	}
	_, _ = c.r.Discard(len(body) + 1) // it was buffered
	return rune(n)
}

// allowed reports whether XML 1.0 allows a character (section 2.2).
func allowed(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 && r <= utf8.MaxRune
}

// A member is an entry of a multistatus at its canonical path.
type member struct {
	path string
	storage.Entry
	omit error // the reason to leave it out
}

// parseMultistatus reads the response to a PROPFIND of folder, an escaped path. The folder itself
// is not among the entries. If a proxy has renamed folders, the paths are the names on the server
// behind it.
func parseMultistatus(r io.Reader, folder string) (l wireclient.Listing, err error) {
	var all []member
	folder = canonical(folder)
	err = elements(r, "multistatus", func(name string, decode func(any) error) error {
		if name != "response" {
			return nil
		}
		var item response
		if err := decode(&item); err != nil {
			return err
		}
		if len(all) > wireclient.MaxEntries {
			return wireclient.ProtocolError("more than %d entries", wireclient.MaxEntries)
		}
		m := member{path: hrefPath(item.Href, folder), Entry: item.entry(), omit: damaged(item.Href)}
		switch status, failed := item.failed(); {
		case status == http.StatusInsufficientStorage: // RFC 5323, 5.4.2
			return wireclient.ProtocolError("the server cut the listing off: status 507 of %.200q", item.Href)
		case failed && m.omit == nil:
			m.omit = fmt.Errorf("%.200q has the status %.40q: %w", item.Href, item.Status, cmp.Or(storage.HTTPError(status), storage.ErrServer))
		}
		all = append(all, m)
		return nil
	})
	if err != nil {
		return l, err
	}
	base := baseOf(all, folder)
	for i := range all {
		if err := all[i].addTo(&l, base); err != nil {
			return wireclient.Listing{}, err
		}
	}
	return l, nil
}

// failed returns the status of a response as a whole, and whether it is a failure.
func (r *response) failed() (status int, failed bool) {
	if fields := strings.Fields(r.Status); len(fields) > 1 {
		status, _ = strconv.Atoi(fields[1]) // zero without a number
	}
	return status, r.Status != "" && status/100 != 2
}

// baseOf returns the path of the listed folder in the listing: that of the request, or else that of
// the first entry, which is the folder itself.
func baseOf(all []member, folder string) string {
	for i := range all {
		if isIn(all[i].path, folder) {
			return folder
		}
	}
	if len(all) > 0 && (all[0].Dir || len(all) == 1) {
		return all[0].path
	}
	return folder
}

// addTo adds m to the listing of the folder with the path base.
func (m *member) addTo(l *wireclient.Listing, base string) (err error) {
	if m.path == base {
		switch {
		case m.omit != nil:
			return m.omit
		case !m.Dir:
			return syscall.ENOTDIR
		}
		return nil
	}
	above, name := splitPath(m.path)
	switch {
	case m.omit != nil:
		l.Omit(m.omit)
	case above != base:
		l.Omit(wireclient.ProtocolError("/%.200s is not an entry of /%.200s", m.path, base))
	default:
		if m.Name, err = url.PathUnescape(name); err != nil {
			l.Omit(err)
			return nil
		}
		return l.Add(m.Entry)
	}
	return nil
}

// listingError returns errors of the connection unchanged and attributes all others to the listing.
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

// hrefPath returns the canonical path of an href in the listing of folder. XRootD 5.5 does not
// escape paths: this is detected if they have characters that no URL has, or a percent sign without
// an escape sequence, or if only the unescaped path is in the folder. An href of a listing has no
// query, so a question mark belongs to the path.
func hrefPath(href, folder string) string {
	path := strings.TrimSpace(href)
	if !strings.HasPrefix(path, "/") {
		if _, rest, ok := strings.Cut(path, "://"); ok {
			path = rest[max(0, strings.IndexByte(rest, '/')):]
		} else {
			path = "/" + folder + "/" + path
		}
	}
	escaped, literal := canonical(path), canonical(strings.ReplaceAll(path, "%", "%25"))
	_, err := url.PathUnescape(path)
	if err != nil || strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f }) ||
		!isIn(escaped, folder) && isIn(literal, folder) {
		return literal
	}
	return escaped
}

// isIn reports whether a canonical path is that of folder, or of an entry of it.
func isIn(path, folder string) bool {
	above, _ := splitPath(path)
	return path == folder || above == folder
}

// canonical returns the canonical form of an escaped path: without slashes at its ends, empty parts
// and parts that are a dot, and with only the necessary characters escaped.
func canonical(path string) string {
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if plain, err := url.PathUnescape(part); err == nil {
			part = url.PathEscape(plain)
		}
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// splitPath returns the folder and the name of a canonical path.
func splitPath(path string) (folder, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}
