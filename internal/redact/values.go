package redact

import (
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Limits of the secrets that Values stores: shorter words would make texts illegible, and each
// secret costs a search of each text.
const (
	shortest = 6
	most     = 1000
)

// Values are secrets that are recognized by their text: the secrets of the URLs of a run. A text
// from elsewhere, such as the response of a server, may repeat a secret without the syntax that
// identifies it. The nil *Values has no secrets. It may be used by many goroutines at once.
type Values struct {
	mu  sync.RWMutex
	all []string // longest first
}

// Learn takes the secrets from URLs, command lines, or texts that hold some.
func (v *Values) Learn(texts ...string) {
	if v == nil {
		return
	}
	f := &finder{keep: true}
	for _, t := range texts {
		f.text(t)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range f.found {
		v.add(s)
		if plain, err := url.QueryUnescape(s); err == nil {
			v.add(plain)
			v.add(url.QueryEscape(plain))
			v.add(url.PathEscape(plain))
		}
	}
	slices.SortFunc(v.all, func(a, b string) int { return len(b) - len(a) })
}

func (v *Values) add(s string) {
	if len(s) >= shortest && len(v.all) < most && !slices.Contains(v.all, s) && !strings.Contains(Mark, s) {
		v.all = append(v.all, s)
	}
}

// Text returns a text without the secrets that its syntax identifies, and without the secrets of v.
func (v *Values) Text(text string) string {
	text = Text(text)
	if v == nil {
		return text
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, s := range v.all {
		text = without(text, s)
	}
	return text
}

// telling is the number of bytes of a secret's beginning that are removed as well: texts may be cut
// off within a secret.
const telling = 8

// without returns text without a secret, or the part of it that a text has that was cut off.
func without(text, secret string) string {
	head := secret
	if len(secret) > telling {
		head = secret[:telling]
	}
	var b strings.Builder
	for {
		i := strings.Index(text, head)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		n := len(head)
		for n < len(secret) && i+n < len(text) && text[i+n] == secret[n] {
			n++
		}
		b.WriteString(text[:i] + Mark)
		text = text[i+n:]
	}
}
