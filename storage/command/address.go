package command

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"weir/internal/redact"
	"weir/storage"
)

// A place is where the target is: it makes URLs and paths of files.
type place struct {
	url     *url.URL
	server  string // scheme and host
	escaped string // path of the target without a final slash, as in a URL
	plain   string // the same, unescaped
}

func newPlace(u *url.URL) (place, error) {
	if u == nil || u.Scheme == "" {
		return place{}, errors.New("the target needs a URL with a scheme")
	}
	if _, ok := u.User.Password(); ok {
		return place{}, errors.New("a password in the target's URL would stand on the command line: name a file or variable with it in auth")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return place{}, fmt.Errorf("target %s: the URL has more than a folder: leave ? and # away", redact.URL(u.String()))
	}
	if strings.ContainsRune(u.Path, 0) {
		return place{}, errors.New("the target's URL contains a NUL byte")
	}
	server := url.URL{Scheme: u.Scheme, Host: u.Host, User: u.User}
	return place{
		url:     u,
		server:  server.String(),
		escaped: strings.TrimRight(u.EscapedPath(), "/"),
		plain:   strings.TrimRight(u.Path, "/"),
	}, nil
}

// xrootd says whether u is one of XRootD's own schemes.
func (p place) xrootd() bool {
	return slices.Contains([]string{"root", "roots", "xroot", "xroots"}, p.url.Scheme)
}

// check refuses paths that name nothing below the target.
func (p place) check(op *storage.Op) error {
	switch {
	case strings.ContainsRune(op.Path, 0):
		return fmt.Errorf("path %q contains a NUL byte: %w", op.Path, fs.ErrInvalid)
	case strings.HasPrefix(op.Path, "/"):
		return fmt.Errorf("path %q begins with a slash, but paths are below the target: %w", op.Path, fs.ErrInvalid)
	case slices.Contains(strings.Split(op.Path, "/"), ".."):
		return fmt.Errorf("path %q would leave the target: %w", op.Path, fs.ErrInvalid)
	case p.xrootd() && strings.Contains(op.Path, "?"):
		return fmt.Errorf("path %q: a question mark ends the path of a %s URL: %w", op.Path, p.url.Scheme, errors.ErrUnsupported)
	}
	return nil
}

// of returns the URL of a file. XRootD's own clients take the path of their
// schemes as it is (raw), everything else wants it escaped.
func (p place) of(path string, raw bool) string {
	if raw && p.xrootd() {
		return p.server + join(p.plain, path)
	}
	parts := strings.Split(path, "/")
	for i, s := range parts {
		parts[i] = url.PathEscape(s)
	}
	return p.server + join(p.escaped, strings.Join(parts, "/"))
}

// full returns the path of a file on the server.
func (p place) full(path string) string {
	full := join(p.plain, path)
	if p.xrootd() {
		full = "/" + strings.TrimLeft(full, "/")
	}
	return full
}

func join(folder, path string) string {
	if path == "" {
		return folder
	}
	return folder + "/" + path
}

// shown is the URL that errors name.
func (p place) shown(path string) string {
	return p.of(path, false)
}
