// Package keys compares the keys in docs/results.md with the keys of the types of the format.
package keys

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"weir/internal/require"
)

// word matches a key as it is written in the page.
var word = regexp.MustCompile("`([a-z0-9_]+)`")

// Compare fails t unless the section of the page at path contains exactly the keys of types
// (structs, or objects that were read): each key in the first column of a table, or in the text.
func Compare(t *testing.T, path, section string, types ...any) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	_, body, found := strings.Cut(string(b), "\n## "+section)
	if !found {
		t.Fatalf("%s has no section %q", path, section)
	}
	body, _, _ = strings.Cut(body, "\n## ")
	anywhere, tables := map[string]bool{}, map[string]bool{}
	for _, line := range strings.Split(body, "\n") {
		for _, m := range word.FindAllStringSubmatch(line, -1) {
			anywhere[m[1]] = true
		}
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range word.FindAllStringSubmatch(cells[1], -1) {
				tables[m[1]] = true
			}
		}
	}
	there := map[string]bool{}
	for _, v := range types {
		for key, where := range keysOf(v) {
			there[key] = true
			if !anywhere[key] {
				t.Errorf("%s, %s: %s is not described: %s", path, section, where, key)
			}
		}
	}
	for key := range tables {
		if !there[key] {
			t.Errorf("%s, %s: there is no key %s", path, section, key)
		}
	}
}

// keysOf returns the JSON keys of v, a struct or an object that was read, with their origins.
func keysOf(v any) map[string]string {
	keys := map[string]string{}
	if object, ok := v.(map[string]any); ok {
		for key := range object {
			keys[key] = "an object"
		}
		return keys
	}
	of := reflect.TypeOf(v)
	for _, f := range reflect.VisibleFields(of) { // including the fields of embedded structs
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" && key != "-" {
			keys[key] = of.String() + "." + f.Name
		}
	}
	return keys
}
