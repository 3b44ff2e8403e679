package weir

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
)

// TestDialers finds connections of the coordinator and agents that tpc.Dialer does not make. With
// tpc.Dialer a guard checks each address after names were resolved. Other dialers are in the table,
// with the reason why no other party can choose their addresses.
func TestDialers(t *testing.T) {
	others := map[string]string{
		"internal/tpc/guard.go":      "tpc.Dialer itself",
		"internal/stomp/stomp.go":    "a broker, from the settings",
		"internal/wire/client.go":    "the coordinator, from the settings of its clients",
		"transfer/access/issuers.go": "issuers, from the settings",
		"transfer/mover/pool.go":     "it has a guard of its own, which follows the coordinator's address (Options.Guard)",
	}
	found := map[string]bool{}
	for _, name := range sources(t) {
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") ||
			!slices.ContainsFunc([]string{"transfer/", "internal/"}, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, ok := s.X.(*ast.Ident)
			if ok && (from.Name == "net" || from.Name == "tls") && strings.HasPrefix(s.Sel.Name, "Dial") {
				found[name] = true
			}
			if s.Sel.Name == "DefaultTransport" || s.Sel.Name == "DefaultClient" {
				t.Errorf("%s uses http.%s, which has no guard", name, s.Sel.Name)
			}
			return true
		})
	}
	for name := range found {
		if others[name] == "" && !strings.HasPrefix(name, "internal/tcp/") { // the load generator's: its user names the target
			t.Errorf("%s dials by itself: use tpc.Dialer", name)
		}
	}
	for name := range others {
		if !found[name] {
			t.Errorf("%s does not dial: remove it from the table", name)
		}
	}
}
