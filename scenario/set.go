package scenario

import (
	"slices"
	"strconv"
	"strings"
)

// apply changes root as --set asks: "workload.session=fresh" sets one key by
// its dotted path, "hosts.0.name=a" one of a list, "load.rate=null" takes a
// key out. The value is read as YAML.
func (t *tree) apply(root *node, set string) {
	path, text, found := strings.Cut(set, "=")
	path = strings.TrimSpace(path)
	keys := strings.Split(path, ".")
	if factor, ok := strings.CutPrefix(path, "matrix."); ok && factor != "" {
		keys = []string{"matrix", factor} // whose name is a dotted path
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
		return &node{quoted: true, at: place{set: path}}
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
