package document

import (
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
)

// A Format is a kind of YAML file with the structure of a Go struct, whose fields have the tags of package tags.
type Format struct {
	Noun  string // of a file, as in "configuration"
	Title string // of the schema
	About string // of the schema

	// The remaining fields are optional.

	Hints   map[string]string // the rest of the message for PATH=VALUE, by that
	TooLong string            // the rest of the message for a file that is too long
	Empty   string            // the rest of the message for an empty file
	// SetExample is an example of a --set, as in "workload.session=fresh".
	SetExample string
	// Decode decodes a value that is written otherwise than its Go type, and reports whether it did.
	Decode func(d *Decoder, n *Node, path string, v reflect.Value) bool
	// Unknown adds the mistake of an unknown key below path, and reports whether it did.
	Unknown func(d *Decoder, e Entry, path string) bool
	// Shape returns the schema of a type that is written otherwise than its Go type, nil for others.
	Shape func(reflect.Type) *jsonschema.Schema
}

// A Document is a file that was read. It is for one goroutine.
type Document struct{ Decoder }

// Read decodes data into the struct that into points to. name is the file's path, for mistakes, which Err returns.
func (f Format) Read(name string, data []byte, into any) *Document {
	d := &Document{Decoder{Reader: NewReader(f, name), Where: map[string]Place{}}}
	root := d.Read(data)
	switch {
	case root == nil:
		d.skip("")
	case root.Kind != Map:
		d.skip("")
		d.Say(root.At, "%s; a %s is a map of keys", root.Describe(), f.Noun)
	default:
		d.Fields(root, "", reflect.ValueOf(into).Elem())
	}
	return d
}

// Has reports whether the file has a value of this dotted path, such as sites.0.url.
func (d *Document) Has(path string) bool {
	_, ok := d.Where[path]
	return ok
}

// Unread reports whether the value of a dotted path, a value below it, or its key has a mistake, so that its Go value is not that of the
// file. The path "" stands for the whole file.
func (d *Document) Unread(path string) bool { return d.unread[path] }

// Mistake adds a mistake about the value of path, or about the whole file if path is empty.
func (d *Document) Mistake(path string, err error) {
	at, ok := d.Where[path]
	for !ok && path != "" { // a key that is missing: report it at its parent
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
		at, ok = d.Where[path]
	}
	d.Say(at, "%v", err)
}

// Err returns all mistakes so far as Mistakes, nil if there are no mistakes.
func (d *Document) Err() error { return d.Mistakes.Err() }

// Schema returns the JSON Schema of files that are decoded into a struct of the type t.
func (f Format) Schema(t reflect.Type) ([]byte, error) {
	s := f.SchemaOf(t)
	s.Version, s.ID = jsonschema.Version, jsonschema.ID("https://weir.invalid/"+strings.ReplaceAll(f.Title, " ", "-")+".schema.json")
	s.Title, s.Description = f.Title, f.About
	return SchemaText(s)
}
