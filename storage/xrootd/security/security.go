// Package security proves to XRootD servers who a client is: with a name
// (unix), a Kerberos ticket (krb5), a bearer token (ztn) or, in package gsi
// below it, an X.509 proxy.
//
// A server says after the login which protocols it takes, in order of its
// preference, such as "&P=krb5,xrootd/host@REALM&P=unix". The client answers
// with credentials of one of them; some protocols go on for a few rounds.
package security

import "context"

// A Method is one way to prove who we are. One Method serves all clients of a
// service; it is safe for concurrent use.
type Method interface {
	// Name is the protocol's name as servers write it: "unix", "krb5", "ztn", "gsi".
	Name() string
	// Begin starts the proof towards one server. It may have to ask a third
	// party (krb5: the KDC, once for all clients), until ctx ends but never
	// longer than ten seconds. Errors leave the protocol's name to the caller.
	Begin(ctx context.Context, s Server) (Exchange, error)
}

// A Server is whom we prove it to.
type Server struct {
	Host       string // as the client addresses it, without the port
	Address    string // IP address that the connection goes to; "" if unknown
	Parameters string // what the server says after the protocol's name: for "&P=krb5,a/b@C" it is "a/b@C"
	Secure     bool   // the connection is TLS
}

// An Exchange is the proof towards one server while it goes on. It belongs
// to one goroutine.
type Exchange interface {
	// Next returns what to send: first for a nil challenge, then for each
	// answer that asks for more. What it returns begins with the protocol's
	// name and a zero byte, as kXR_auth carries it.
	Next(challenge []byte) ([]byte, error)
}

// Hint returns what might explain that the server refused e's proof, such as
// "the token expired at 2026-01-02T15:04:05Z", or "" if nothing is known.
func Hint(e Exchange) string {
	if h, ok := e.(interface{ Hint() string }); ok {
		return h.Hint()
	}
	return ""
}
