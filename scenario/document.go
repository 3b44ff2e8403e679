package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
)

// A Format is another kind of YAML file, whose structure is that of a Go struct: its fields have
// the tags yaml (the key) and jsonschema_description. Such files are read as strictly as scenarios.
// They have no variables.
type Format struct {
	Noun  string              // what a file is, as in "configuration"
	Title string              // of the schema
	About string              // of the schema
	Words map[string][]string // allowed values by dotted path, with [] for the index in a list
}

// A Document is a file that was read.
type Document struct {
	tree  *tree
	where map[string]place
}

// Read decodes data into the struct that into points to. name is the file's path, for mistakes,
// which Err returns.
func (f Format) Read(name string, data []byte, into any) *Document {
	d := &Document{tree: &tree{file: name, format: &f}, where: map[string]place{}}
	root := d.tree.read(data)
	switch {
	case root == nil:
	case root.kind != mapping:
		d.tree.say(root.at, "%s; a %s is a map of keys", root.what(), f.Noun)
	default:
		(&decoder{tree: d.tree, where: d.where}).fields(root, "", reflect.ValueOf(into).Elem())
	}
	return d
}

// Has reports whether the file has a value of this dotted path, such as sites.0.url.
func (d *Document) Has(path string) bool {
	_, ok := d.where[path]
	return ok
}

// Wrong adds a mistake about the value of path, or about the whole file if it has none.
func (d *Document) Wrong(path string, err error) {
	at, ok := d.where[path]
	for !ok && path != "" { // a key that is missing: what it is missing from
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
		at, ok = d.where[path]
	}
	d.tree.say(at, "%v", err)
}

// Err returns all mistakes so far as Mistakes, nil if there are none.
func (d *Document) Err() error { return d.tree.mistakes.err() }

// Schema returns the JSON Schema of files that are decoded into a struct of the type of of.
func (f Format) Schema(of any) ([]byte, error) {
	s := schemaOf(of)
	s.ID, s.Title, s.Description = jsonschema.ID("https://weir.invalid/"+strings.ReplaceAll(f.Title, " ", "-")+".schema.json"),
		f.Title, f.About
	for path, words := range f.Words {
		at := s
		for name := range strings.SplitSeq(path, ".") {
			if at = below(at, name); at == nil {
				return nil, fmt.Errorf("schema: there is no key %s", path)
			}
		}
		at.Enum = anyWords(words)
	}
	return schemaText(s)
}

// noun is what the file is.
func (t *tree) noun() string {
	if t.format != nil {
		return t.format.Noun
	}
	return "scenario"
}

// only returns what is said of scenarios only.
func (t *tree) only(text string) string {
	if t.format != nil {
		return ""
	}
	return text
}

// words returns the words that a value may be, nil if it may be any.
func (t *tree) words(path string) []string {
	if t.format != nil {
		return t.format.Words[path]
	}
	return words()[path]
}

// unknownOther is unknown in files that are not scenarios. It never quotes the value.
func (d *decoder) unknownOther(e entry, full string, known []string) {
	for _, from := range []string{"_file", "_variable"} {
		if slices.Contains(known, e.key+from) {
			d.say(e.at, "%s: a %s must not contain secrets; name where it is kept with %s%s", full, d.noun(), e.key, from)
			return
		}
	}
	d.say(e.at, "unknown key %s%s", full, meant(e.key, known))
}

// named decodes a map whose keys are names.
func (d *decoder) named(n *node, path string, v reflect.Value) {
	of := v.Type().Elem()
	if of.Kind() == reflect.Float64 {
		d.weights(n, path, v)
		return
	}
	if n.kind != mapping {
		d.say(n.at, "%s: %s; write a map of names, as in {a: ..., b: ...}", path, n.what())
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range n.entries {
		one := reflect.New(of).Elem()
		d.value(e.value, join(path, e.key), one)
		v.SetMapIndex(reflect.ValueOf(e.key), one)
	}
}
