package scenario

import (
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"weir/internal/document"
	"weir/internal/unit"
	"weir/link"
	"weir/loadtest/workload"
)

// Schema returns the JSON Schema of the format, generated from the types that
// Parse decodes into, so that editors complete and check scenarios.
func Schema() ([]byte, error) {
	return document.SchemaText(schemaTree())
}

func schemaTree() *jsonschema.Schema {
	s := format().SchemaOf(reflect.TypeFor[Scenario]())
	s.Version, s.ID, s.Title = jsonschema.Version, "https://weir.invalid/scenario.schema.json", "weir scenario"
	s.Description = "What to test: see docs/scenario.md."
	s.AnyOf = []*jsonschema.Schema{{Required: []string{"target"}}, {Required: []string{"matrix"}}} // which may give it
	target, _ := s.Properties.Get("target")
	target.Type, target.AnyOf = "", []*jsonschema.Schema{document.PlainType("string"), {Type: "array",
		Items: document.PlainType("string"), MinItems: document.Bound(1), MaxItems: document.Bound(maxEndpoints)}}
	relax(s, map[*jsonschema.Schema]bool{})
	return s
}

// shape returns the schemas of types that are written otherwise than Go would.
func shape(t reflect.Type) *jsonschema.Schema {
	if s := workload.Shape(format(), t); s != nil {
		return s
	}
	switch t {
	case reflect.TypeFor[Counts]():
		return steps(document.Number(1), document.Pattern(`^[0-9]+(\.\.[0-9]+)?( *, *[0-9]+(\.\.[0-9]+)?)*$`, "1,2,4", "1..100"))
	case reflect.TypeFor[Rates]():
		one, r := document.Shape(reflect.TypeFor[unit.Rate]()), `[0-9]+(\.[0-9]+)? ?/(s|min|h)`
		return steps(one, document.Pattern(`^`+r+`(\.\.`+r+`)?( *, *`+r+`(\.\.`+r+`)?)*$`, "10/s,20/s"))
	case reflect.TypeFor[Command]():
		return document.AnyOf(&jsonschema.Schema{Type: "string", Enum: document.AnyWords(clientPrograms())}, format().Object(t))
	case reflect.TypeFor[Links]():
		return document.AnyOf(linkShape(), &jsonschema.Schema{Type: "object", MinProperties: document.Bound(1), AdditionalProperties: linkShape(),
			PropertyNames: &jsonschema.Schema{Not: &jsonschema.Schema{Enum: document.AnyWords(link.Keys())}}})
	case reflect.TypeFor[Variables]():
		return &jsonschema.Schema{Type: "object", AdditionalProperties: jsonschema.FalseSchema, PatternProperties: map[string]*jsonschema.Schema{
			document.VariablePattern: document.AnyOf(document.PlainType("string"), document.PlainType("number"), document.PlainType("boolean"),
				document.PlainType("null"))}}
	case reflect.TypeFor[Matrix]():
		return &jsonschema.Schema{Type: "object", MinProperties: document.Bound(1), AdditionalProperties: &jsonschema.Schema{Type: "array",
			MinItems: document.Bound(1)}}
	}
	return nil
}

// linkShape is the schema of the keys of one link.
func linkShape() *jsonschema.Schema {
	s := format().Object(reflect.TypeFor[link.Spec]())
	s.MinProperties = document.Bound(1)
	return s
}

// steps is one value, several in a text or a list, or a progression.
func steps(one, text *jsonschema.Schema) *jsonschema.Schema {
	by := document.AnyOf(document.PlainType("string"), document.Number(1))
	all := &jsonschema.Schema{Type: "array", Items: document.AnyOf(one, text), MinItems: document.Bound(1), MaxItems: document.Bound(maxSteps)}
	return document.AnyOf(one, text, all, document.Record([]string{"from", "to", "by"}, one, one, by))
}

// relax goes through s and allows a variable wherever a value stands that is
// not free text.
func relax(s *jsonschema.Schema, seen map[*jsonschema.Schema]bool) {
	if s == nil || seen[s] {
		return
	}
	seen[s] = true
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			relax(p.Value, seen)
		}
	}
	relax(s.Items, seen)
	relax(s.AdditionalProperties, seen)
	for _, alternative := range s.AnyOf {
		relax(alternative, seen)
	}
	switch {
	case s.Pattern != "":
		s.Pattern += `|\$\{`
	case s.Enum != nil || s.Type == "integer" || s.Type == "number" || s.Type == "boolean":
		inner := *s
		inner.Description, inner.Default = "", nil
		*s = jsonschema.Schema{Description: s.Description, Default: s.Default, AnyOf: []*jsonschema.Schema{
			&inner, {Type: "string", Pattern: `^\$\{.*\}$`},
		}}
	}
}

// A SettableKey is a key of the format that can be set, as shells complete it.
type SettableKey struct {
	Path   string   // such as load.clients
	About  string   // the first line of its description
	Values []string // the words that it may be; nil: anything
}

// SettableKeys returns all keys of the schema. A key that may be written in several ways occurs several times.
func SettableKeys() []SettableKey { return settable("", schemaTree()) }

// settable returns the keys below the schema of path.
func settable(path string, s *jsonschema.Schema) (all []SettableKey) {
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			full := strings.TrimPrefix(path+"."+p.Key, ".")
			about, _, _ := strings.Cut(p.Value.Description, "\n")
			all = append(append(all, SettableKey{full, about, settableWords(p.Value)}), settable(full, p.Value)...)
		}
	}
	for _, one := range s.AnyOf {
		all = append(all, settable(path, one)...)
	}
	return all
}

// settableWords returns the words that a value may be.
func settableWords(s *jsonschema.Schema) (all []string) {
	for _, v := range append(slices.Clone(s.Enum), s.Const) {
		if text, ok := v.(string); ok {
			all = append(all, text)
		}
	}
	if s.Type == "boolean" {
		all = append(all, "false", "true")
	}
	for _, one := range s.AnyOf {
		all = append(all, settableWords(one)...)
	}
	return all
}
