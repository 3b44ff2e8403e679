package page

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"weir/internal/pages"
	"weir/internal/token"
	"weir/internal/wire"
)

const (
	sessionLife  = 7 * 24 * time.Hour // at most: a token may end before
	codeLife     = 10 * time.Minute
	mostCodes    = 1000    // links that were printed and not opened
	longestToken = 2800    // bytes: a cookie has room for 4096
	longestAsk   = 8 << 10 // bytes
)

// OrderHeader is a header that requests of a session must have if they change anything, with any
// text: pages of other sites cannot set it.
const OrderHeader = "X-Weir"

// A session is the content of a cookie, which is sealed.
type session struct {
	ID    string `json:"i"`
	Token string `json:"t"`
	Until int64  `json:"u"` // seconds since 1970
}

// A promise is the token that a code will be exchanged for.
type promise struct {
	token string
	until time.Time
}

func sealer(key []byte) (cipher.AEAD, error) {
	if key == nil {
		key = make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return nil, err
		}
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return seal, nil
}

// Code returns a code that a browser can exchange once, within ten minutes, for a
// session with the rights of token. The link is the page's address and #code=CODE.
func (p *Page) Code(token string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, oldest := p.conf.Now(), ""
	for c, pr := range p.codes {
		if now.After(pr.until) {
			delete(p.codes, c)
		} else if oldest == "" || pr.until.Before(p.codes[oldest].until) {
			oldest = c
		}
	}
	if len(p.codes) >= mostCodes {
		delete(p.codes, oldest)
	}
	code := rand.Text()
	p.codes[code] = promise{token: token, until: now.Add(codeLife)}
	return code
}

// redeem returns a code's token, once.
func (p *Page) redeem(code string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pr, ok := p.codes[code]
	delete(p.codes, code)
	return pr.token, ok && !p.conf.Now().After(pr.until)
}

// Token returns the token of the session of a browser's request, or "" if the request belongs to no
// session. If a request belongs to a session but does not come from the page itself, the error is a
// *wire.Error.
func (p *Page) Token(r *http.Request) (string, error) {
	s, ok := p.session(r)
	if !ok {
		return "", nil
	}
	if err := own(r); err != nil {
		return "", err
	}
	return s.Token, nil
}

// own returns an error if a request does not come from the page itself.
func own(r *http.Request) error {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !read && r.Header.Get(OrderHeader) == "" {
		return errForeign()
	}
	return Foreign(r)
}

// Foreign returns a *wire.Error for a request that a browser sends on behalf of another site.
// Browsers send certificates, like cookies, with requests of any site.
func Foreign(r *http.Request) error {
	if pages.Foreign(r) {
		return errForeign()
	}
	return nil
}

func errForeign() error {
	return wire.Refuse(http.StatusForbidden, "this can only be asked by the page itself, not from another site")
}

// cookieName returns a different name for each port: browsers share cookies among the ports of a
// host.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return "weir-transfer-" + port
	}
	return "weir-transfer"
}

func (p *Page) session(r *http.Request) (session, bool) {
	var s session
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return s, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return s, false
	}
	text, err := p.seal.Open(nil, nil, sealed, []byte(OrderHeader))
	if err != nil || json.Unmarshal(text, &s) != nil || p.conf.Now().Unix() >= s.Until {
		return s, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ended := p.ended[s.ID]
	return s, !ended
}

// begin signs in with a token or a code.
func (p *Page) begin(w http.ResponseWriter, r *http.Request) {
	var in struct{ Token, Code string }
	if err := asked(r, &in); err != nil {
		refuse(w, err)
		return
	}
	token := strings.TrimSpace(in.Token)
	if in.Code != "" {
		var ok bool
		if token, ok = p.redeem(in.Code); !ok {
			refuse(w, wire.Refuse(http.StatusUnauthorized, "This link was opened already, or is older than ten minutes."))
			return
		}
	}
	who, err := p.check(r, token)
	if err != nil {
		refuse(w, err)
		return
	}
	now := p.conf.Now()
	s := session{ID: rand.Text(), Token: token, Until: now.Add(sessionLife).Unix()}
	text, err := json.Marshal(s)
	if err != nil {
		refuse(w, err)
		return
	}
	p.setCookie(w, r, base64.RawURLEncoding.EncodeToString(p.seal.Seal(nil, nil, text, []byte(OrderHeader))), int(sessionLife.Seconds()))
	answer(w, who)
}

// errNoSession is the response to a request without a session. The page shows its form and no
// message.
var errNoSession = &wire.Error{Status: http.StatusUnauthorized, Text: "No user is signed in."}

// noSession is the code of errNoSession in the body of a response.
const noSession = "no_session"

func (p *Page) check(r *http.Request, token string) (Who, error) {
	switch {
	case token == "":
		return Who{}, errNoSession
	case len(token) > longestToken:
		return Who{}, wire.Refuse(http.StatusBadRequest, "This token has %d characters: a browser can keep %d of them.", len(token), longestToken)
	}
	who, err := p.conf.Check(r.Context(), token)
	if err == nil {
		return who, nil
	}
	if wire.Status(err) != 0 {
		return who, err
	}
	return who, wire.Refuse(http.StatusUnauthorized, "%v", err)
}

func (p *Page) setCookie(w http.ResponseWriter, r *http.Request, value string, life int) {
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: value, Path: "/", MaxAge: life, HttpOnly: true, Secure: r.TLS != nil,
		SameSite: http.SameSiteStrictMode})
}

// show returns the user who is signed in.
func (p *Page) show(w http.ResponseWriter, r *http.Request) {
	token, err := p.Token(r)
	if err != nil {
		refuse(w, err)
		return
	}
	if token == "" && p.conf.Known != nil {
		if who, ok := p.conf.Known(r); ok {
			who.Known = true
			answer(w, who)
			return
		}
	}
	who, err := p.check(r, token)
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, who)
}

// end signs out: afterwards the cookie is not valid for any client.
func (p *Page) end(w http.ResponseWriter, r *http.Request) {
	if err := own(r); err != nil {
		refuse(w, err)
		return
	}
	if s, ok := p.session(r); ok {
		p.mu.Lock()
		for id, until := range p.ended {
			if p.conf.Now().After(until) {
				delete(p.ended, id)
			}
		}
		p.ended[s.ID] = time.Unix(s.Until, 0)
		p.mu.Unlock()
	}
	p.setCookie(w, r, "", -1)
	answer(w, struct{}{})
}

// code creates a code with which the caller, who has a token or a session, can sign in another
// browser.
func (p *Page) code(w http.ResponseWriter, r *http.Request) {
	raw, bearer := token.FromHeader(r)
	var err error
	if !bearer {
		raw, err = p.Token(r)
	}
	if err == nil {
		_, err = p.check(r, raw)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, struct {
		Code string `json:"code"`
	}{p.Code(raw)})
}

// asked decodes a request of the page itself.
func asked(r *http.Request, in any) error {
	if err := own(r); err != nil {
		return err
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, longestAsk)).Decode(in); err != nil {
		return wire.Refuse(http.StatusBadRequest, "malformed JSON body: %v", err)
	}
	return nil
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that has disconnected repeats the request
}

func refuse(w http.ResponseWriter, err error) {
	status := wire.Status(err)
	status = cmp.Or(status, http.StatusInternalServerError)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body := struct {
		Error string `json:"error"`
		Code  string `json:"code,omitempty"`
	}{Error: err.Error()}
	if errors.Is(err, errNoSession) {
		body.Code = noSession
	}
	answer(w, body)
}
