// Package documenttest validates YAML against the JSON Schemas of package document, for tests.
package documenttest

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"weir/internal/require"
)

// A Schema is a compiled JSON Schema.
type Schema struct{ schema *jsonschema.Schema }

// Compile compiles the text of a schema. It ends the test if the text is not a schema.
func Compile(t testing.TB, text []byte) Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", doc))
	s, err := c.Compile("schema.json")
	require.NoError(t, err)
	return Schema{s}
}

// Validate returns the errors of YAML text according to the schema, or the error of text that is not
// YAML.
func (s Schema) Validate(text []byte) error {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return err
	}
	js, err := json.Marshal(v)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(js))
	if err != nil {
		return err
	}
	return s.schema.Validate(doc)
}
