package token

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// An Op is an operation on a path.
type Op int

// The operations.
const (
	Stat   Op = iota // learn size, time or checksum
	Read             // get the bytes of a file
	List             // see the names in a folder
	Create           // make a file that is not there, or give one a new name that is free
	Folder           // make a folder
	Modify           // change, replace, move away or delete
)

// A scope is a right on a path and on all paths below it.
type scope struct {
	right  string   // read, create, modify, stage or poll
	path   []string // components; empty for the top folder
	folder bool     // the path was written with a slash at its end: a folder, not a file
}

const storage = "storage."

// rights returns the rights of the profile.
func rights() []string { return []string{"read", "create", "modify", "stage", "poll"} }

func isRole(word string) bool { return strings.HasPrefix(word, "weir.") }

// Path returns the scope that gives a right (read, create, modify, stage or poll) on path, which
// begins with a slash, and on all paths below it.
func Path(right, path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return storage + right + ":" + strings.Join(parts, "/")
}

// maxScopes bounds the scopes of a token.
const maxScopes = 256

// readScopes takes a scope claim apart. A storage scope that is not written as
// the profile has it makes the whole token invalid.
func readScopes(text string) (scopes []scope, words []string, err error) {
	all := strings.Fields(text)
	if len(all) > maxScopes {
		return nil, nil, fmt.Errorf("it has %d scopes: at most %d are taken", len(all), maxScopes)
	}
	for _, word := range all {
		rest, ok := strings.CutPrefix(word, storage)
		if !ok {
			words = append(words, word)
			continue
		}
		right, path, ok := strings.Cut(rest, ":")
		if !slices.Contains(rights(), right) {
			continue // of a later version: it gives nothing here
		}
		if !ok || path == "" {
			return nil, nil, fmt.Errorf("its scope %s%s has no path", storage, right)
		}
		s := scope{right: right}
		if s.path, s.folder, err = components(path, true); err != nil {
			return nil, nil, fmt.Errorf("the path of its scope %s%s %w", storage, right, err)
		}
		scopes = append(scopes, s)
	}
	return scopes, words, nil
}

// components takes a path apart, in a scope with escapes as in URLs (RFC 3986). An ambiguous path
// is refused, not normalized.
func components(path string, escaped bool) (parts []string, folder bool, err error) {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return nil, false, fmt.Errorf("does not begin with a slash")
	}
	if rest == "" {
		return nil, true, nil
	}
	if trimmed, ok := strings.CutSuffix(rest, "/"); ok {
		rest, folder = trimmed, true
	}
	for part := range strings.SplitSeq(rest, "/") {
		if escaped {
			if part, err = url.PathUnescape(part); err != nil {
				return nil, false, fmt.Errorf("has an escape that cannot be read")
			}
		}
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "/\\\x00") {
			return nil, false, fmt.Errorf("has a part that is empty, a dot or two, or has a slash, backslash or zero byte in it")
		}
		parts = append(parts, part)
	}
	return parts, folder, nil
}

// May reports whether the token allows op on path: as it is after unescaping,
// beginning with a slash. A path that could be read in two ways is not allowed.
func (c *Claims) May(op Op, path string) bool {
	parts, folder, err := components(path, false)
	if err != nil {
		return false
	}
	base, _, err := components("/"+strings.Trim(c.base, "/"), false)
	if err != nil || !under(parts, base) {
		return false
	}
	parts = parts[len(base):]
	folder = folder || len(parts) == 0 || op == Folder || op == List || op == Stat
	return slices.ContainsFunc(c.scopes, func(s scope) bool { return s.allows(op, parts, folder, c.size != nil) })
}

// allows implements section 2.2.1 of the profile. file: the path of the scope is the path of a
// file, and the scope does not include paths below it.
func (s scope) allows(op Op, path []string, folder, file bool) bool {
	if file && (op == Folder) != (len(path) < len(s.path)) || file && len(path) > len(s.path) {
		return false
	}
	if op == Folder && (s.right == "create" || s.right == "modify") && under(s.path, path) {
		return true // also a folder that leads to the path
	}
	if !under(path, s.path) || s.folder && len(path) == len(s.path) && !folder {
		return false
	}
	switch op {
	case Stat:
		return s.right != "poll"
	case Read:
		return s.right == "read"
	case List: // which the profile does not specify
		return s.right == "read" || s.right == "modify"
	case Create, Folder:
		return s.right == "create" || s.right == "modify"
	case Modify:
		return s.right == "modify"
	}
	return false
}

// under reports whether path is top or below it, by whole components.
func under(path, top []string) bool {
	return len(path) >= len(top) && slices.Equal(path[:len(top)], top)
}

// Roles returns the scopes that are roles of weir (they begin with "weir."), if
// the issuer is trusted to give them.
func (c *Claims) Roles() []string {
	if !c.roles {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.words), func(w string) bool { return !isRole(w) })
}
