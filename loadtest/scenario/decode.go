package scenario

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"weir/internal/document"
	"weir/loadtest/workload"
)

// format returns the rules for reading scenarios.
func format() document.Format {
	return document.Format{
		Noun:       "scenario",
		Hints:      map[string]string{"workload.kind=command": notWork},
		SetExample: "workload.session=fresh",
		TooLong:    ", and put long lists of files into a file of their own (files.list)",
		Empty:      "; give at least a target, as in target: http://localhost:8080/",
		Decode:     decodeValue,
		Unknown:    unknownKey,
		Shape:      shape,
	}
}

const notWork = "is not a kind of work; use command-job for a program of your own that does its work on each file, or name with client " +
	"the program that reads or writes"

// A tree is a scenario before it is decoded.
type tree struct{ *document.Reader }

func newTree(file string) *tree { return &tree{document.NewReader(format(), file)} }

// A decoder fills a Scenario from nodes.
type decoder struct{ *document.Decoder }

func (t *tree) decoder(where map[string]document.Place) *decoder {
	return &decoder{&document.Decoder{Reader: t.Reader, Where: where}}
}

// decodeValue decodes the types whose notation differs from Go's.
func decodeValue(of *document.Decoder, n *document.Node, path string, v reflect.Value) bool {
	d := &decoder{of}
	switch x := v.Addr().Interface().(type) {
	case *Command:
		d.command(n, path, x)
	case *Counts:
		*x = d.counts(n, path)
	case *Rates:
		*x = d.rates(n, path)
	case *Links:
		d.links(n, path, x)
	default:
		return workload.Decode(of, n, path, v)
	}
	return true
}

func (d *decoder) scenario(root *document.Node, s *Scenario) {
	if target := root.Get("target"); target != nil && target.Kind == document.List {
		d.endpoints(target, s)
		rest := *root
		rest.Entries = slices.DeleteFunc(slices.Clone(root.Entries), func(e document.Entry) bool { return e.Key == "target" })
		root = &rest
	}
	populations := root.Get("populations")
	if populations != nil { // after the other keys, which contain the defaults
		rest := *root
		rest.Entries = slices.DeleteFunc(slices.Clone(root.Entries), func(e document.Entry) bool { return e.Key == "populations" })
		root = &rest
	}
	d.Fields(root, "", reflect.ValueOf(s).Elem())
	if populations != nil {
		d.populations(populations, s)
	}
}

// endpoints decodes a list of targets.
func (d *decoder) endpoints(n *document.Node, s *Scenario) {
	d.Where["target"] = n.At
	for i, item := range n.Items {
		to := &s.Target
		if i > 0 {
			s.Others = append(s.Others, "")
			to = &s.Others[i-1]
		}
		d.Value(item, "target."+strconv.Itoa(i), reflect.ValueOf(to).Elem())
	}
}

// unknownKey adds the mistakes of keys that are secrets, and of several values without brackets.
func unknownKey(d *document.Decoder, e document.Entry, path string) bool {
	full := document.Join(path, e.Key)
	if text, ok := document.SecretKeys()[strings.ToLower(e.Key)]; ok {
		d.Say(e.At, "%s: a scenario must not contain secrets; %s", full, text)
		return true
	}
	if _, err := strconv.ParseFloat(e.Key, 64); err == nil { // {clients: 1,2,4} are three keys
		d.Say(e.At, "unknown key %s; several values need brackets, as in [1, 2, 4]", full)
		return true
	}
	return false
}
