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
	s := format().SchemaOf(&Scenario{})
	s.ID = "https://weir.invalid/scenario.schema.json"
	s.Title, s.Description = "weir scenario", "What to test: see docs/scenario.md."
	s.AnyOf = []*jsonschema.Schema{{Required: []string{"target"}}, {Required: []string{"matrix"}}} // which may give it
	s.Properties.Set("variables", &jsonschema.Schema{
		Type: "object",
		PatternProperties: map[string]*jsonschema.Schema{"^[A-Za-z_][A-Za-z0-9_]*$": document.AnyOf(document.PlainType("string"),
			document.PlainType("number"), document.PlainType("boolean"), document.PlainType("null"))},
		AdditionalProperties: jsonschema.FalseSchema,
	})
	s.Properties.Set("target", document.AnyOf(document.PlainType("string"), &jsonschema.Schema{Type: "array",
		Items: document.PlainType("string"), MinItems: document.Bound(1), MaxItems: document.Bound(maxEndpoints)}))
	defaults := defaultValues()
	for _, k := range keys() {
		describe(s, strings.Split(k.path, "."), k, defaults[k.path])
	}
	relax(s, map[*jsonschema.Schema]bool{})
	return s
}

// shape returns the schemas of types that are written otherwise than Go would.
func shape(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[Counts]():
		return steps(document.Number(1), document.Pattern(`^[0-9]+( *, *[0-9]+)*$`, "1,2,4"))
	case reflect.TypeFor[Rates]():
		one := document.Shape(reflect.TypeFor[unit.Rate]())
		return steps(one, document.Pattern(`^[0-9]+(\.[0-9]+)? ?/(s|min|h)( *, *[0-9]+(\.[0-9]+)? ?/(s|min|h))*$`, "10/s,20/s"))
	case reflect.TypeFor[Command]():
		return document.AnyOf(&jsonschema.Schema{Type: "string", Enum: document.AnyWords(words()["client"])},
			document.Object([]string{"command"}, "command", &jsonschema.Schema{Type: "array", Items: document.PlainType("string"),
				MinItems: document.Bound(1)}))
	case reflect.TypeFor[workload.Span]():
		return drawn(document.Shape(reflect.TypeFor[unit.Duration]()), "exponential", document.Shape(reflect.TypeFor[unit.Duration]()))
	case reflect.TypeFor[workload.Dist]():
		return drawn(document.Shape(reflect.TypeFor[unit.Size]()), "weights", document.Weighted())
	case reflect.TypeFor[Links]():
		one := linkShape()
		return document.AnyOf(one, &jsonschema.Schema{Type: "object", MinProperties: document.Bound(1), AdditionalProperties: linkShape(),
			PropertyNames: &jsonschema.Schema{Not: &jsonschema.Schema{Enum: document.AnyWords(link.Keys())}}})
	case reflect.TypeFor[Matrix]():
		return &jsonschema.Schema{Type: "object", MinProperties: document.Bound(1), AdditionalProperties: &jsonschema.Schema{Type: "array",
			MinItems: document.Bound(1)}}
	}
	return nil
}

// linkShape is the schema of the keys of one link.
func linkShape() *jsonschema.Schema {
	out := &jsonschema.Schema{Type: "object", MinProperties: document.Bound(1), Properties: jsonschema.NewProperties(),
		AdditionalProperties: jsonschema.FalseSchema}
	of := reflect.TypeFor[link.Spec]()
	for i, name := range document.FieldNames(of) {
		out.Properties.Set(name, document.Shape(of.Field(i).Type))
	}
	out.Properties.Set("congestion", document.PlainType("string"))
	out.Properties.Set("trunk", document.PlainType("string"))
	out.Properties.Set("share", &jsonschema.Schema{Type: "number", Minimum: "0"})
	span := reflect.TypeFor[unit.Duration]()
	outage := document.Object([]string{"after", "for"}, "after", document.Shape(span), "for", document.Shape(span))
	out.Properties.Set("outages", &jsonschema.Schema{Type: "array", Items: outage})
	return out
}

// drawn is one value, or a map with one way to draw it.
func drawn(one *jsonschema.Schema, way string, other *jsonschema.Schema) *jsonschema.Schema {
	two := &jsonschema.Schema{Type: "array", Items: one, MinItems: document.Bound(2), MaxItems: document.Bound(2)}
	return document.AnyOf(one, document.Object([]string{"uniform"}, "uniform", two), document.Object([]string{way}, way, other))
}

// steps is one value, several in a text or a list, or a progression.
func steps(one, text *jsonschema.Schema) *jsonschema.Schema {
	by := document.AnyOf(document.PlainType("string"), document.Number(1))
	all := &jsonschema.Schema{Type: "array", Items: one, MinItems: document.Bound(1), MaxItems: document.Bound(maxSteps)}
	return document.AnyOf(one, text, all, document.Object([]string{"from", "to", "by"}, "from", one, "to", one, "by", by))
}

// describe copies description, default and values from the table of keys into the schema of a key.
func describe(s *jsonschema.Schema, path []string, k key, value any) {
	for _, name := range path {
		s = document.Below(s, name)
		if s == nil {
			return
		}
	}
	s.Description = k.about
	if value != nil {
		s.Default = value
	}
	if s.AnyOf != nil {
		return // its alternatives say what they take
	}
	s.Enum = nil
	for _, w := range words()[k.path] {
		s.Enum = append(s.Enum, w)
	}
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
