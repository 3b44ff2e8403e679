// Package api has the base of the HTTP APIs of a coordinator: calls with their parameters, routes as the OpenAPI description has them, and
// errors as they are answered.
package api

import (
	_ "embed" // for the description
	"reflect"
)

// An Operation is a route as the OpenAPI description has it.
type Operation struct {
	Pattern string // method and path
	Role    string // that callers need; "": others too, or it depends
	About   Doc
	In, Out reflect.Type // JSON; nil: none
	Media   string       // of the answer; "" is JSON
	Public  bool         // without authentication
	Many    bool         // the answer is one out, or a list
}

// A Doc describes a route.
type Doc struct {
	Summary string
	Params  []string // of the query. A handler cannot read others
}

// About returns the description of a route with these parameters of the query.
func About(summary string, params ...string) Doc { return Doc{summary, params} }

// TypeOf returns the type of a body, nil if there is none.
func TypeOf[T any]() reflect.Type {
	if t := reflect.TypeFor[T](); t != reflect.TypeFor[struct{}]() {
		return t
	}
	return nil
}
