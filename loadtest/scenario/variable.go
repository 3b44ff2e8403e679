package scenario

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/internal/document"
	"weir/internal/say"
)

// variableName matches the name of a variable.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Variables is the block variables, which is removed from a scenario before the rest is decoded.
type Variables struct{}

// variables fills ${NAME} and ${NAME:-default} in the values of a scenario. Values come from --var,
// then, for names that the file lists as null, from the environment, then from the file, then from
// the default in place.
type variables struct {
	*tree
	given  map[string]string         // --var
	listed map[string]*document.Node // the block variables
	used   map[string]bool
}

// fill removes the block variables from root and fills in all other values.
func (t *tree) fill(root *document.Node, given map[string]string) {
	v := &variables{tree: t, given: given, listed: map[string]*document.Node{}, used: map[string]bool{}}
	v.list(root)
	v.walk(root)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := v.listed[name]; !ok && !v.used[name] {
			v.Mistakes = append(v.Mistakes, &document.Mistake{
				Text: "--var " + name + ": the scenario has no such variable" + meantOr(name, v.names())})
		}
	}
}

func meantOr(name string, known []string) string {
	if len(known) == 0 {
		return "; it has none"
	}
	return document.Meant(name, known)
}

func (v *variables) names() []string {
	return slices.Sorted(maps.Keys(v.listed))
}

func (v *variables) list(root *document.Node) {
	block := root.Get("variables")
	if block == nil {
		return
	}
	root.Entries = slices.DeleteFunc(root.Entries, func(e document.Entry) bool { return e.Key == "variables" })
	if block.Kind != document.Map {
		v.Say(block.At, "variables: %s; write names and values, as in {SIZE: 1MiB}", block.Describe())
		return
	}
	for _, e := range block.Entries {
		switch {
		case !variableName.MatchString(e.Key):
			v.Say(e.At, "variables: %s is not a name; use letters, digits and _", document.Quote(e.Key))
		case secretName(e.Key):
			v.Say(e.At, "variables.%s: %s", e.Key, secretVariable)
		case e.Value.Kind == document.List || e.Value.Kind == document.Map:
			v.Say(e.Value.At, "variables.%s: %s; write one value", e.Key, e.Value.Describe())
		case e.Value.Kind == document.Scalar && strings.Contains(e.Value.Text, "${"):
			v.Say(e.Value.At, "variables.%s: %s; a variable cannot refer to others", e.Key, document.Quote(e.Value.Text))
		}
		v.listed[e.Key] = e.Value
	}
}

func (v *variables) walk(n *document.Node) {
	for _, i := range n.Items {
		v.walk(i)
	}
	for _, e := range n.Entries {
		v.walk(e.Value)
	}
	if n.Kind == document.Scalar && strings.Contains(n.Text, "${") {
		n.Text = v.expand(n)
	}
}

// expand returns n's text with its variables filled in; $${ represents ${.
func (v *variables) expand(n *document.Node) string {
	var b strings.Builder
	rest := n.Text
	for {
		i := strings.Index(rest, "${")
		if i < 0 {
			break
		}
		if i > 0 && rest[i-1] == '$' {
			b.WriteString(rest[:i-1] + "${")
			rest = rest[i+2:]
			continue
		}
		name, after, closed := strings.Cut(rest[i+2:], "}")
		if !closed {
			v.Say(n.At, "%s: the variable is not closed by }; write $${ for a literal ${", document.Quote(n.Text))
			break
		}
		b.WriteString(rest[:i])
		b.WriteString(v.value(n, name))
		rest = after
		if b.Len() > document.MaxBytes {
			v.Say(n.At, "too long with its variables filled in")
			return ""
		}
	}
	b.WriteString(rest)
	return b.String()
}

func (v *variables) value(n *document.Node, ref string) string {
	name, fallback, optional := strings.Cut(ref, ":-")
	if !variableName.MatchString(name) {
		v.Say(n.At, "%s is not a variable; write ${NAME} or ${NAME:-default}", document.Quote("${"+ref+"}"))
		return ""
	}
	v.used[name] = true
	if _, listed := v.listed[name]; secretName(name) && !listed {
		v.Say(n.At, "${%s}: %s", name, secretVariable)
		return ""
	}
	if text, ok := v.given[name]; ok {
		n.At.Outside = true
		return text
	}
	value, listed := v.listed[name]
	if listed && value.Kind == document.Null {
		if text, ok := os.LookupEnv(name); ok {
			n.At.Outside = true
			return text
		}
	}
	switch {
	case listed && value.Kind == document.Scalar:
		return value.Text
	case optional:
		return fallback
	case listed:
		v.Say(n.At, "variable %s has no value; give --var %s=..., or set it in the environment", name, name)
	default:
		v.Say(n.At, "there is no variable %s%s", name, listHint(name, v.names()))
	}
	return ""
}

