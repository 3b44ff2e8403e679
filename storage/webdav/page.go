package webdav

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"weir/storage"
	"weir/storage/wireclient"
)

// maxPage is the largest listing in HTML that is read, in bytes.
const maxPage = 64 << 20

// parsePage returns the entries of a folder, which are the links of its HTML
// page. base is the URL of the page. Only links to direct children count: same
// scheme, host and port, no query, one more path element. A path that ends in a
// slash is a folder. Sizes on such pages are rounded, so none are returned.
func parsePage(r io.Reader, base *url.URL) ([]storage.Entry, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxPage+1))
	if err != nil {
		return nil, listingError(err)
	}
	if len(text) > maxPage {
		return nil, wireclient.ProtocolError("a listing in HTML of more than %d bytes", maxPage)
	}
	var entries []storage.Entry
	seen := map[string]bool{}
	page := html.NewTokenizer(bytes.NewReader(text))
	for {
		href, found := nextLink(page)
		if !found {
			return entries, nil
		}
		e, ok := linked(href, base)
		if !ok || seen[e.Name] {
			continue
		}
		if len(entries) == wireclient.MaxEntries {
			return nil, wireclient.ProtocolError("more than %d entries", wireclient.MaxEntries)
		}
		seen[e.Name] = true
		entries = append(entries, e)
	}
}

// nextLink returns the target of the next link of a page. found is false at its end.
func nextLink(page *html.Tokenizer) (href string, found bool) {
	for {
		switch page.Next() {
		case html.ErrorToken:
			return "", false
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := page.TagName()
			for link := string(name) == "a"; link && more; {
				var key, value []byte
				if key, value, more = page.TagAttr(); string(key) == "href" {
					return string(value), true
				}
			}
		}
	}
}

// linked returns the entry that a link on the page at base leads to. ok is false
// if it is not a direct child of the folder.
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
	if wireclient.CheckEntry(name) != nil {
		return e, false
	}
	return storage.Entry{Name: name, Size: -1, Dir: dir}, true
}

// sameFolder reports whether two escaped paths name the same folder, whichever
// characters they escape.
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
