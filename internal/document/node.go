// Package document reads YAML files strictly into Go structs: every mistake has its place in the
// file and names a correct value, and all mistakes of a file are reported at once. Scenarios and
// the settings of commands are read with it. It also makes JSON Schemas of the structs.
package document

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of a file, so that no file takes endless time or memory.
const (
	MaxBytes = 256 << 10
	MaxDepth = 24     // of nested maps and lists
	maxNodes = 20_000 // with all aliases expanded
)

// A Kind is the kind of a Node.
type Kind uint8

// Kinds of nodes.
const (
	Scalar Kind = iota
	List
	Map
	Null
)

// A Node is a piece of a file with its place, before anything is decoded.
type Node struct {
	Kind    Kind
	Text    string // scalar: its value, unquoted
	Items   []*Node
	Entries []Entry
	At      Place
}

// An Entry is a key of a map with its value.
type Entry struct {
	Key   string
	At    Place
	Value *Node
}

// A Place is the origin of a Node.
type Place struct {
	Line, Column int
	Set          string // path of a --set
	Outside      bool   // the value came from --var or the environment
}

// ReadFile returns the content of the file at path, of which it reads no more than is needed to find
// it too large.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}

// PathFrom returns a path of a file on this machine that stands at p in the document file, usable
// from the current folder: it is relative to the folder of file, unless it came from the command
// line or the environment.
func (p Place) PathFrom(file, path string) string {
	if path == "" || filepath.IsAbs(path) || file == "" || p.Set != "" || p.Outside {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// Get returns the value of a key, nil if n is not a map or does not have the key.
func (n *Node) Get(key string) *Node {
	if n.Kind != Map {
		return nil
	}
	for _, e := range n.Entries {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// Describe returns n's kind or value, for messages.
func (n *Node) Describe() string {
	switch n.Kind {
	case List:
		return "a list"
	case Map:
		return "a map"
	case Null:
		return "nothing"
	}
	return Quote(n.Text)
}

// A Reader reads YAML into nodes and collects the mistakes in it. It is for one goroutine.
type Reader struct {
	File     string // its path, for mistakes
	Set      string // path of the --set whose value is read
	Mistakes Mistakes

	format  Format
	anchors map[string]*Node
	nodes   int
	full    bool // a bound was exceeded and reported
}

// NewReader returns a reader of a file of that format.
func NewReader(f Format, file string) *Reader { return &Reader{File: file, format: f} }

// Say adds a mistake.
func (t *Reader) Say(at Place, format string, args ...any) {
	m := &Mistake{File: t.File, Line: at.Line, Column: at.Column, Set: at.Set, Text: fmt.Sprintf(format, args...)}
	t.Mistakes = append(t.Mistakes, m)
}

// Read returns the one document in data, nil if it cannot be read at all.
func (t *Reader) Read(data []byte) (root *Node) {
	t.anchors = map[string]*Node{}
	top := Place{Line: 1, Column: 1, Set: t.Set}
	if len(data) > MaxBytes {
		t.Say(top, "%d bytes are too many; use at most %d%s", len(data), MaxBytes, t.format.TooLong)
		return nil
	}
	defer func() { // the YAML parser has had panics on malformed input
		if p := recover(); p != nil {
			t.Say(top, "not YAML")
			root = nil
		}
	}()
	text := strings.TrimPrefix(string(data), "\ufeff")
	tokens := lexer.Tokenize(text)
	if at := deep(tokens); at != nil {
		t.Say(t.place(at), "more than %d nested maps and lists", MaxDepth)
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
			t.Say(t.place(doc.Body.GetToken()), "a second document; write one document")
			break
		}
		root = t.node(doc.Body, 0)
	}
	if root == nil {
		t.Say(top, "the %s is empty%s", t.format.Noun, t.format.Empty)
	}
	return root
}

func (t *Reader) syntax(err error, top Place) {
	var s *yaml.SyntaxError
	if errors.As(err, &s) {
		t.Say(t.place(s.Token), "not YAML; %s", s.Message)
		return
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	t.Say(top, "not YAML; %s", text)
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
		if depth > MaxDepth || depth == 0 && row > MaxDepth || tk.Position.IndentLevel > MaxDepth {
			return tk
		}
	}
	return nil
}

func (t *Reader) place(tk *token.Token) Place {
	if t.Set != "" || tk == nil || tk.Position == nil {
		return Place{Set: t.Set}
	}
	return Place{Line: tk.Position.Line, Column: max(tk.Position.Column, 1)}
}

// exceeds counts one more value, and reports whether there are too many, or they are nested too deeply.
func (t *Reader) exceeds(at Place, depth int) bool {
	if t.nodes++; t.nodes <= maxNodes && depth <= MaxDepth {
		return false
	}
	if !t.full {
		t.Say(at, "the %s is too large; use at most %d values with all aliases expanded, and %d nested maps and lists", t.format.Noun,
			maxNodes, MaxDepth)
	}
	t.full = true
	return true
}

// node converts n, with aliases expanded.
func (t *Reader) node(n ast.Node, depth int) *Node {
	at := t.place(n.GetToken())
	if t.exceeds(at, depth) {
		return &Node{Kind: Null, At: at}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return t.mapping(n.Values, at, depth)
	case *ast.MappingValueNode:
		return t.mapping([]*ast.MappingValueNode{n}, at, depth)
	case *ast.SequenceNode:
		out := &Node{Kind: List, At: at}
		for _, v := range n.Values {
			out.Items = append(out.Items, t.node(v, depth+1))
		}
		return out
	case *ast.AnchorNode:
		out := t.node(n.Value, depth)
		t.anchors[n.Name.GetToken().Value] = out
		return out
	case *ast.AliasNode:
		return t.alias(n.Value.GetToken().Value, at)
	case *ast.NullNode:
		return &Node{Kind: Null, At: at}
	case *ast.LiteralNode:
		return &Node{Text: n.Value.Value, At: at}
	case *ast.StringNode:
		return &Node{Text: n.Value, At: at}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return &Node{Text: n.GetToken().Value, At: at}
	}
	t.Say(at, "%s is not allowed in a %s; write plain maps, lists and values", Quote(n.GetToken().Value), t.format.Noun)
	return &Node{Kind: Null, At: at}
}

func (t *Reader) mapping(values []*ast.MappingValueNode, at Place, depth int) *Node {
	out := &Node{Kind: Map, At: at}
	seen := map[string]Place{}
	for i, v := range values {
		tk := v.Key.GetToken()
		e := Entry{Key: tk.Value, At: t.place(tk)}
		if i == 0 && at.Set == "" {
			out.At = e.At
		}
		if _, plain := v.Key.(*ast.StringNode); !plain {
			switch v.Key.(type) {
			case *ast.MergeKeyNode, *ast.MappingKeyNode, *ast.AliasNode, *ast.AnchorNode, *ast.TagNode:
				t.Say(e.At, "%s is not a key; write plain words, without merges, anchors or tags", Quote(tk.Value))
				continue
			}
		}
		if first, twice := seen[e.Key]; twice {
			t.Say(e.At, "key %s is repeated, first in line %d; keep one", Quote(e.Key), first.Line)
			continue
		}
		seen[e.Key] = e.At
		e.Value = t.node(v.Value, depth+1)
		out.Entries = append(out.Entries, e)
	}
	return out
}

// alias returns a copy of an anchored node, counted like a written node.
func (t *Reader) alias(name string, at Place) *Node {
	found, ok := t.anchors[name]
	if !ok {
		t.Say(at, "there is no anchor &%s before this *%s", name, name)
		return &Node{Kind: Null, At: at}
	}
	return t.Copy(found)
}

// Copy returns a copy of n, which counts for the bounds like anything written.
func (t *Reader) Copy(n *Node) *Node {
	if t.exceeds(n.At, 0) {
		return &Node{Kind: Null, At: n.At}
	}
	out := *n
	out.Items, out.Entries = nil, nil
	for _, i := range n.Items {
		out.Items = append(out.Items, t.Copy(i))
	}
	for _, e := range n.Entries {
		e.Value = t.Copy(e.Value)
		out.Entries = append(out.Entries, e)
	}
	return &out
}

// Within reports whether a mistake lies in n.
func (n *Node) Within(m *Mistake) bool {
	return n.At.Is(m) || slices.ContainsFunc(n.Items, func(i *Node) bool { return i.Within(m) }) ||
		slices.ContainsFunc(n.Entries, func(e Entry) bool { return e.At.Is(m) || e.Value.Within(m) })
}

// Is reports whether a mistake stands there.
func (p Place) Is(m *Mistake) bool {
	return p.Line == m.Line && p.Column == m.Column && p.Set == m.Set && (p.Line > 0 || p.Set != "")
}
