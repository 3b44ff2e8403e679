package document

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"weir/internal/tags"
	"weir/internal/unit"
)

// SchemaText returns a schema as JSON.
func SchemaText(s *jsonschema.Schema) ([]byte, error) {
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	plain := strings.NewReplacer(`\u003e`, ">", `\u003c`, "<", `\u0026`, "&") // escaped for HTML, which this is not
	return []byte(plain.Replace(string(out)) + "\n"), nil
}

// SchemaOf returns the schema of values of the type t.
func (f Format) SchemaOf(t reflect.Type) *jsonschema.Schema {
	if f.Shape != nil {
		if s := f.Shape(t); s != nil {
			return s
		}
	}
	if s := Shape(t); s != nil {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return f.SchemaOf(t.Elem())
	case reflect.Struct:
		return f.Object(t)
	case reflect.Slice:
		return &jsonschema.Schema{Type: "array", Items: f.SchemaOf(t.Elem())}
	case reflect.Map:
		return &jsonschema.Schema{Type: "object", AdditionalProperties: f.SchemaOf(t.Elem())}
	case reflect.Bool:
		return PlainType("boolean")
	}
	return PlainType("string")
}

// Object returns the schema of a struct: its keys with their descriptions, defaults and allowed values.
func (f Format) Object(t reflect.Type) *jsonschema.Schema {
	o := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
	for _, field := range tags.Fields(t) {
		s := f.SchemaOf(field.Type)
		s.Description, s.Default = field.Doc, f.defaultValue(field)
		if field.Required {
			o.Required = append(o.Required, field.Key)
			if s.Items != nil {
				s.MinItems = Bound(1)
			}
		}
		switch {
		case s.AnyOf != nil: // its alternatives have their own
		case s.Items != nil:
			s.Items.Enum = AnyWords(field.Words)
		default:
			s.Enum = AnyWords(field.Words)
		}
		o.Properties.Set(field.Key, s)
	}
	return o
}

// defaultValue returns the default of a key: a number, true, false, a map, or the text of the tag. It returns nil without a default.
func (f Format) defaultValue(field tags.Field) any {
	switch kind := field.Type.Kind(); {
	case field.Default == "":
		return nil
	case kind == reflect.Struct, kind == reflect.Slice, reflect.PointerTo(field.Type).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return field.Default
	}
	v := reflect.New(field.Type).Elem()
	f.setDefault(v, field)
	return v.Interface()
}

// Shape returns the schema of a number or an amount with a unit, nil for other types.
func Shape(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[unit.Size]():
		return AnyOf(Pattern(`^(0|[0-9]+(\.[0-9]+)? ?(B|kB|MB|GB|TB|PB|KiB|MiB|GiB|TiB|PiB))$`, "1MiB", "300kB", "20B"), zero())
	case reflect.TypeFor[unit.Duration]():
		return AnyOf(Pattern(`^(0|([0-9]+(\.[0-9]+)? ?(ns|us|µs|μs|ms|s|m|h|d) ?)+)$`, "1.5s", "250ms", "60m", "2d"), zero())
	case reflect.TypeFor[unit.Rate]():
		return Pattern(`^[0-9]+(\.[0-9]+)? ?/(s|min|h)$`, "10/s", "600/min")
	case reflect.TypeFor[unit.Fraction]():
		return AnyOf(Pattern(`^[0-9]+(\.[0-9]+)? ?%$|^0(\.[0-9]+)?$`, "1%", "50%"),
			&jsonschema.Schema{Type: "number", Minimum: "0", ExclusiveMaximum: "1"})
	case reflect.TypeFor[unit.Bitrate]():
		return AnyOf(Pattern(`^(0|[0-9]+(\.[0-9]+)? ?([kMGT]?bit|[kMGT]?B|[KMGT]iB)/s)$`, "100Mbit/s", "1Gbit/s"), zero())
	case reflect.TypeFor[float64]():
		return &jsonschema.Schema{Type: "number", Minimum: "0"}
	case reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[uint64]():
		return Number(0)
	}
	return nil
}

// AnyWords returns words as the values of an enumeration.
func AnyWords(words []string) []any {
	var out []any
	for _, w := range words {
		out = append(out, w)
	}
	return out
}

// PlainType returns the schema of a JSON type.
func PlainType(name string) *jsonschema.Schema { return &jsonschema.Schema{Type: name} }

// AnyOf returns a schema with alternatives.
func AnyOf(s ...*jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{AnyOf: s} }

// Bound returns the bound of a number of items.
func Bound(n uint64) *uint64 { return &n }

// Number returns the schema of a whole number from least on, 0 to 9.
func Number(least int) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Minimum: json.Number(string(rune('0' + least)))}
}

// zero returns the schema of the one number that needs no unit.
func zero() *jsonschema.Schema { return &jsonschema.Schema{Const: 0} }

// Pattern returns the schema of a text, such as an amount with its unit.
func Pattern(expr string, examples ...any) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: expr, Examples: examples}
}

// Record returns the schema of a map that has all of these keys, and no other.
func Record(keys []string, values ...*jsonschema.Schema) *jsonschema.Schema {
	o := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
	o.Required = keys
	for i, key := range keys {
		o.Properties.Set(key, values[i])
	}
	return o
}
