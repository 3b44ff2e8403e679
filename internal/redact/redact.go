// Package redact removes secrets from URLs and from texts before they leave the process: for files, terminals,
// pages, exports and logs.
//
// The rule is the same everywhere. Of a URL, scheme, host, port and path are shown, and so are the values of a few
// harmless query parameters; each other value, a password, a user name that looks like a token, and the fragment
// become Mark. A URL without secrets stays as it is, byte by byte.
package redact

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// Mark replaces a secret.
const Mark = "REDACTED"

// Has reports whether a secret was removed from text.
func Has(text string) bool { return strings.Contains(text, Mark) }

// harmless reports whether the values of a query parameter, named in lower case, may be shown:
// parameters of InfluxDB's and S3's addresses that name things, parameters of XRootD that steer a
// request, and a few parameters of all kinds of services.
func harmless(name string) bool {
	switch name {
	case "sslmode", "application_name", "connect_timeout", "search_path", // PostgreSQL
		"db", "org", "bucket", "precision", "rp", "consistency", // InfluxDB
		// S3
		"list-type", "prefix", "delimiter", "max-keys", "partnumber", "response-content-type", "x-amz-algorithm", "x-amz-date", "x-amz-expires",
		"x-amz-signedheaders",
		"oss.asize", "oss.cgroup", "ofs.posc", "svcclass", "tried", "triedrc", "xrd.wantprot", "xrd.appname", // XRootD
		"action", "format", "encoding", "version", "api-version", "metalink", "size", "offset", "length", "limit", "page", "sort", "order",
		"lang", "debug", "verbose", "recursive", "depth", "type", "mode", "op":
		return true
	}
	return false
}

// open reports whether the URLs of a scheme reach no server that requires a secret: their query
// contains settings.
func open(scheme string) bool { return strings.EqualFold(scheme, "simulated") }

// ordinary reports whether a value is allowed for a harmless parameter.
func ordinary(value string) bool {
	return len(value) <= 128 && !strings.ContainsFunc(value, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-:/,+* ;", r)
	})
}

// token reports whether a word looks like a token rather than a name: long, with letters and digits.
func token(word string) bool {
	return len(word) >= 20 || len(word) >= 12 && strings.ContainsAny(word, "0123456789") &&
		strings.ContainsFunc(word, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' }) && !strings.ContainsAny(word, ".-@")
}

// URL returns a URL, or the part of one from its path on, without its secrets.
func URL(text string) string { return (&finder{}).url(text) }

// A finder removes secrets, and stores the removed secrets if keep is set.
type finder struct {
	keep  bool
	found []string
}

func (f *finder) secret(value string) string {
	if value == "" || value == Mark {
		return value
	}
	if f.keep {
		f.found = append(f.found, value)
	}
	return Mark
}

func (f *finder) url(text string) string {
	scheme, rest, absolute := strings.Cut(text, "://")
	head := ""
	if absolute {
		if open(scheme) {
			return text
		}
		head = scheme + "://"
	} else {
		rest = text
	}
	rest, fragment, has := strings.Cut(rest, "#")
	if has {
		fragment = "#" + f.secret(fragment)
	}
	rest, query, asked := strings.Cut(rest, "?")
	if asked {
		query = "?" + f.query(query)
	}
	if absolute {
		authority, path, below := strings.Cut(rest, "/")
		if below {
			path = "/" + path
		}
		rest = f.authority(authority) + path
	}
	return head + f.escaped(rest) + query + fragment
}

// authority redacts the user information of [USER[:PASSWORD]@]HOST.
func (f *finder) authority(text string) string {
	i := strings.LastIndexByte(text, '@')
	if i < 0 {
		return text
	}
	user, password, has := strings.Cut(text[:i], ":")
	if plain, err := url.PathUnescape(user); err != nil || token(plain) {
		user = f.secret(user)
	}
	if has {
		user += ":" + f.secret(password)
	}
	return user + text[i:]
}

// query redacts what follows the ? of a URL.
func (f *finder) query(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		end := strings.IndexAny(text, "&?")
		part, after := text, ""
		if end >= 0 {
			part, after = text[:end], text[end:end+1]
			text = text[end+1:]
		} else {
			text = ""
		}
		b.WriteString(f.parameter(part) + after)
	}
	return b.String()
}

