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

// placeholders returns the placeholders that a command may contain, in the order of the manual.
func placeholders() []string {
	return []string{"url", "path", "size", "dest", "source", "offset", "length"}
}

// presetPlaceholders returns the placeholders that presets need in addition.
func presetPlaceholders() []string {
	return append(placeholders(),
		"last",     // last byte of the requested part
		"server",   // URL of the server alone
		"fullpath", // path on the server, unescaped
		"sum",      // checksum algorithm
		"config",   // curl's configuration with credentials
	)
}

// A line is a program and its arguments, understood.
type line struct {
	program string
	path    string // of the program
	dir     string // working directory; "": weir's
	args    [][]piece
}

// A piece of an argument is either text or a placeholder.
type piece struct{ text, name string }

func (l line) uses(name string) bool {
	for _, a := range l.args {
		for _, p := range a {
			if p.name == name {
				return true
			}
		}
	}
	return false
}

// parse understands argv, which may have the placeholders in known.
func parse(argv, known []string) (line, error) {
	if len(argv) == 0 || argv[0] == "" {
		return line{}, fmt.Errorf("no command: give a program with its arguments, or a preset: %s", presetNames())
	}
	l := line{program: argv[0]}
	for i, arg := range argv {
		if strings.ContainsRune(arg, 0) {
			return line{}, fmt.Errorf("command: %q: a NUL byte cannot stand in an argument", arg)
		}
		pieces, err := split(arg, known)
		if err != nil {
			return line{}, fmt.Errorf("command: %q: %w", arg, err)
		}
		if i > 0 {
			l.args = append(l.args, pieces)
			continue
		}
		if slices.ContainsFunc(pieces, func(p piece) bool { return p.name != "" }) {
			return line{}, fmt.Errorf("command: %q: the program itself cannot be a placeholder", arg)
		}
		l.program = ""
		for _, p := range pieces {
			l.program += p.text
		}
	}
	return l, nil
}

// split cuts an argument into pieces.
func split(arg string, known []string) ([]piece, error) {
	var pieces []piece
	text := ""
	for arg != "" {
		i := strings.IndexAny(arg, "{}")
		if i < 0 {
			text += arg
			break
		}
		text += arg[:i]
		brace, rest := arg[i], arg[i+1:]
		if rest != "" && rest[0] == brace { // doubled: a brace itself
			text, arg = text+string(brace), rest[1:]
			continue
		}
		if brace == '}' {
			text, arg = text+"}", rest
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, errors.New("a { without its }: write {{ for a brace itself")
		}
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown placeholder {%s}: use one of {%s}, or {{ for a brace itself", name, strings.Join(placeholders(), "} {"))
		}
		pieces = append(pieces, piece{text: text}, piece{name: name})
		text, arg = "", after
	}
	return append(pieces, piece{text: text}), nil
}

// expand makes the arguments, with the program's name as the first.
func (l line) expand(value func(name string) (string, error)) ([]string, error) {
	argv := make([]string, 0, len(l.args)+1)
	argv = append(argv, l.program)
	for _, a := range l.args {
		var b strings.Builder
		for _, p := range a {
			if p.name == "" {
				b.WriteString(p.text)
				continue
			}
			v, err := value(p.name)
			if err != nil {
				return nil, err
			}
			if p.name == "path" && b.Len() == 0 && strings.HasPrefix(v, "-") {
				v = "./" + v
			}
			b.WriteString(v)
		}
		argv = append(argv, b.String())
	}
	return argv, nil
}

// A place is the address of the target: it makes URLs and paths of files.
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

// xrootd reports whether u has one of XRootD's own schemes.
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

// of returns the URL of a file. XRootD's own clients take the path of their schemes unchanged
// (raw), all other clients need it escaped.
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

// shown returns the URL for errors.
func (p place) shown(path string) string {
	return p.of(path, false)
}
