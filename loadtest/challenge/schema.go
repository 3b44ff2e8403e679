package challenge

import (
	"reflect"

	"github.com/invopop/jsonschema"

	"weir/internal/document"
	"weir/loadtest/workload"
)

// Schema returns the JSON Schema of the format, generated from the types that Parse decodes into.
func Schema() ([]byte, error) {
	s := format().SchemaOf(reflect.TypeFor[Challenge]())
	s.Version, s.ID = jsonschema.Version, "https://weir.invalid/challenge.schema.json"
	s.Title, s.Description = format().Title, format().About
	variables := &jsonschema.Schema{Type: "object", AdditionalProperties: jsonschema.FalseSchema,
		Description: variablesDoc, PatternProperties: map[string]*jsonschema.Schema{document.VariablePattern: {}}}
	s.Properties.Set("variables", variables)
	return document.SchemaText(s)
}

// variablesDoc describes the block variables, which is not a field of Challenge.
const variablesDoc = "Names and values for ${NAME}; null: of --var or the environment."

// shape returns the schemas of types that are written otherwise than Go would.
func shape(t reflect.Type) *jsonschema.Schema {
	if s := shareShape(t); s != nil {
		return s
	}
	return workload.Shape(format(), t)
}
