// Package page is a coordinator's page for browsers: its files, and sessions of
// browsers. What the page shows and does goes through the coordinator's API,
// with the rights of the token that the session represents.
//
// A session begins with a token that somebody pastes, or with the code of a link
// that was printed, which is good once. The code is in the link's fragment, so
// that no server, proxy or history has it; the page exchanges it for a cookie
// that scripts cannot read. Orders of a session must come from the page itself.
package page

import (
	"context"
	"crypto/cipher"
	_ "embed"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	"weir/internal/pages"
	"weir/internal/wire"
	"weir/web"
)

//go:embed page.html.tmpl
var pageText string

// A Who is what a token says of its holder.
type Who struct {
	Name  string    `json:"name"`
	Roles []string  `json:"roles"`           // weir.read, weir.submit, weir.approve, weir.admin: which buttons there are
	Until time.Time `json:"until,omitzero"`  // for which the token is good
	Known bool      `json:"known,omitempty"` // by the browser's certificate: there is no session to end
}

// A Config is what a page needs to know.
type Config struct {
	Check func(ctx context.Context, token string) (Who, error) // an error says in a sentence why the token does not count
	Known func(*http.Request) (Who, bool)                      // by the client certificate; nil: none
	// 32 bytes that seal sessions: with the same key they outlive the process; nil: a new one
	Key      []byte
	Loopback bool             // only browsers of this machine reach the page
	Now      func() time.Time // nil is time.Now
}

// A Page serves its files and keeps sessions. It may be asked by several
// goroutines at once.
type Page struct {
	conf  Config
	seal  cipher.AEAD
	mux   http.ServeMux
	mu    sync.Mutex
	codes map[string]promise   // of links that were not opened yet
	ended map[string]time.Time // sessions that were signed out of, until when they would have been good
}

// New returns a page.
func New(c Config) (*Page, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	seal, err := sealer(c.Key)
	if err != nil {
		return nil, err
	}
	p := &Page{conf: c, seal: seal, codes: map[string]promise{}, ended: map[string]time.Time{}}
	p.mux.HandleFunc("GET /{$}", p.html)
	p.mux.HandleFunc("GET /transfer.js", bundled("text/javascript; charset=utf-8"))
	p.mux.HandleFunc("GET /transfer.css", bundled("text/css; charset=utf-8"))
	p.mux.HandleFunc("GET /session", p.show)
	p.mux.HandleFunc("POST /session", p.begin)
	p.mux.HandleFunc("POST /session/end", p.end)
	p.mux.HandleFunc("POST /session/code", p.code)
	return p, nil
}

// Patterns are what a Page answers, to everybody, as patterns of http.ServeMux.
func Patterns() []string {
	return []string{"/{$}", "/transfer.js", "/transfer.css", "/session", "/session/"}
}

// ServeHTTP serves /, the page's files, and /session with what is below it.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pages.Harden(w.Header())
	if p.conf.Loopback && !pages.Local(r.Host) {
		refuse(w, wire.Refuse(http.StatusForbidden, "This page is for browsers on this machine: open it as localhost or 127.0.0.1, "+
			"not under another name."))
		return
	}
	p.mux.ServeHTTP(w, r)
}

func (p *Page) html(w http.ResponseWriter, _ *http.Request) {
	_, there := web.Bundle("transfer.js")
	t, err := template.New("page").Parse(pageText)
	var out strings.Builder
	if err == nil {
		err = t.Execute(&out, struct{ Scripts bool }{there})
	}
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(out.String())) // whoever does not take it has gone
}

func bundled(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, ok := web.Bundle(strings.TrimPrefix(r.URL.Path, "/"))
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	}
}
