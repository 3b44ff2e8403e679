package weir

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"weir/internal/require"
)

// tierHeading begins the section of CONTRIBUTING.md that lists the tests of the full tier.
const tierHeading = "### Only the full tier proves\n"

// TestFullTierIsListed compares the list in CONTRIBUTING.md with the calls of tier.Full and
// tier.Quiet in the tests. WEIR_UPDATE=1 writes the list.
func TestFullTierIsListed(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("\n| package | proves | tests |\n|---|---|---|\n")
	calls := 0
	for _, g := range fullTier(t) {
		calls += len(g.tests)
		_, _ = fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", g.dir, g.why, strings.Join(g.tests, ", "))
	}
	rows.WriteString("\n")
	if calls < 20 {
		t.Errorf("only %d calls of tier.Full found", calls)
	}
	page := string(require.File(t, "CONTRIBUTING.md"))
	before, rest, found := strings.Cut(page, tierHeading)
	end := strings.Index(rest, "## ")
	if !found || end < 0 {
		t.Fatalf("CONTRIBUTING.md has no section %q followed by another one", tierHeading)
	}
	if rest[:end] == rows.String() {
		return
	}
	if os.Getenv("WEIR_UPDATE") == "" {
		t.Fatalf("section %q of CONTRIBUTING.md differs from the tests: run WEIR_UPDATE=1 go test . -run %s", tierHeading, t.Name())
	}
	require.NoError(t, os.WriteFile("CONTRIBUTING.md", []byte(before+tierHeading+rows.String()+rest[end:]), 0o644))
}

// A tierGroup has the tests of a package that call tier.Full or tier.Quiet with the same reason.
type tierGroup struct {
	dir, why string
	tests    []string
}

// fullTier returns the calls of tier.Full and tier.Quiet in the tests of all packages, by package
// and reason, in the order of the files.
func fullTier(t *testing.T) (groups []tierGroup) {
	t.Helper()
	index := map[[2]string]int{}
	for _, name := range sources(t) {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			for _, why := range reasons(fn.Body) {
				key := [2]string{filepath.Dir(name), why}
				if _, known := index[key]; !known {
					index[key] = len(groups)
					groups = append(groups, tierGroup{dir: key[0], why: why})
				}
				g := &groups[index[key]]
				g.tests = append(g.tests, fn.Name.Name)
			}
		}
	}
	return groups
}

// reasons returns the reasons of the calls of tier.Full and tier.Quiet in a function, each once.
func reasons(body ast.Node) (found []string) {
	seen := map[string]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || f.Sel.Name != "Full" && f.Sel.Name != "Quiet" {
			return true
		}
		if of, ok := f.X.(*ast.Ident); !ok || of.Name != "tier" {
			return true
		}
		if text, ok := call.Args[1].(*ast.BasicLit); ok && text.Kind == token.STRING {
			if why, err := strconv.Unquote(text.Value); err == nil && !seen[why] {
				seen[why] = true
				found = append(found, why)
			}
		}
		return true
	})
	return found
}
