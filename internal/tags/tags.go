// Package tags reads the tags of struct fields that describe the keys of a file format:
//
//	Session string `yaml:"session" default:"kept" enum:"kept,fresh" doc:"Lifetime of connections."`
//
// yaml, or json without it, is the name of the key. default is its value as YAML; when is the condition of the default, if there is one.
// enum lists the allowed values, and doc is the description. required marks a key that must be given.
package tags

import (
	"reflect"
	"strings"
)

// A Field is a field of a struct, with the facts of its key.
type Field struct {
	reflect.StructField
	Key, Doc, Default, When string
	Words                   []string // allowed values; nil: any
	Required                bool
}

// Fields returns the fields of a struct that have a key, in their order.
func Fields(t reflect.Type) (all []Field) {
	for i := range t.NumField() {
		f := Field{StructField: t.Field(i)}
		name, given := f.Tag.Lookup("yaml")
		if !given {
			name = f.Tag.Get("json")
		}
		if f.Key, _, _ = strings.Cut(name, ","); f.Key == "" || f.Key == "-" {
			continue
		}
		f.Doc, f.Default, f.When, f.Required = f.Tag.Get("doc"), f.Tag.Get("default"), f.Tag.Get("when"), f.Tag.Get("required") != ""
		if words := f.Tag.Get("enum"); words != "" {
			f.Words = strings.Split(words, ",")
		}
		all = append(all, f)
	}
	return all
}

// Names returns the keys of a struct, in the order of its fields.
func Names(t reflect.Type) (names []string) {
	for _, f := range Fields(t) {
		names = append(names, f.Key)
	}
	return names
}

// Words returns the allowed values of the key with this dotted path below T, nil if any value is allowed.
func Words[T any](path string) (words []string) {
	t := reflect.TypeFor[T]()
	for key := range strings.SplitSeq(path, ".") {
		words = nil
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		for _, f := range Fields(t) {
			if f.Key == key {
				t, words = f.Type, f.Words
				break
			}
		}
	}
	return words
}
