package document

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

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

// SchemaOf returns the schema of the type that of points to.
func (f Format) SchemaOf(of any) *jsonschema.Schema {
	r := jsonschema.Reflector{Anonymous: true, DoNotReference: true, RequiredFromJSONSchemaTags: true, FieldNameTag: "yaml"}
	r.Mapper = func(t reflect.Type) *jsonschema.Schema {
		if f.Shape != nil {
			if s := f.Shape(t); s != nil {
				return s
			}
		}
		return Shape(t)
	}
	return r.Reflect(of)
}

// Shape returns the schema of a number, an amount with a unit, or weights by name, nil for other types.
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
	case reflect.TypeFor[map[string]float64]():
		return Weighted()
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

// zero is the one number that needs no unit.
func zero() *jsonschema.Schema { return &jsonschema.Schema{Const: 0} }

// Pattern returns the schema of a text, such as an amount with its unit.
func Pattern(expr string, examples ...any) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: expr, Examples: examples}
}

// Weighted returns the schema of weights by name.
func Weighted() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "number", Minimum: "0"}}
}

// Object returns the schema of a map with the key name, and more pairs of a name and a *jsonschema.Schema.
func Object(need []string, name string, s *jsonschema.Schema, more ...any) *jsonschema.Schema {
	o := &jsonschema.Schema{Type: "object", Required: need, Properties: jsonschema.NewProperties(),
		AdditionalProperties: jsonschema.FalseSchema}
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

// Below returns the schema of one key of a map, or of a list's items.
func Below(s *jsonschema.Schema, name string) *jsonschema.Schema {
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
