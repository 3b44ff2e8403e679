package workload

import (
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"weir/internal/document"
	"weir/internal/tags"
	"weir/internal/unit"
)

// Decode decodes a Span or a Dist of a file, and reports whether v is one of them.
func Decode(d *document.Decoder, n *document.Node, path string, v reflect.Value) bool {
	switch v.Addr().Interface().(type) {
	case *Span, *Dist:
		decodeDrawn(d, n, path, v)
		return true
	}
	return false
}

// decodeDrawn decodes a Span or Dist: a single value is constant, a map contains one of the
// distributions.
func decodeDrawn(d *document.Decoder, n *document.Node, path string, v reflect.Value) {
	v.SetZero()
	switch {
	case n.Kind == document.Scalar:
		before := len(d.Mistakes)
		d.Value(n, path, v.FieldByName("Fixed"))
		if _, ok := v.Addr().Interface().(*Dist); ok && v.FieldByName("Fixed").Int() == 0 && len(d.Mistakes) == before {
			d.Say(n.At, "%s: %s; a file has at least one byte", path, document.Quote(n.Text))
		}
	case n.Kind == document.List:
		d.Say(n.At, "%s: a list; write {uniform: [from, to]} to draw between two values", path)
	case len(n.Entries) != 1:
		d.Say(n.At, "%s: write one value, or a map with one of %s", path, strings.Join(tags.Names(v.Type())[1:], ", "))
	default:
		d.Fields(n, path, v)
		checkUniform(d, n, path, v)
	}
	if x, ok := v.Addr().Interface().(*Dist); ok && n.Kind == document.Map {
		checkSizes(d, n, path, x)
	}
}

// checkUniform checks that there are two values, the lower first.
func checkUniform(d *document.Decoder, n *document.Node, path string, v reflect.Value) {
	field := v.FieldByName("Uniform")
	from := n.Get("uniform")
	if from == nil || from.Kind != document.List {
		return
	}
	switch {
	case field.Len() != 2:
		d.Say(from.At, "%s.uniform: write two values, the lower first, as in [1, 3] with their units", path)
	case field.Index(0).Int() > field.Index(1).Int():
		d.Say(from.At, "%s.uniform: the first value is larger; write the lower value first", path)
	}
}

// checkSizes checks the sizes that carry weights.
func checkSizes(d *document.Decoder, n *document.Node, path string, x *Dist) {
	weights := n.Get("weights")
	if weights == nil || weights.Kind != document.Map {
		return
	}
	sum := 0.0
	for _, e := range weights.Entries {
		if _, err := unit.ParseSize(e.Key); err != nil {
			d.Say(e.At, "%s.weights: %v", path, err)
		}
		sum += x.Weights[e.Key]
	}
	if !(sum > 0) {
		d.Say(weights.At, "%s.weights: give at least one size a weight above 0, as in {1MiB: 3, 1GiB: 1}", path)
	}
}

// Shape returns the schema of a Span or a Dist: one value, or a map with one way to draw it. It
// returns nil for other types.
func Shape(f document.Format, t reflect.Type) *jsonschema.Schema {
	if t != reflect.TypeFor[Span]() && t != reflect.TypeFor[Dist]() {
		return nil
	}
	var all []*jsonschema.Schema
	for _, field := range tags.Fields(t) {
		one := f.SchemaOf(field.Type)
		if one.Items != nil {
			one.MinItems, one.MaxItems = document.Bound(2), document.Bound(2)
		}
		if field.Name != "Fixed" {
			one = document.Record([]string{field.Key}, one)
		}
		all = append(all, one)
	}
	return document.AnyOf(all...)
}
