package scenario

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"weir/internal/unit"
	"weir/link"
	"weir/workload"
)

// Schema returns the JSON Schema of the format, generated from the types that
// Parse decodes into, so that editors complete and check scenarios.
func Schema() ([]byte, error) {
	return schemaText(schemaTree())
}

// schemaText writes a schema.
func schemaText(s *jsonschema.Schema) ([]byte, error) {
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	plain := strings.NewReplacer(`\u003e`, ">", `\u003c`, "<", `\u0026`, "&") // escaped for HTML, which this is not
	return []byte(plain.Replace(string(out)) + "\n"), nil
}

// schemaOf returns the schema of the type that of points to.
func schemaOf(of any) *jsonschema.Schema {
	r := jsonschema.Reflector{
		Anonymous: true, DoNotReference: true, RequiredFromJSONSchemaTags: true, FieldNameTag: "yaml", Mapper: shape,
	}
	return r.Reflect(of)
}

func schemaTree() *jsonschema.Schema {
	s := schemaOf(&Scenario{})
	s.ID = "https://weir.invalid/scenario.schema.json"
	s.Title, s.Description = "weir scenario", "What to test: see docs/scenario.md."
	s.AnyOf = []*jsonschema.Schema{{Required: required("target")}, {Required: required("matrix")}} // which may give it
	s.Properties.Set("variables", &jsonschema.Schema{
		Type: "object",
		PatternProperties: map[string]*jsonschema.Schema{"^[A-Za-z_][A-Za-z0-9_]*$": anyOf(plainType("string"), plainType("number"),
			plainType("boolean"), plainType("null"))},
		AdditionalProperties: nothing(),
	})
	s.Properties.Set("target", anyOf(plainType("string"), &jsonschema.Schema{Type: "array", Items: plainType("string"), MinItems: size(1),
		MaxItems: size(maxEndpoints)}))
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
	case reflect.TypeFor[unit.Size]():
		return anyOf(pattern(`^(0|[0-9]+(\.[0-9]+)? ?(B|kB|MB|GB|TB|PB|KiB|MiB|GiB|TiB|PiB))$`, "1MiB", "300kB", "20B"), zero())
	case reflect.TypeFor[unit.Duration]():
		return anyOf(pattern(`^(0|([0-9]+(\.[0-9]+)? ?(ns|us|µs|μs|ms|s|m|h|d) ?)+)$`, "1.5s", "250ms", "60m", "2d"), zero())
	case reflect.TypeFor[unit.Rate]():
		return pattern(`^[0-9]+(\.[0-9]+)? ?/(s|min|h)$`, "10/s", "600/min")
	case reflect.TypeFor[unit.Fraction]():
		return anyOf(pattern(`^[0-9]+(\.[0-9]+)? ?%$|^0(\.[0-9]+)?$`, "1%", "50%"),
			&jsonschema.Schema{Type: "number", Minimum: "0", ExclusiveMaximum: "1"})
	case reflect.TypeFor[Counts]():
		return steps(number(1), pattern(`^[0-9]+( *, *[0-9]+)*$`, "1,2,4"))
	case reflect.TypeFor[Rates]():
		one := shape(reflect.TypeFor[unit.Rate]())
		return steps(one, pattern(`^[0-9]+(\.[0-9]+)? ?/(s|min|h)( *, *[0-9]+(\.[0-9]+)? ?/(s|min|h))*$`, "10/s,20/s"))
	case reflect.TypeFor[Command]():
		return anyOf(&jsonschema.Schema{Type: "string", Enum: anyWords(words()["client"])}, object(required("command"), "command",
			&jsonschema.Schema{Type: "array", Items: plainType("string"), MinItems: size(1)}))
	case reflect.TypeFor[workload.Span]():
		return drawn(shape(reflect.TypeFor[unit.Duration]()), "exponential", shape(reflect.TypeFor[unit.Duration]()))
	case reflect.TypeFor[workload.Dist]():
		return drawn(shape(reflect.TypeFor[unit.Size]()), "weights", weighted())
	case reflect.TypeFor[map[string]float64]():
		return weighted()
	case reflect.TypeFor[unit.Bitrate]():
		return anyOf(pattern(`^(0|[0-9]+(\.[0-9]+)? ?([kMGT]?bit|[kMGT]?B|[KMGT]iB)/s)$`, "100Mbit/s", "1Gbit/s"), zero())
	case reflect.TypeFor[Links]():
		one := linkShape()
		return anyOf(one, &jsonschema.Schema{Type: "object", MinProperties: size(1), AdditionalProperties: linkShape(),
			PropertyNames: &jsonschema.Schema{Not: &jsonschema.Schema{Enum: anyWords(link.Keys())}}})
	case reflect.TypeFor[Matrix]():
		return &jsonschema.Schema{Type: "object", MinProperties: size(1), AdditionalProperties: &jsonschema.Schema{Type: "array",
			MinItems: size(1)}}
	case reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[uint64]():
		return number(0)
	}
	return nil
}

