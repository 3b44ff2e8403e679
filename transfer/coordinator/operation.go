package coordinator

import (
	_ "embed" // for the description
	"net/http"
	"reflect"
)

// OpenAPIPath is where the coordinator describes its API, without authentication.
const OpenAPIPath = "/api/v1/openapi.json"

// openAPI is made from the operations by TestOpenAPI.
//
//go:embed openapi.json
var openAPI []byte

// An operation is a route as the OpenAPI description has it.
type operation struct {
	pattern string // method and path
	role    string // that callers need; "": others too, or it depends
	about   doc
	in, out reflect.Type // JSON; nil: none
	media   string       // of the answer; "" is JSON
	public  bool         // without authentication
	many    bool         // the answer is one out, or a list
}

// A doc describes a route.
type doc struct {
	summary string
	params  []string // of the query. A handler cannot read others
}

// about returns the description of a route with these parameters of the query.
func about(summary string, params ...string) doc { return doc{summary, params} }

// describeAPI answers with the OpenAPI description.
func describeAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // a client that has disconnected asks again
}

// typeOf returns the type of a body, nil if there is none.
func typeOf[T any]() reflect.Type {
	if t := reflect.TypeFor[T](); t != reflect.TypeFor[struct{}]() {
		return t
	}
	return nil
}
