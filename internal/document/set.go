package document

import (
	"slices"
	"strconv"
	"strings"
)

// Apply changes root according to a --set: "workload.session=fresh" sets one key by its dotted
// path, "hosts.0.name=a" a key in a list, "load.rate=null" removes a key. The value is read as
// YAML. split returns the keys of a path; nil splits it at its dots.
func (t *Reader) Apply(root *Node, set string, split func(path string) []string) {
	path, text, found := strings.Cut(set, "=")
	path = strings.TrimSpace(path)
	keys := strings.Split(path, ".")
	if split != nil {
		keys = split(path)
	}
	at := Place{Set: path}
	if path == "" {
		at.Set = "..."
	}
	if !found || slices.Contains(keys, "") || len(keys) > MaxDepth {
		t.Say(at, "write a key and its value, as in --set %s", t.format.SetExample)
		return
	}
	value := t.setValue(path, text)
	if value == nil {
		return
	}
	t.Insert(root, keys, value, at)
}

// Insert gives the key at the end of keys another value; null removes the key.
func (t *Reader) Insert(root *Node, keys []string, value *Node, at Place) {
	parent := root
	for i, key := range keys[:len(keys)-1] {
		next := t.child(parent, key, at)
		if next == nil {
			t.Say(at, "%s: there is no item %s", strings.Join(keys[:i], "."), Quote(key))
			return
		}
		parent = next
	}
	t.put(parent, keys[len(keys)-1], value, at)
}

func (t *Reader) setValue(path, text string) *Node {
	if strings.TrimSpace(text) == "" {
		return &Node{At: Place{Set: path}}
	}
	sub := NewReader(t.format, "")
	sub.Set = path
	n := sub.Read([]byte(text))
	t.Mistakes = append(t.Mistakes, sub.Mistakes...)
	return n
}

// child returns the node of key. If the parent is not a map, it becomes a map: --set
// workload.think.exponential=2s replaces think: 1s.
func (t *Reader) child(parent *Node, key string, at Place) *Node {
	if parent.Kind == List {
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
	next := &Node{Kind: Map, At: at}
	parent.Entries = append(parent.Entries, Entry{Key: key, At: at, Value: next})
	return next
}

func become(n *Node, at Place) {
	if n.Kind != Map {
		*n = Node{Kind: Map, At: at}
	}
}

func (t *Reader) put(parent *Node, key string, value *Node, at Place) {
	if parent.Kind == List {
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
	parent.Entries = slices.DeleteFunc(parent.Entries, func(e Entry) bool { return e.Key == key })
	if value.Kind != Null {
		parent.Entries = append(parent.Entries, Entry{Key: key, At: at, Value: value})
	}
}
