package document

import (
	"encoding"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"weir/internal/say"
	"weir/internal/tags"
)

// A Decoder fills Go values from nodes. It continues after a mistake, so that all are found at
// once.
type Decoder struct {
	*Reader
	Where map[string]Place // of the values that were given, by dotted path

	field  tags.Field      // of the key that is decoded
	unread map[string]bool // dotted paths of values with mistakes, and of keys that were probably meant; "" is the whole file
}

// Value decodes n into v; path is n's dotted path.
func (d *Decoder) Value(n *Node, path string, v reflect.Value) {
	d.Where[path] = n.At
	before := len(d.Mistakes)
	d.value(n, path, v)
	if len(d.Mistakes) > before {
		d.skip(path)
	}
}

// skip notes that the file has a value of path that was not read.
func (d *Decoder) skip(path string) {
	if d.unread == nil {
		d.unread = map[string]bool{}
	}
	d.unread[path] = true
}

func (d *Decoder) value(n *Node, path string, v reflect.Value) {
	if n.Kind == Null {
		d.Say(n.At, "%s has no value; give it one, or omit the key", path)
		return
	}
	if d.format.Decode != nil && d.format.Decode(d, n, path, v) {
		return
	}
	if x, ok := v.Addr().Interface().(encoding.TextUnmarshaler); !ok {
		d.basic(n, path, v)
	} else if d.Plain(n, path) {
		d.Wrong(n, path, x.UnmarshalText([]byte(n.Text)))
	}
}

func (d *Decoder) basic(n *Node, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		d.Fields(n, path, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.Value(n, path, v.Elem())
	case reflect.Slice:
		d.slice(n, path, v)
	case reflect.Map:
		d.named(n, path, v)
	default:
		d.scalar(n, path, v)
	}
}

// Fields decodes a map into a struct.
func (d *Decoder) Fields(n *Node, path string, v reflect.Value) {
	if n.Kind != Map {
		known := tags.Names(v.Type())
		d.Say(n.At, "%s: %s; write a map with keys such as %s", path, n.Describe(), strings.Join(known[:min(3, len(known))], ", "))
		return
	}
	fields := tags.Fields(v.Type())
	for _, e := range n.Entries {
		i := slices.IndexFunc(fields, func(f tags.Field) bool { return f.Key == e.Key })
		if i < 0 {
			d.unknown(e, path, v.Type())
			continue
		}
		d.field = fields[i]
		d.Value(e.Value, Join(path, e.Key), v.FieldByIndex(d.field.Index))
	}
}

// Join returns the dotted path of a key.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Plain reports whether n is a single value, and adds a mistake if it is not.
func (d *Decoder) Plain(n *Node, path string) bool {
	if n.Kind != Scalar {
		d.Say(n.At, "%s: %s; write one value", path, n.Describe())
	}
	return n.Kind == Scalar
}

// Wrong adds err, if any, as a mistake in the value of path.
func (d *Decoder) Wrong(n *Node, path string, err error) {
	if err != nil {
		d.Say(n.At, "%s: %v", path, err)
	}
}

func (d *Decoder) scalar(n *Node, path string, v reflect.Value) {
	if !d.Plain(n, path) {
		return
	}
	switch v.Kind() {
	case reflect.String:
		d.word(n, path)
		v.SetString(n.Text)
	case reflect.Bool:
		if n.Text != "true" && n.Text != "false" {
			d.Say(n.At, "%s: %s; write true or false", path, Quote(n.Text))
		}
		v.SetBool(n.Text == "true")
	case reflect.Int, reflect.Int64:
		x, err := Whole(n.Text)
		d.Wrong(n, path, err)
		v.SetInt(x)
	case reflect.Uint64:
		x, err := strconv.ParseUint(n.Text, 0, 64)
		if err != nil {
			d.Say(n.At, "%s: %s; write a whole number from 0 to 18446744073709551615", path, Quote(n.Text))
		}
		v.SetUint(x)
	case reflect.Float64:
		x, err := strconv.ParseFloat(n.Text, 64)
		if err != nil || x-x != 0 {
			d.Say(n.At, "%s: %s; write a number", path, Quote(n.Text))
			return
		}
		v.SetFloat(x)
	}
}

// Whole parses a whole number from 0 on.
func Whole(text string) (int64, error) {
	x, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New(Quote(text) + ": too large")
	case err != nil:
		return 0, errors.New(Quote(text) + "; write a whole number")
	case x < 0:
		return 0, errors.New(Quote(text) + ": cannot be negative")
	}
	return x, nil
}

