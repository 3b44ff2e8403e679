package scenario

import (
	"encoding/json"
	"slices"
	"strings"
)

// A SettableKey is a key of the format that can be set, as shells complete it.
type SettableKey struct {
	Path   string   // such as load.clients
	About  string   // the first line of its description
	Values []string // the words that it may be; nil: anything
}

// SettableKeys returns all keys of the schema. A key that may be written in several
// ways occurs several times.
func SettableKeys() ([]SettableKey, error) {
	text, err := Schema()
	if err != nil {
		return nil, err
	}
	var root schemaNode
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	return root.keys(""), nil
}

// A schemaNode is what completion needs of a JSON Schema.
type schemaNode struct {
	Properties  map[string]*schemaNode `json:"properties"`
	AnyOf       []*schemaNode          `json:"anyOf"`
	OneOf       []*schemaNode          `json:"oneOf"`
	Enum        []any                  `json:"enum"`
	Const       any                    `json:"const"`
	Type        any                    `json:"type"`
	Description string                 `json:"description"`
}

// keys returns the keys below n, whose own path is given.
func (n *schemaNode) keys(path string) (all []SettableKey) {
	for name, below := range n.Properties {
		full := strings.TrimPrefix(path+"."+name, ".")
		about, _, _ := strings.Cut(below.Description, "\n")
		all = append(append(all, SettableKey{full, about, below.values()}), below.keys(full)...)
	}
	for _, one := range slices.Concat(n.AnyOf, n.OneOf) {
		all = append(all, one.keys(path)...)
	}
	return all
}

// values are the words that n may be.
func (n *schemaNode) values() (all []string) {
	for _, v := range append(n.Enum[:len(n.Enum):len(n.Enum)], n.Const) {
		if text, ok := v.(string); ok {
			all = append(all, text)
		}
	}
	if n.Type == "boolean" {
		all = append(all, "false", "true")
	}
	for _, one := range slices.Concat(n.AnyOf, n.OneOf) {
		all = append(all, one.values()...)
	}
	return all
}
