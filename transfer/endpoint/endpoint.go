// Package endpoint extends the data server of package serve to the endpoint of a site: it accepts
// tokens with scopes, makes third-party copies, and keeps the received bytes of an interrupted
// upload for the next attempt.
//
// All of it is configured in a serve.Config: Bearer as Authenticate, a Copier and Parts as
// Extensions. The command weir serve uses the same parts.
package endpoint

import (
	"net/http"

	"weir/internal/token"
	"weir/serve"
)

// Bearer returns an Authenticate for a serve.Config that accepts the bearer tokens that checker
// accepts.
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
