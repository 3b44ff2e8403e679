package scenario

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/internal/say"
)

// variableName matches the name of a variable.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// variables fills ${NAME} and ${NAME:-default} in the values of a scenario.
// Values come from --var, then, for names that the file lists as null, from
// the environment, then from the file, then from the default in place.
type variables struct {
	*tree
	given  map[string]string // --var
	listed map[string]*node  // the block variables
	used   map[string]bool
}

// fill takes the block variables out of root and fills all other values.
func (t *tree) fill(root *node, given map[string]string) {
	v := &variables{tree: t, given: given, listed: map[string]*node{}, used: map[string]bool{}}
	v.list(root)
	v.walk(root)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := v.listed[name]; !ok && !v.used[name] {
			v.mistakes = append(v.mistakes, &Mistake{Text: "--var " + name + ": the scenario has no such variable" + meantOr(name, v.names())})
		}
	}
}

func meantOr(name string, known []string) string {
	if len(known) == 0 {
		return "; it has none"
	}
	return meant(name, known)
}

func (v *variables) names() []string {
	return slices.Sorted(maps.Keys(v.listed))
}

func (v *variables) list(root *node) {
	block := root.get("variables")
	if block == nil {
		return
	}
	root.entries = slices.DeleteFunc(root.entries, func(e entry) bool { return e.key == "variables" })
	if block.kind != mapping {
		v.say(block.at, "variables: %s; write names and values, as in {SIZE: 1MiB}", block.what())
		return
	}
	for _, e := range block.entries {
		switch {
		case !variableName.MatchString(e.key):
			v.say(e.at, "variables: %s is not a name; use letters, digits and _", quote(e.key))
		case secretName(e.key):
			v.say(e.at, "variables.%s: %s", e.key, secretVariable)
		case e.value.kind == list || e.value.kind == mapping:
			v.say(e.value.at, "variables.%s: %s; write one value", e.key, e.value.what())
		case e.value.kind == scalar && strings.Contains(e.value.text, "${"):
			v.say(e.value.at, "variables.%s: %s; a variable cannot refer to others", e.key, quote(e.value.text))
		}
		v.listed[e.key] = e.value
	}
}

func (v *variables) walk(n *node) {
	for _, i := range n.items {
		v.walk(i)
	}
	for _, e := range n.entries {
		v.walk(e.value)
	}
	if n.kind == scalar && strings.Contains(n.text, "${") {
		n.text = v.expand(n)
	}
}

// expand returns n's text with its variables filled in; $${ represents ${.
func (v *variables) expand(n *node) string {
	var b strings.Builder
	rest := n.text
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
			v.say(n.at, "%s: the variable is not closed by }; write $${ for a literal ${", quote(n.text))
			break
		}
		b.WriteString(rest[:i])
		b.WriteString(v.value(n, name))
		rest = after
		if b.Len() > maxBytes {
			v.say(n.at, "too long with its variables filled in")
			return ""
		}
	}
	b.WriteString(rest)
	return b.String()
}

func (v *variables) value(n *node, ref string) string {
	name, fallback, optional := strings.Cut(ref, ":-")
	if !variableName.MatchString(name) {
		v.say(n.at, "%s is not a variable; write ${NAME} or ${NAME:-default}", quote("${"+ref+"}"))
		return ""
	}
	v.used[name] = true
	if _, listed := v.listed[name]; secretName(name) && !listed {
		v.say(n.at, "${%s}: %s", name, secretVariable)
		return ""
	}
	if text, ok := v.given[name]; ok {
		n.at.outside = true
		return text
	}
	value, listed := v.listed[name]
	if listed && value.kind == null {
		if text, ok := os.LookupEnv(name); ok {
			n.at.outside = true
			return text
		}
	}
	switch {
	case listed && value.kind == scalar:
		return value.text
	case optional:
		return fallback
	case listed:
		v.say(n.at, "variable %s has no value; give --var %s=..., or set it in the environment", name, name)
	default:
		v.say(n.at, "there is no variable %s%s", name, listHint(name, v.names()))
	}
	return ""
}

const secretVariable = "a scenario must not contain secrets, not even in variables; name the variable with auth.password_variable or " +
	"auth.token_variable"

// secretName says whether a variable is called as secrets are.
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
		return meant(name, known)
	}
	return "; list it under variables, or write ${" + name + ":-default}"
}

// apply changes root as --set asks: "workload.session=fresh" sets one key by
// its dotted path, "hosts.0.name=a" one of a list, "load.rate=null" takes a
// key out. The value is read as YAML.
func (t *tree) apply(root *node, set string) {
	path, text, found := strings.Cut(set, "=")
	path = strings.TrimSpace(path)
	var keys []string
	if factor, ok := strings.CutPrefix(path, "matrix."); ok && factor != "" {
		keys = []string{"matrix", currentKey(factor)} // whose name is a dotted path
	} else {
		keys = strings.Split(currentKey(path), ".")
	}
	at := place{set: path}
	if path == "" {
		at.set = "..."
	}
	if !found || slices.Contains(keys, "") || len(keys) > maxDepth {
		t.say(at, "write a key and its value, as in --set workload.session=fresh")
		return
	}
	value := t.setValue(path, text)
	if value == nil {
		return
	}
	t.renameOlder(value, strings.Join(keys, "."))
	t.insert(root, keys, value, at)
}

// insert gives the key at the end of keys another value, null to take it out.
func (t *tree) insert(root *node, keys []string, value *node, at place) {
	parent := root
	for i, key := range keys[:len(keys)-1] {
		next := t.child(parent, key, at)
		if next == nil {
			t.say(at, "%s: there is no item %s", strings.Join(keys[:i], "."), quote(key))
			return
		}
		parent = next
	}
	t.put(parent, keys[len(keys)-1], value, at)
}

func (t *tree) setValue(path, text string) *node {
	if strings.TrimSpace(text) == "" {
		return &node{at: place{set: path}}
	}
	sub := &tree{set: path}
	n := sub.read([]byte(text))
	t.mistakes = append(t.mistakes, sub.mistakes...)
	return n
}

// child returns what key leads to, making a map on the way where there is
// none: --set workload.think.exponential=2s replaces think: 1s.
func (t *tree) child(parent *node, key string, at place) *node {
	if parent.kind == list {
		if i, err := strconv.Atoi(key); err == nil {
			if i < 0 || i >= len(parent.items) {
				return nil
			}
			return parent.items[i]
		}
	}
	become(parent, at)
	if next := parent.get(key); next != nil {
		return next
	}
	next := &node{kind: mapping, at: at}
	parent.entries = append(parent.entries, entry{key, at, next})
	return next
}

func become(n *node, at place) {
	if n.kind != mapping {
		*n = node{kind: mapping, at: at}
	}
}

func (t *tree) put(parent *node, key string, value *node, at place) {
	if parent.kind == list {
		if i, err := strconv.Atoi(key); err == nil {
			if i < 0 || i >= len(parent.items) {
				t.say(at, "there is no item %d: the list has %d", i, len(parent.items))
				return
			}
			parent.items[i] = value
			return
		}
	}
	become(parent, at)
	parent.entries = slices.DeleteFunc(parent.entries, func(e entry) bool { return e.key == key })
	if value.kind != null {
		parent.entries = append(parent.entries, entry{key, at, value})
	}
}
