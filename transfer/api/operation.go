// Package api has the base of the HTTP APIs of a coordinator: calls with their parameters, routes
// with their OpenAPI description, and errors in the form of responses.
package api

import (
	_ "embed" // for the description
	"reflect"
)

// An Operation is a route with its OpenAPI description.
type Operation struct {
	Pattern string // method and path
	Role    string // that callers need; "": no role, or the handler checks it
	About   Doc
	In, Out reflect.Type // JSON; nil: no body
	Media   string       // of the response; "" is JSON
	Public  bool         // without authentication
	Many    bool         // the response is one Out, or a list
}

// A Doc describes a route.
type Doc struct {
	Summary string
	Params  []string // of the query. A handler cannot read other parameters
}

// About returns the description of a route with these parameters of the query.
func About(summary string, params ...string) Doc { return Doc{summary, params} }

// TypeOf returns the type of a body, or nil if there is no body.
func TypeOf[T any]() reflect.Type {
	if t := reflect.TypeFor[T](); t != reflect.TypeFor[struct{}]() {
		return t
	}
	return nil
}
