package token

import (
	"net/http"
	"strings"
)

// FromHeader returns the bearer token in the headers of a request (RFC 6750, section 2.1). The name of the scheme is in upper or lower
// case (RFC 9110, section 11.1); ok is false if there is no Authorization header or it has another scheme.
func FromHeader(r *http.Request) (raw string, ok bool) {
	scheme, raw, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimSpace(raw), true
}