// unknown adds the mistake of a key that does not exist. It never quotes the value, which may be a secret.
func (d *Decoder) unknown(e Entry, path string, t reflect.Type) {
	full, known := Join(path, e.Key), tags.Names(t)
	if near := say.Nearest(e.Key, known); near != "" {
		d.skip(Join(path, near))
	}
	if d.format.Unknown != nil && d.format.Unknown(d, e, path) {
		return
	}
	for _, from := range []string{"_file", "_variable"} {
		if slices.Contains(known, e.Key+from) {
			d.Say(e.At, "%s: a %s must not contain secrets; name where it is kept with %s%s", full, d.format.Noun, e.Key, from)
			return
		}
	}
	d.Say(e.At, "unknown key %s%s", full, Meant(e.Key, known))
}

// word checks a value of a key with allowed values.
func (d *Decoder) word(n *Node, path string) {
	known := d.field.Words
	if known == nil || slices.Contains(known, n.Text) {
		return
	}
	if text, ok := d.format.Hints[path+"="+n.Text]; ok {
		d.Say(n.At, "%s: %s %s", path, Quote(n.Text), text)
		return
	}
	d.Say(n.At, "%s: unknown %s %s%s", path, d.field.Key, Quote(n.Text), Meant(n.Text, known))
}

func (d *Decoder) slice(n *Node, path string, v reflect.Value) {
	if n.Kind != List {
		d.Say(n.At, "%s: %s; write a list, as in [a, b]", path, n.Describe())
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
	for i, item := range n.Items {
		d.Value(item, path+"."+strconv.Itoa(i), v.Index(i))
	}
}

// weights decodes a map of names to weights, with which the names are drawn.
func (d *Decoder) weights(n *Node, path string, v reflect.Value) {
	if n.Kind != Map {
		d.Say(n.At, "%s: %s; write weights, as in {a: 3, b: 1}", path, n.Describe())
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range n.Entries {
		weight := reflect.New(v.Type().Elem()).Elem()
		before := len(d.Mistakes)
		d.Value(e.Value, Join(path, e.Key), weight)
		if len(d.Mistakes) == before && weight.Float() < 0 {
			d.Say(e.Value.At, "%s: %s; a weight cannot be negative", Join(path, e.Key), Quote(e.Value.Text))
		}
		v.SetMapIndex(reflect.ValueOf(e.Key), weight)
	}
}

// named decodes a map whose keys are names.
func (d *Decoder) named(n *Node, path string, v reflect.Value) {
	of := v.Type().Elem()
	if of.Kind() == reflect.Float64 {
		d.weights(n, path, v)
		return
	}
	if n.Kind != Map {
		d.Say(n.At, "%s: %s; write a map of names, as in {a: ..., b: ...}", path, n.Describe())
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range n.Entries {
		one := reflect.New(of).Elem()
		d.Value(e.Value, Join(path, e.Key), one)
		v.SetMapIndex(reflect.ValueOf(e.Key), one)
	}
}

// SetDefaults sets the fields of the struct that to points to, and of structs in it, to their defaults. It skips fields that have a
// value, and those whose default has a condition.
func (f Format) SetDefaults(to any) { f.setDefaults(reflect.ValueOf(to).Elem()) }

func (f Format) setDefaults(v reflect.Value) {
	for _, field := range tags.Fields(v.Type()) {
		at := v.FieldByIndex(field.Index)
		switch {
		case field.Default != "" && field.When == "":
			f.setDefault(at, field)
		case at.Kind() == reflect.Struct:
			f.setDefaults(at)
		}
	}
}

// SetDefault sets one key of the struct that to points to, unless it has a value, to its default, whose condition the caller has checked.
func (f Format) SetDefault(to any, key string) {
	v := reflect.ValueOf(to).Elem()
	for _, field := range tags.Fields(v.Type()) {
		if field.Key == key {
			f.setDefault(v.FieldByIndex(field.Index), field)
		}
	}
}

func (f Format) setDefault(v reflect.Value, field tags.Field) {
	list := v.Kind() == reflect.Map || v.Kind() == reflect.Slice
	if list && v.Len() > 0 || !list && !v.IsZero() {
		return
	}
	d := &Decoder{Reader: NewReader(f, ""), Where: map[string]Place{}, field: field}
	n := &Node{Text: field.Default}
	if strings.HasPrefix(n.Text, "{") {
		n = d.Read([]byte(n.Text))
	}
	if d.Value(n, field.Key, v); len(d.Mistakes) > 0 {
		panic(d.Mistakes.Error()) // a wrong tag
	}
}
