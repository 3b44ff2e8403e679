package webdav

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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
	l, err := x.exchange(&r)
	if err != nil {
		return err
	}
	ctype, _, _ := strings.Cut(strings.ToLower(string(x.head.ctype)), ";")
	switch ctype = strings.TrimSpace(ctype); {
	case x.head.status != http.StatusOK:
		err = x.noIndex(l)
	case x.elsewhere(l, &r) != "":
		err = &storage.RedirectError{To: x.elsewhere(l, &r)}
		x.skip(l)
	case ctype == "application/json":
		x.Reach(storage.Opened)
		err = x.listBody(l, parseIndex)
	case ctype == "text/html" || ctype == "application/xhtml+xml":
		err = x.listPage(l, &r)
	default:
		x.skip(l)
		err = fmt.Errorf("%w: the folder is answered with content of type %.60q, not with a listing in JSON or HTML: %w", storage.ErrNoListing,
			ctype, errors.ErrUnsupported)
	}
	if x.Op.Path == "" && (errors.Is(err, storage.ErrNoListing) || errors.Is(err, storage.ErrProtocol) || errors.Is(err, errNotThere)) &&
		x.isFile() {
		return fmt.Errorf("the target is a file: %w", syscall.ENOTDIR)
	}
	return err
}

// elsewhere returns the URL, without query, at which the folder was found after redirects, or "" if that is its
// own. Names of a listing of another place are no names below the target.
func (x *call) elsewhere(l *link, r *request) string {
	at := withoutQuery(x.current(r))
	if l.origin == x.c.s.home && sameFolder(at, withoutQuery(string(x.appendTarget(nil, r)))) {
		return ""
	}
	return l.origin.scheme() + "://" + l.origin.authority + at
}

// listPage reads a listing in HTML.
func (x *call) listPage(l *link, r *request) error {
	x.Reach(storage.Opened)
	base, err := url.Parse(l.origin.scheme() + "://" + l.origin.authority + x.current(r))
	if err != nil {
		x.skip(l)
		return wireclient.ProtocolError("listing: %v", err)
	}
	x.Result.Incomplete = true
	return x.listBody(l, func(body io.Reader) ([]storage.Entry, error) { return parsePage(body, base) })
}

func withoutQuery(text string) string {
	text, _, _ = strings.Cut(text, "?")
	return text
}

// errNotThere marks a GET of a folder that was answered with 404.
var errNotThere = errors.New("no such folder")

// noIndex makes an error of an answer to a GET of a folder. Servers that make no listings refuse it with 403
// (nginx, Apache, lighttpd) or 404 (Caddy).
func (x *call) noIndex(l *link) error {
	status := x.head.status
	err := x.refuse(l)
	switch status {
	case http.StatusForbidden:
		return fmt.Errorf("%w: %w", storage.ErrNoListing, err)
	case http.StatusNotFound:
		return fmt.Errorf("%w: %w", errNotThere, err)
	}
	return err
}

// isFile reports whether the target itself is a file: asked without a slash at its end, it is there and does not
// become a folder by a redirect.
func (x *call) isFile() bool {
	r := request{method: http.MethodHead, bare: true}
	l, err := x.exchange(&r)
	if err != nil {
		return false
	}
	x.finish(l)
	return x.head.status == http.StatusOK && !strings.HasSuffix(withoutQuery(x.current(&r)), "/")
}

// parseIndex reads a listing in JSON, as nginx or Caddy writes it.
func parseIndex(r io.Reader) ([]storage.Entry, error) {
	part := &portions{r, maxEntry}
	d := json.NewDecoder(part)
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, wireclient.ProtocolError("listing: no list: %v %v", t, err)
	}
	var entries []storage.Entry
	for d.More() {
		var item indexItem
		if err := d.Decode(&item); err != nil {
			return nil, listingError(err)
		}
		part.next()
		var err error
		if entries, err = wireclient.AppendEntry(entries, item.entry()); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, listingError(err)
	}
	return entries, nil
}

// An indexItem is an entry of a listing in JSON. Type is nginx's, IsDir and IsSymlink are Caddy's, which also ends
// the names of folders with a slash and gives of a link its own size.
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

// parsePage returns the entries of a folder, which are the links of its HTML page. base is the URL of the page.
// Only links to direct children count: same scheme, host and port, no query, one more path element. A path that
// ends in a slash is a folder. Sizes on such pages are rounded, so none are returned.
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
		seen[e.Name] = true
		if entries, err = wireclient.AppendEntry(entries, e); err != nil {
			return nil, err
		}
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

// linked returns the entry that a link on the page at base leads to. ok is false if it is not a direct child of the
// folder.
func linked(href string, base *url.URL) (e storage.Entry, ok bool) {
	to, err := base.Parse(strings.TrimSpace(href))
	if err != nil || to.Scheme != base.Scheme || to.Host != base.Host || to.User != nil || to.RawQuery != "" || to.ForceQuery ||
		to.Fragment != "" {
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
	return storage.Entry{Name: name, Size: -1, Dir: dir}, err == nil && wireclient.CheckEntry(name) == nil
}

// sameFolder reports whether two escaped paths name the same folder, whichever characters they escape.
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
