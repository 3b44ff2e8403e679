// Package page is a coordinator's page for browsers: its files, and sessions of browsers. The page
// uses the coordinator's API, with the rights of the token that the session represents.
//
// A session begins with a token that a user pastes, or with the code of a printed link, which is
// valid once. The code is in the link's fragment, so that no server, proxy or history contains it;
// the page exchanges it for a cookie that scripts cannot read. Requests of a session that change
// anything must come from the page itself.
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

// A Who is the holder of a token.
type Who struct {
	Name  string    `json:"name"`
	Roles []string  `json:"roles"`           // scopes, as in weir.submit: they determine the buttons
	Until time.Time `json:"until,omitzero"`  // the end of the token's validity
	Known bool      `json:"known,omitempty"` // by the browser's certificate: there is no session to end
}

// A Config configures a page.
type Config struct {
	Check func(ctx context.Context, token string) (Who, error) // an error is a sentence with the reason why the token is not accepted
	Known func(*http.Request) (Who, bool)                      // by the client certificate; nil: certificates are not used
	// 32 bytes that seal sessions: with the same key, sessions outlive the process; nil: a new key
	Key      []byte
	Loopback bool             // only browsers of this machine reach the page
	Now      func() time.Time // nil is time.Now
}

// A Page serves its files and keeps sessions. It may be used by several goroutines at once.
type Page struct {
	conf  Config
	seal  cipher.AEAD
	mux   http.ServeMux
	mu    sync.Mutex
	codes map[string]promise   // of links that were not opened yet
	ended map[string]time.Time // sessions that were signed out, with the end of their validity
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

// Patterns returns the patterns of http.ServeMux for the requests that a Page handles without
// authentication.
func Patterns() []string {
	return []string{"/{$}", "/transfer.js", "/transfer.css", "/session", "/session/"}
}

// ServeHTTP serves /, the page's files, and /session with the paths below it.
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
	_, _ = w.Write([]byte(out.String())) // an error means that the client has disconnected
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
