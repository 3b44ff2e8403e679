package webdav

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/net/html"

	"weir/storage"
	"weir/storage/wireclient"
)

// listIndex reads the listing that a server makes for browsers: in JSON, as nginx (autoindex_format json) and Caddy
// write it, or the links of an HTML page.
func (x *call) listIndex() error {
	r := request{method: http.MethodGet, path: x.Op.Path, slash: true, extra: "Accept: application/json, text/html;q=0.9, */*;q=0.1\r\n"}
	l, err := x.wire.do(&r)
	if err != nil {
		return err
	}
	ctype, _, _ := strings.Cut(strings.ToLower(string(x.wire.head.ctype)), ";")
	switch ctype = strings.TrimSpace(ctype); {
	case !x.wire.head.ok():
		err = x.noIndex(l)
	case x.elsewhere(l, &r) != "":
		err = &storage.RedirectError{To: x.elsewhere(l, &r)}
		x.wire.skip(l)
	case ctype == "application/json":
		x.Reach(storage.Opened)
		err = x.listBody(l, parseIndex)
	case ctype == "text/html" || ctype == "application/xhtml+xml":
		err = x.listPage(l, &r)
	default:
		x.wire.skip(l)
		err = fmt.Errorf("%w: the folder is answered with content of type %.60q, not with a listing in JSON or HTML: %w", storage.ErrNoListing,
			ctype, errors.ErrUnsupported)
	}
	if x.Op.Path == "" && (errors.Is(err, storage.ErrNoListing) || errors.Is(err, storage.ErrProtocol) || errors.Is(err, errNotThere)) &&
		x.isFile() {
		return fmt.Errorf("the target is a file: %w", syscall.ENOTDIR)
	}
	return err
}

// elsewhere returns the URL, without query, at which the folder was found after redirects, or "" if
// it is the folder's own URL. Names in a listing of another place are not names below the target.
func (x *call) elsewhere(l *link, r *request) string {
	at := withoutQuery(x.wire.current(r))
	if l.origin == x.s.home && sameFolder(at, withoutQuery(string(x.wire.appendTarget(nil, r)))) {
		return ""
	}
	return l.origin.scheme() + "://" + l.origin.authority + at
}

// listPage reads a listing in HTML.
func (x *call) listPage(l *link, r *request) error {
	x.Reach(storage.Opened)
	base, err := url.Parse(l.origin.scheme() + "://" + l.origin.authority + x.wire.current(r))
	if err != nil {
		x.wire.skip(l)
		return wireclient.ProtocolError("listing: %v", err)
	}
	x.Result.Incomplete = true
	ends := x.wire.body.framing != byClose
	return x.listBody(l, func(body io.Reader) (wireclient.Listing, error) { return parsePage(body, base, ends) })
}

func withoutQuery(text string) string {
	text, _, _ = strings.Cut(text, "?")
	return text
}

// errNotThere marks a GET of a folder with the response 404.
var errNotThere = errors.New("no such folder")

// noIndex returns the error of a response to a GET of a folder. Servers without listings refuse it
// with 403 (nginx, Apache, lighttpd) or 404 (Caddy).
func (x *call) noIndex(l *link) error {
	status := x.wire.head.status
	err := x.refuse(l)
	switch status {
	case http.StatusForbidden:
		return fmt.Errorf("%w: %w", storage.ErrNoListing, err)
	case http.StatusNotFound:
		return fmt.Errorf("%w: %w", errNotThere, err)
	}
	return err
}

// isFile reports whether the target itself is a file: requested without a slash at its end, it
// exists and is not redirected to a folder.
func (x *call) isFile() bool {
	r := request{method: http.MethodHead, bare: true}
	l, err := x.wire.do(&r)
	if err != nil {
		return false
	}
	x.wire.finish(l)
	return x.wire.head.ok() && !strings.HasSuffix(withoutQuery(x.wire.current(&r)), "/")
}

// parseIndex reads a listing in JSON, as nginx or Caddy writes it.
func parseIndex(r io.Reader) (l wireclient.Listing, err error) {
	part := &portions{r, maxEntry}
	d := json.NewDecoder(part)
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return l, wireclient.ProtocolError("listing: no list: %v %v", t, err)
	}
	var found wireclient.Listing
	for d.More() {
		var item indexItem
		if err := d.Decode(&item); err != nil {
			return l, listingError(err)
		}
		part.next()
		if err := damaged(item.Name); err != nil {
			found.Omit(err)
		} else if err := found.Add(item.entry()); err != nil {
			return l, err
		}
	}
	if _, err := d.Token(); err != nil {
		return l, listingError(err)
	}
	return found, nil
}

// An indexItem is an entry of a listing in JSON. Type is nginx's, IsDir and IsSymlink are Caddy's,
// which also appends a slash to the names of folders and reports a link's own size.
type indexItem struct {
	Name      string
	Type      string
	Size      *int64
	IsDir     bool `json:"is_dir"`
	IsSymlink bool `json:"is_symlink"`
}

