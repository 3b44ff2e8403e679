package scenario

import (
	"strings"

	"weir/internal/document"
)

// Variables is the block variables, which is removed from a scenario before the rest is decoded.
type Variables struct{}

// apply changes root according to a --set: see document.Reader.Apply. The name of a factor of the
// matrix is a dotted path.
func (t *tree) apply(root *document.Node, set string) {
	t.Apply(root, set, func(path string) []string {
		if factor, ok := strings.CutPrefix(path, "matrix."); ok && factor != "" {
			return []string{"matrix", factor}
		}
		return strings.Split(path, ".")
	})
}
