// Package endpoint is what the endpoint of a site has beyond the data server of package
// serve: it takes tokens whose scopes say what they allow, makes third-party copies, and
// keeps what a broken upload has brought for the next attempt.
//
// All of it is given to a serve.Config: Bearer as Authenticate, a Copier and Parts as
// Extensions. The command weir serve uses the same parts.
package endpoint

import (
	"net/http"

	"weir/internal/token"
	"weir/serve"
)

// Bearer returns a serve.Config's Authenticate that takes bearer tokens which checker
// finds good.
func Bearer(checker *token.Checker) func(*http.Request) (serve.Rights, error) {
	return func(r *http.Request) (serve.Rights, error) {
		raw, ok := token.FromHeader(r)
		if !ok {
			return nil, serve.ErrCredentials
		}
		claims, err := checker.Check(r.Context(), raw)
		if err != nil {
			return nil, err
		}
		return claims, nil
	}
}
