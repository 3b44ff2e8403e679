package webdav

import (
	"bytes"
	"errors"
	"html"
	"io"
	"net/url"
	"strings"

	"weir/storage"
)

// maxPage bounds a listing in HTML, in bytes.
const maxPage = 64 << 20

// parsePage reads the entries of a folder from the links of its HTML page. base is
// the URL of the page. Only links to what lies directly in the folder count: same
// scheme, host and port, no query, one path element more; one that ends in a slash
// is a folder. Sizes in such pages are rounded, so there are none.
func parsePage(r io.Reader, base *url.URL) ([]storage.Entry, error) {
	page, err := io.ReadAll(io.LimitReader(r, maxPage+1))
	if err != nil {
		return nil, listingError(err)
	}
	if len(page) > maxPage {
		return nil, protocolError("a listing in HTML of more than %d bytes", maxPage)
	}
	var entries []storage.Entry
	seen := map[string]bool{}
	links := pageLinks{rest: page}
	for href, ok := links.next(); ok; href, ok = links.next() {
		e, ok := linked(href, base)
		if !ok || seen[e.Name] {
			continue
		}
		if len(entries) == maxEntries {
			return nil, protocolError("more than %d entries", maxEntries)
		}
		seen[e.Name] = true
		entries = append(entries, e)
	}
	return entries, nil
}

// linked returns the entry that a link of the page at base leads to; ok is false for
// links that lead elsewhere.
func linked(href string, base *url.URL) (e storage.Entry, ok bool) {
	to, err := base.Parse(strings.TrimSpace(href))
	if err != nil || to.Scheme != base.Scheme || to.Host != base.Host || to.User != nil || to.RawQuery != "" || to.ForceQuery || to.Fragment != "" {
		return e, false
	}
	path, dir := strings.CutSuffix(to.EscapedPath(), "/")
	slash := strings.LastIndexByte(path, '/')
	above := base.EscapedPath()
	above = above[:strings.LastIndexByte(above, '/')+1]
	if slash < 0 || !sameFolder(path[:slash+1], above) {
		return e, false
	}
	name, err := url.PathUnescape(path[slash+1:])
	if err != nil {
		return e, false
	}
	if name, err = entryName(name); err != nil {
		return e, false
	}
	return storage.Entry{Name: name, Size: -1, Dir: dir}, true
}

// sameFolder compares escaped paths of folders element by element, whatever they
// escape.
func sameFolder(a, b string) bool {
	if a == b {
		return true
	}
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	if len(as) != len(bs) {
		return false
	}
	for i := range as {
		x, errX := url.PathUnescape(as[i])
		y, errY := url.PathUnescape(bs[i])
		if errors.Join(errX, errY) != nil || x != y {
			return false
		}
	}
	return true
}

// pageLinks finds the links of an HTML page, one after the other.
type pageLinks struct{ rest []byte }

// next returns the address of the next link; ok is false at the end of the page.
func (p *pageLinks) next() (href string, ok bool) {
	for {
		i := bytes.IndexByte(p.rest, '<')
		if i < 0 {
			return "", false
		}
		p.rest = p.rest[i+1:]
		switch name := tagName(p.rest); {
		case bytes.HasPrefix(p.rest, []byte("!--")):
			p.skipTo("-->")
		case name == "script" || name == "style":
			p.skipTo("</" + name)
		case name == "a":
			p.rest = p.rest[1:]
			if href, ok := p.href(); ok {
				return html.UnescapeString(href), true
			}
		}
	}
}

// skipTo goes on behind the next end, in any case of its letters, or to the end of
// the page.
func (p *pageLinks) skipTo(end string) {
	for i := 0; i+len(end) <= len(p.rest); i++ {
		if p.rest[i] == end[0] && bytes.EqualFold(p.rest[i:i+len(end)], []byte(end)) {
			p.rest = p.rest[i+len(end):]
			return
		}
	}
	p.rest = nil
}

// tagName returns the name of the tag that begins here, in lower case; names of
// other tags than matter may be cut short.
func tagName(b []byte) string {
	n := 0
	for n < len(b) && n < len("script")+1 && (b[n]|0x20 >= 'a' && b[n]|0x20 <= 'z') {
		n++
	}
	return strings.ToLower(string(b[:n]))
}

// href reads the attributes of a tag up to its end and returns the value of href, as
// it is written.
func (p *pageLinks) href() (value string, found bool) {
	for {
		p.rest = bytes.TrimLeft(p.rest, " \t\r\n\f/")
		if len(p.rest) == 0 || p.rest[0] == '>' || p.rest[0] == '<' {
			return value, found
		}
		n := bytes.IndexAny(p.rest, " \t\r\n\f/>=<")
		switch {
		case n < 0:
			n = len(p.rest)
		case n == 0: // an equals sign without a name
			n = 1
		}
		name := p.rest[:n]
		p.rest = bytes.TrimLeft(p.rest[n:], " \t\r\n\f")
		if len(p.rest) == 0 || p.rest[0] != '=' {
			continue
		}
		p.rest = bytes.TrimLeft(p.rest[1:], " \t\r\n\f")
		v := p.value()
		if !found && bytes.EqualFold(name, []byte("href")) {
			value, found = string(v), true
		}
	}
}

// value reads the value of an attribute, with or without quotes.
func (p *pageLinks) value() []byte {
	if len(p.rest) == 0 {
		return nil
	}
	var v []byte
	if quote := p.rest[0]; quote == '"' || quote == '\'' {
		v, p.rest, _ = bytes.Cut(p.rest[1:], []byte{quote})
		return v
	}
	n := bytes.IndexAny(p.rest, " \t\r\n\f>")
	if n < 0 {
		n = len(p.rest)
	}
	v, p.rest = p.rest[:n], p.rest[n:]
	return v
}