func anyWords(words []string) []any {
	var out []any
	for _, w := range words {
		out = append(out, w)
	}
	return out
}

// linkShape is the schema of the keys of one link.
func linkShape() *jsonschema.Schema {
	out := &jsonschema.Schema{Type: "object", MinProperties: size(1), Properties: jsonschema.NewProperties(), AdditionalProperties: nothing()}
	of := reflect.TypeFor[link.Spec]()
	for i, name := range fieldNames(of) {
		out.Properties.Set(name, shape(of.Field(i).Type))
	}
	out.Properties.Set("congestion", plainType("string"))
	out.Properties.Set("trunk", plainType("string"))
	out.Properties.Set("share", &jsonschema.Schema{Type: "number", Minimum: "0"})
	span := reflect.TypeFor[unit.Duration]()
	outage := object(required("after", "for"), "after", shape(span), "for", shape(span))
	out.Properties.Set("outages", &jsonschema.Schema{Type: "array", Items: outage})
	return out
}

func plainType(name string) *jsonschema.Schema { return &jsonschema.Schema{Type: name} }

func anyOf(s ...*jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{AnyOf: s} }

func required(names ...string) []string { return names }

func size(n uint64) *uint64 { return &n }

func number(least int) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Minimum: json.Number(string(rune('0' + least)))}
}

// zero is the one number that needs no unit.
func zero() *jsonschema.Schema { return &jsonschema.Schema{Const: 0} }

// nothing matches nothing: no other keys than those named.
func nothing() *jsonschema.Schema { return jsonschema.FalseSchema }

// pattern is a text with a unit.
func pattern(expr string, examples ...any) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: expr, Examples: examples}
}

func weighted() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "number", Minimum: "0"}}
}

func object(need []string, name string, s *jsonschema.Schema, more ...any) *jsonschema.Schema {
	o := &jsonschema.Schema{Type: "object", Required: need, Properties: jsonschema.NewProperties(), AdditionalProperties: nothing()}
	o.Properties.Set(name, s)
	for i := 0; i+1 < len(more); i += 2 {
		if name, ok := more[i].(string); ok {
			if s, ok := more[i+1].(*jsonschema.Schema); ok {
				o.Properties.Set(name, s)
			}
		}
	}
	return o
}

// drawn is one value, or a map with one way to draw it.
func drawn(one *jsonschema.Schema, way string, other *jsonschema.Schema) *jsonschema.Schema {
	two := &jsonschema.Schema{Type: "array", Items: one, MinItems: size(2), MaxItems: size(2)}
	return anyOf(one, object(required("uniform"), "uniform", two), object(required(way), way, other))
}

// steps is one value, several in a text or a list, or a progression.
func steps(one, text *jsonschema.Schema) *jsonschema.Schema {
	by := anyOf(plainType("string"), number(1))
	all := &jsonschema.Schema{Type: "array", Items: one, MinItems: size(1), MaxItems: size(maxSteps)}
	return anyOf(one, text, all, object(required("from", "to", "by"), "from", one, "to", one, "by", by))
}

// describe writes what the table of keys says into the schema of one key.
func describe(s *jsonschema.Schema, path []string, k key, value any) {
	for _, name := range path {
		s = below(s, name)
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

// below returns the schema of one key of a map, or of a list's items.
func below(s *jsonschema.Schema, name string) *jsonschema.Schema {
	for _, alternative := range append([]*jsonschema.Schema{s}, s.AnyOf...) {
		if name == "[]" && alternative.Items != nil {
			return alternative.Items
		}
		if alternative.Properties != nil {
			if found, ok := alternative.Properties.Get(name); ok {
				return found
			}
		}
	}
	return nil
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
