package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"

	"weir/internal/pages"
)

// A guard controls access to the page.
type guard struct {
	token    string // "": no token is required
	cookie   string // the name of the cookie: browsers share cookies between ports
	loopback bool   // only this machine reaches the address
}

// tokenQuery is the key of the token in the printed address.
const tokenQuery = "token"

// newToken returns a token that cannot be guessed.
func newToken() string { return rand.Text() }

// wrap passes on the requests that have access, and responds to all others with the reason.
func (g *guard) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pages.Harden(w.Header())
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "This page can only be looked at.")
		case g.loopback && !pages.Local(r.Host):
			refuse(w, http.StatusForbidden, "This page is for browsers on this machine: open it as localhost or 127.0.0.1, not under another name.")
		case pages.Foreign(r):
			refuse(w, http.StatusForbidden, "Cross-site request refused.")
		case g.token == "":
			next.ServeHTTP(w, r)
		case r.URL.Path == "/" && r.URL.Query().Has(tokenQuery):
			g.enter(w, r)
		case !g.knows(r):
			w.Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
			refuse(w, http.StatusUnauthorized, "Open the whole address that weir printed: the token at its end is missing or no longer right.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, code int, why string) { http.Error(w, "weir: "+why, code) }

// enter moves the token from the address into a cookie, so that it is in no history, no bookmark
// and no picture of the screen.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !g.same(q.Get(tokenQuery)) {
		refuse(w, http.StatusUnauthorized, "The token in this address is not right: open the one that weir printed last.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	q.Del(tokenQuery)
	to := (&url.URL{Path: "/", RawQuery: q.Encode()}).String()
	// Not a redirect: after a link on another site a browser would follow it without the new
	// cookie. This page loads the target by itself instead.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, "<!DOCTYPE html>\n<meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0; url=%s\"><link rel=\"icon\" "+
		"href=\"data:,\"><title>weir</title><a href=\"%[1]s\">The live page</a>\n",
		html.EscapeString(to)) // a write error means that the browser has disconnected
}

// knows reports whether r contains the token, as a cookie or in the header that programs send.
func (g *guard) knows(r *http.Request) bool {
	if c, err := r.Cookie(g.cookie); err == nil && g.same(c.Value) {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && g.same(token)
}

// same compares in constant time, which reveals nothing about the token, not even its length.
func (g *guard) same(token string) bool {
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(g.token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