func (i *indexItem) entry() storage.Entry {
	e := storage.Entry{Size: -1, Dir: i.IsDir || i.Type == "directory"}
	if e.Name = i.Name; e.Dir {
		e.Name = strings.TrimSuffix(i.Name, "/")
	}
	if i.Size != nil && *i.Size >= 0 && !e.Dir && !i.IsSymlink {
		e.Size = *i.Size
	}
	return e
}

// maxPage is the largest listing in HTML that is read, in bytes.
const maxPage = 64 << 20

// parsePage returns the entries of a folder, which are the links of its HTML page. at is the URL of
// the page; ends is false if the end of the connection ended it. Only links to direct children
// count: same scheme, host and port, no query, one more path element. A path that ends in a slash
// is a folder. Sizes on such pages are rounded, so they are not returned.
func parsePage(r io.Reader, at *url.URL, ends bool) (l wireclient.Listing, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxPage+1))
	if err != nil {
		return l, listingError(err)
	}
	if len(text) > maxPage {
		return l, wireclient.ProtocolError("a listing in HTML of more than %d bytes", maxPage)
	}
	hrefs, base, whole := links(text, at)
	if !whole && !ends {
		return l, fmt.Errorf("%w: the page of the listing has no end", storage.ErrShort)
	}
	seen := map[string]int{} // index of an entry, by its name
	var found wireclient.Listing
	for _, href := range hrefs {
		e, ok := linked(href, base, at)
		if !ok {
			continue
		}
		if i, twice := seen[e.Name]; twice { // a link of an icon may lack the slash
			if i < len(found.Entries) && e.Dir {
				found.Entries[i].Dir = true
			}
			continue
		}
		seen[e.Name] = len(found.Entries)
		if err := found.Add(e); err != nil {
			return l, err
		}
	}
	return found, nil
}

// links returns the targets of the links of a page, and the URL that they are relative to. whole is false if the page is cut off: it
// ends in a tag, or its element html does not end.
func links(text []byte, at *url.URL) (hrefs []string, base *url.URL, whole bool) {
	open := false
	page := html.NewTokenizer(bytes.NewReader(text))
	for {
		kind := page.Next()
		if kind == html.ErrorToken {
			if base == nil {
				base = at
			}
			return hrefs, base, !open && len(page.Raw()) == 0
		}
		name, more := page.TagName()
		switch string(name) {
		case "html":
			open = kind == html.StartTagToken
		case "a":
			if href, ok := hrefOf(page, more); ok && kind != html.EndTagToken {
				hrefs = append(hrefs, href)
			}
		case "base":
			if href, ok := hrefOf(page, more); ok && base == nil {
				base, _ = at.Parse(strings.TrimSpace(href)) // nil if it is no URL
			}
		}
	}
}

// hrefOf returns the attribute href of the current tag.
func hrefOf(page *html.Tokenizer, more bool) (string, bool) {
	for more {
		var key, value []byte
		if key, value, more = page.TagAttr(); string(key) == "href" {
			return string(value), true
		}
	}
	return "", false
}

// linked returns the entry that a link on the page at leads to, relative to base. ok is false if it is not a direct child of the folder.
func linked(href string, base, at *url.URL) (e storage.Entry, ok bool) {
	to, err := resolve(strings.TrimSpace(href), base)
	if err != nil || to.Scheme != at.Scheme || to.Host != at.Host || to.User != nil || to.RawQuery != "" || to.ForceQuery ||
		to.Fragment != "" {
		return e, false
	}
	path := to.EscapedPath()
	folder, name := splitPath(canonical(path))
	page := at.EscapedPath()
	if folder != canonical(page[:strings.LastIndexByte(page, '/')+1]) {
		return e, false
	}
	name, err = url.PathUnescape(name)
	return storage.Entry{Name: name, Size: -1, Dir: strings.HasSuffix(path, "/")}, err == nil && name != "" && name != ".."
}

// resolve returns the URL of a link. Servers do not escape names: text before a colon is a scheme
// only if it is one of linkSchemes, and a percent sign without an escape sequence stands for
// itself.
func resolve(href string, base *url.URL) (*url.URL, error) {
	before, _, ok := strings.Cut(href, ":")
	if ok && !strings.ContainsAny(before, "/?#") && !slices.Contains(linkSchemes(), strings.ToLower(before)) {
		href = "./" + href
	}
	to, err := base.Parse(href)
	if err != nil {
		return base.Parse(strings.ReplaceAll(href, "%", "%25"))
	}
	return to, nil
}

// linkSchemes returns the schemes of links on pages.
func linkSchemes() []string {
	return []string{"http", "https", "dav", "davs", "ftp", "mailto", "javascript", "data", "tel", "sms", "file", "about", "blob", "urn",
		"news", "irc", "magnet", "xmpp", "root", "roots"}
}

// sameFolder reports whether two escaped paths name the same folder, in any spelling.
func sameFolder(a, b string) bool { return canonical(a) == canonical(b) }
