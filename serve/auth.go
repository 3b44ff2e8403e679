package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// allowed says whether r shows the Config's credentials. It takes the same
// time for every wrong one.
func (c *Config) allowed(r *http.Request) bool {
	if c.User == "" && c.Token == "" {
		return true
	}
	ok := 0
	if c.User != "" {
		user, password, _ := r.BasicAuth()
		ok |= same(user, c.User) & same(password, c.Password)
	}
	if c.Token != "" {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.EqualFold(scheme, "Bearer") {
			ok |= same(strings.TrimSpace(token), c.Token)
		}
	}
	return ok == 1
}

// same compares without telling, by its time, lengths or where they differ.
func same(a, b string) int {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:])
}

func (c *Config) challenge(h http.Header) {
	if c.User != "" {
		h.Add("WWW-Authenticate", `Basic realm="weir", charset="UTF-8"`)
	}
	if c.Token != "" {
		h.Add("WWW-Authenticate", `Bearer realm="weir"`)
	}
}
