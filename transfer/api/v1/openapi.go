package v1

import (
	_ "embed" // for the description
	"net/http"
)

// OpenAPIPath is the path of the description of the API, which requires no authentication.
const OpenAPIPath = "/api/v1/openapi.json"

// openAPI is made from the operations by TestOpenAPI of the coordinator.
//
//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the description of all routes of a coordinator.
func OpenAPI() []byte { return openAPI }

// describeAPI writes the OpenAPI description.
func describeAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // a client that has disconnected repeats the request
}