const secretVariable = "a scenario must not contain secrets, not even in variables; name the variable with auth.password_variable or " +
	"auth.token_variable"

// secretName reports whether the name of a variable is typical of a secret.
func secretName(name string) bool {
	name = strings.ToLower(name)
	if _, ok := secretKeys()[name]; ok {
		return true
	}
	return slices.ContainsFunc([]string{"_password", "_passwd", "_secret", "_secret_key", "_access_key", "_token", "_api_key"},
		func(end string) bool {
			return strings.HasSuffix(name, end)
		})
}

func listHint(name string, known []string) string {
	if say.Nearest(name, known) != "" {
		return document.Meant(name, known)
	}
	return "; list it under variables, or write ${" + name + ":-default}"
}

// apply changes root according to a --set: "workload.session=fresh" sets one key by its dotted
// path, "hosts.0.name=a" a key in a list, "load.rate=null" removes a key. The value is read as
// YAML.
func (t *tree) apply(root *document.Node, set string) {
	path, text, found := strings.Cut(set, "=")
	path = strings.TrimSpace(path)
	var keys []string
	if factor, ok := strings.CutPrefix(path, "matrix."); ok && factor != "" {
		keys = []string{"matrix", factor} // the name of the factor is a dotted path
	} else {
		keys = strings.Split(path, ".")
	}
	at := document.Place{Set: path}
	if path == "" {
		at.Set = "..."
	}
	if !found || slices.Contains(keys, "") || len(keys) > document.MaxDepth {
		t.Say(at, "write a key and its value, as in --set workload.session=fresh")
		return
	}
	value := t.setValue(path, text)
	if value == nil {
		return
	}
	t.insert(root, keys, value, at)
}

// insert gives the key at the end of keys another value; null removes the key.
func (t *tree) insert(root *document.Node, keys []string, value *document.Node, at document.Place) {
	parent := root
	for i, key := range keys[:len(keys)-1] {
		next := t.child(parent, key, at)
		if next == nil {
			t.Say(at, "%s: there is no item %s", strings.Join(keys[:i], "."), document.Quote(key))
			return
		}
		parent = next
	}
	t.put(parent, keys[len(keys)-1], value, at)
}

func (t *tree) setValue(path, text string) *document.Node {
	if strings.TrimSpace(text) == "" {
		return &document.Node{At: document.Place{Set: path}}
	}
	sub := newTree("")
	sub.Set = path
	n := sub.Read([]byte(text))
	t.Mistakes = append(t.Mistakes, sub.Mistakes...)
	return n
}

// child returns the node of key. If the parent is not a map, it becomes a map: --set
// workload.think.exponential=2s replaces think: 1s.
func (t *tree) child(parent *document.Node, key string, at document.Place) *document.Node {
	if parent.Kind == document.List {
		if i, err := strconv.Atoi(key); err == nil {
			if i < 0 || i >= len(parent.Items) {
				return nil
			}
			return parent.Items[i]
		}
	}
	become(parent, at)
	if next := parent.Get(key); next != nil {
		return next
	}
	next := &document.Node{Kind: document.Map, At: at}
	parent.Entries = append(parent.Entries, document.Entry{Key: key, At: at, Value: next})
	return next
}

func become(n *document.Node, at document.Place) {
	if n.Kind != document.Map {
		*n = document.Node{Kind: document.Map, At: at}
	}
}

func (t *tree) put(parent *document.Node, key string, value *document.Node, at document.Place) {
	if parent.Kind == document.List {
		if i, err := strconv.Atoi(key); err == nil {
			if i < 0 || i >= len(parent.Items) {
				t.Say(at, "there is no item %d: the list has %d", i, len(parent.Items))
				return
			}
			parent.Items[i] = value
			return
		}
	}
	become(parent, at)
	parent.Entries = slices.DeleteFunc(parent.Entries, func(e document.Entry) bool { return e.Key == key })
	if value.Kind != document.Null {
		parent.Entries = append(parent.Entries, document.Entry{Key: key, At: at, Value: value})
	}
}