// parameter redacts one NAME=VALUE. A name alone may be all of a secret.
func (f *finder) parameter(text string) string {
	name, value, has := strings.Cut(text, "=")
	plain, err := url.QueryUnescape(name)
	plain = strings.ToLower(plain)
	if !has {
		if err != nil || !harmless(plain) {
			return f.secret(text)
		}
		return text
	}
	if content, bad := url.QueryUnescape(value); err == nil && bad == nil && harmless(plain) && ordinary(content) {
		return text
	}
	if err != nil || token(plain) {
		name = f.secret(name)
	}
	return name + "=" + f.secret(value)
}

// escaped redacts a query in a path whose ? is escaped: a path with a ? in it is shown so.
func (f *finder) escaped(path string) string {
	i := strings.Index(strings.ToUpper(path), "%3F")
	if i < 0 {
		return path
	}
	head, rest := path[:i+3], path[i+3:]
	if !strings.Contains(rest, "=") && !strings.Contains(strings.ToUpper(rest), "%3D") {
		return path
	}
	return head + f.secret(rest)
}

// named are words after which a secret follows.
const named = `access[_-]?token|api[_-]?key|authz|client[_-]?secret|credential|jwt|passphrase|passwd|password|private[_-]?key|secret|session[_-]?token|sig(?:nature)?|token|x-amz-(?:credential|security-token|signature)`

// A text may hold URLs, paths with a query (its ? may be escaped), lines of headers and pairs of a name and a
// secret.
var (
	addresses = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>\x60]+|\?[^\s"'<>\x60?=]*=[^\s"'<>\x60]*|(?i:%3F)[^\s"'<>\x60/]*(?i:=|%3D)[^\s"'<>\x60]*`)
	headers   = regexp.MustCompile(`(?i)\b(authorization:\s*(?:basic|bearer|negotiate|digest)?|bearer|basic)(\s+)([A-Za-z0-9._~+/=-]{8,})`)
	pairs     = regexp.MustCompile(`(?i)(\b(?:` + named + `)(?:\s*=\s*["']?|["']\s*:\s*["']))([^\s"'&;,<>]{4,})`)
	tokens    = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`)
)

// Text returns a text for people without the secrets that it shows by their form.
func Text(text string) string { return (&finder{}).text(text) }

func (f *finder) text(text string) string {
	if !strings.ContainsAny(text, "?:=%") && !strings.Contains(text, "eyJ") && !strings.Contains(text, "earer") {
		return text // nearly all
	}
	text = addresses.ReplaceAllStringFunc(text, f.address)
	text = headers.ReplaceAllStringFunc(text, func(h string) string {
		m := headers.FindStringSubmatch(h)
		if w := strings.ToLower(m[3]); w == "authentication" || w == "credentials" {
			return h
		}
		return m[1] + m[2] + f.secret(m[3])
	})
	text = tokens.ReplaceAllStringFunc(text, f.secret)
	return pairs.ReplaceAllStringFunc(text, func(p string) string {
		m := pairs.FindStringSubmatch(p)
		if strings.HasPrefix(m[2], Mark) {
			return p
		}
		return m[1] + f.secret(m[2])
	})
}

// address redacts a URL, or a query, in a text; the character that ends it is not part of it.
func (f *finder) address(text string) string {
	end := strings.TrimRight(text, ".,;:)]}!")
	if strings.HasPrefix(text[len(end):], "]") && strings.Count(end, "[") > strings.Count(end, "]") {
		end += "]" // of an IPv6 address
	}
	after := text[len(end):]
	switch end[0] {
	case '?':
		return "?" + f.query(end[1:]) + after
	case '%':
		return f.escaped(end) + after
	}
	return f.url(end) + after
}

// Error returns err, in which the URL that package net/http names is without its secrets.
func Error(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		u.URL = URL(u.URL)
	}
	return err
}

// Args returns a command line without its secrets.
func Args(args []string) []string {
	all := make([]string, len(args))
	for i, a := range args {
		all[i] = Text(a)
	}
	return all
}
