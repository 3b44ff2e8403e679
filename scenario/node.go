package scenario

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of what is read, so that no file costs endless time or memory.
const (
	maxBytes = 256 << 10 // of a scenario
	maxNodes = 20_000    // with all aliases written out
	maxDepth = 24        // of maps and lists in each other
)

type kind uint8

const (
	scalar kind = iota
	list
	mapping
	null
)

// A node is a piece of a scenario with the place it came from. It is what
// variables and --set work on, before anything is decoded.
type node struct {
	kind    kind
	text    string // scalar: its value, unquoted
	items   []*node
	entries []entry
	at      place
}

type entry struct {
	key   string
	at    place
	value *node
}

// A place is where a node came from.
type place struct {
	line, column int
	set          string // path of a --set
	outside      bool   // the value came from --var or the environment
}

func (n *node) get(key string) *node {
	if n.kind != mapping {
		return nil
	}
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// what says what n is, for messages.
func (n *node) what() string {
	switch n.kind {
	case list:
		return "a list"
	case mapping:
		return "a map"
	case null:
		return "nothing"
	}
	return quote(n.text)
}

// A tree reads YAML into nodes and collects what is wrong with it.
type tree struct {
	file     string
	format   *Format // of another kind of file; nil: a scenario
	set      string  // when it reads the value of a --set
	mistakes Mistakes
	anchors  map[string]*node
	nodes    int
	full     bool // a bound was exceeded and reported
}

func (t *tree) say(at place, format string, args ...any) {
	m := &Mistake{File: t.file, Line: at.line, Column: at.column, Set: at.set, Text: fmt.Sprintf(format, args...)}
	t.mistakes = append(t.mistakes, m)
}

// read returns the one document in data, nil if it cannot be read at all.
func (t *tree) read(data []byte) (root *node) {
	t.anchors = map[string]*node{}
	top := place{line: 1, column: 1, set: t.set}
	if len(data) > maxBytes {
		t.say(top, "%d bytes are too many; use at most %d%s", len(data), maxBytes,
			t.only(", and put long lists of files into a file of their own (files.list)"))
		return nil
	}
	defer func() { // the YAML parser has had panics on malformed input
		if p := recover(); p != nil {
			t.say(top, "not YAML")
			root = nil
		}
	}()
	text := strings.TrimPrefix(string(data), "\ufeff")
	tokens := lexer.Tokenize(text)
	if at := deep(tokens); at != nil {
		t.say(t.place(at), "more than %d nested maps and lists", maxDepth)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		t.syntax(err, top)
		return nil
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			t.say(t.place(doc.Body.GetToken()), "a second document; write one document")
			break
		}
		root = t.node(doc.Body, 0)
	}
	if root == nil {
		t.say(top, "the %s is empty%s", t.noun(), t.only("; give at least a target, as in target: http://localhost:8080/"))
	}
	return root
}

func (t *tree) syntax(err error, top place) {
	var s *yaml.SyntaxError
	if errors.As(err, &s) {
		t.say(t.place(s.Token), "not YAML; %s", s.Message)
		return
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	t.say(top, "not YAML; %s", text)
}

// deep returns the token that opens one map or list too many, before the
// parser descends into it.
func deep(tokens token.Tokens) *token.Token {
	depth, row, line := 0, 0, 0
	for _, tk := range tokens {
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType, token.MappingValueType:
			row++
		}
		if tk.Position.Line != line && depth == 0 {
			line, row = tk.Position.Line, 0
		}
		if depth > maxDepth || depth == 0 && row > maxDepth || tk.Position.IndentLevel > maxDepth {
			return tk
		}
	}
	return nil
}

func (t *tree) place(tk *token.Token) place {
	if t.set != "" || tk == nil || tk.Position == nil {
		return place{set: t.set}
	}
	return place{line: tk.Position.Line, column: max(tk.Position.Column, 1)}
}

// exceeds counts one more value, and reports whether there are too many, or they are nested too deeply.
func (t *tree) exceeds(at place, depth int) bool {
	if t.nodes++; t.nodes <= maxNodes && depth <= maxDepth {
		return false
	}
	if !t.full {
		t.say(at, "the %s is too large; use at most %d values with all aliases expanded, and %d nested maps and lists", t.noun(),
			maxNodes, maxDepth)
	}
	t.full = true
	return true
}

// node turns n into our own, aliases expanded.
func (t *tree) node(n ast.Node, depth int) *node {
	at := t.place(n.GetToken())
	if t.exceeds(at, depth) {
		return &node{kind: null, at: at}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return t.mapping(n.Values, at, depth)
	case *ast.MappingValueNode:
		return t.mapping([]*ast.MappingValueNode{n}, at, depth)
	case *ast.SequenceNode:
		out := &node{kind: list, at: at}
		for _, v := range n.Values {
			out.items = append(out.items, t.node(v, depth+1))
		}
		return out
	case *ast.AnchorNode:
		out := t.node(n.Value, depth)
		t.anchors[n.Name.GetToken().Value] = out
		return out
	case *ast.AliasNode:
		return t.alias(n.Value.GetToken().Value, at)
	case *ast.NullNode:
		return &node{kind: null, at: at}
	case *ast.LiteralNode:
		return &node{text: n.Value.Value, at: at}
	case *ast.StringNode:
		return &node{text: n.Value, at: at}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return &node{text: n.GetToken().Value, at: at}
	}
	t.say(at, "%s is not allowed in a %s; write plain maps, lists and values", quote(n.GetToken().Value), t.noun())
	return &node{kind: null, at: at}
}

func (t *tree) mapping(values []*ast.MappingValueNode, at place, depth int) *node {
	out := &node{kind: mapping, at: at}
	seen := map[string]place{}
	for i, v := range values {
		tk := v.Key.GetToken()
		e := entry{key: tk.Value, at: t.place(tk)}
		if i == 0 && at.set == "" {
			out.at = e.at
		}
		if _, plain := v.Key.(*ast.StringNode); !plain {
			switch v.Key.(type) {
			case *ast.MergeKeyNode, *ast.MappingKeyNode, *ast.AliasNode, *ast.AnchorNode, *ast.TagNode:
				t.say(e.at, "%s is not a key; write plain words, without merges, anchors or tags", quote(tk.Value))
				continue
			}
		}
		if first, twice := seen[e.key]; twice {
			t.say(e.at, "key %s is repeated, first in line %d; keep one", quote(e.key), first.line)
			continue
		}
		seen[e.key] = e.at
		e.value = t.node(v.Value, depth+1)
		out.entries = append(out.entries, e)
	}
	return out
}

// alias returns a copy of what was anchored, counted like anything written.
func (t *tree) alias(name string, at place) *node {
	found, ok := t.anchors[name]
	if !ok {
		t.say(at, "there is no anchor &%s before this *%s", name, name)
		return &node{kind: null, at: at}
	}
	return t.copy(found)
}

func (t *tree) copy(n *node) *node {
	if t.exceeds(n.at, 0) {
		return &node{kind: null, at: n.at}
	}
	out := *n
	out.items, out.entries = nil, nil
	for _, i := range n.items {
		out.items = append(out.items, t.copy(i))
	}
	for _, e := range n.entries {
		e.value = t.copy(e.value)
		out.entries = append(out.entries, e)
	}
	return &out
}
