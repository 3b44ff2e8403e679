// Package token issues and checks bearer tokens: JSON Web Tokens of the WLCG profile, whose scopes
// define which paths of a storage service may be read, created or changed, and which roles a user
// has with the coordinator.
//
// The profile is "WLCG Common JWT Profiles", versions 1.0 to 1.3, of the WLCG Authorization Working
// Group (github.com/WLCG-AuthZ-WG/common-jwt-profile). The claims of a token are its issuer, its
// service, its times and its scopes. A token is a secret of its holder, so this package never
// writes a token, or a part of it, into an error or a log.
package token

import (
	"errors"
	"slices"
	"time"
)

// Errors of Check. An error is one of them, with a sentence behind it that contains nothing of the
// token except, if it helps, the name of its issuer.
var (
	ErrInvalid = errors.New("the token is not valid") // the response has status 401
	ErrKeys    = errors.New("the issuer's keys could not be read")
)

// Any is the audience of a token that is meant for every service.
const Any = "https://wlcg.cern.ch/jwt/v1/any"

// Claims are the checked claims of a token.
type Claims struct {
	Issuer   string
	Subject  string // who holds it, unique with the issuer
	ID       string // unique with the issuer; may be written into logs
	Audience []string
	Issued   time.Time // zero if the token does not contain it
	Expires  time.Time
	Groups   []string // wlcg.groups
	scopes   []scope
	words    []string
	base     string // of the issuer's paths
	roles    bool   // the issuer may give roles of weir
	size     *int64 // see Most
}

// Most returns the number of bytes that may be stored with the token: in one file, and in all files
// that are being stored with it at a time. Such a token (its claim weir.size) is valid for the very
// files that its scopes name, not for paths below them: its holder cannot store more bytes than
// that. who is the unique name of the token; ok is false if the token has no such claim.
func (c *Claims) Most() (who string, bytes int64, ok bool) {
	if c.size == nil {
		return "", 0, false
	}
	return c.Issuer + " " + c.Subject + " " + c.ID, *c.size, true
}

// Has reports whether the token has a scope that is not about paths, such as
// weir.submit or weir.agent:SITE, word for word. Scopes that begin with "weir."
// count only if the issuer is trusted to give them.
func (c *Claims) Has(scope string) bool {
	for _, w := range c.words {
		if w == scope {
			return c.roles || !isRole(w)
		}
	}
	return false
}

// Words returns the scopes that are not about paths, of any issuer.
func (c *Claims) Words() []string { return slices.Clone(c.words) }
