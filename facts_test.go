package weir

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis/fact"
)

// TestFactsHaveWords compares the facts that the code makes with words.txt: each code has one
// template, and exactly the values that the template names. Codes and names are literals.
func TestFactsHaveWords(t *testing.T) {
	words, used := fact.Words(), map[string]bool{}
	for _, file := range sources(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || !strings.HasPrefix(file, "loadtest/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || !makesFact(call.Fun) || call.Ellipsis.IsValid() { // addFact passes its arguments on
				return true
			}
			code, names := literal(call.Args[0]), []string{}
			for i := 1; i < len(call.Args); i += 2 {
				names = append(names, literal(call.Args[i]))
			}
			template, known := words[code]
			if !known {
				t.Errorf("%s: the code %q has no line in words.txt", file, code)
				return true
			}
			used[code] = true
			slices.Sort(names)
			if want := placeholders(template); !slices.Equal(names, want) {
				t.Errorf("%s: %s has the values %q; its template has %q", file, code, names, want)
			}
			return true
		})
	}
	var rows strings.Builder
	rows.WriteString("| code | text |\n|---|---|\n")
	for _, code := range slices.Sorted(maps.Keys(words)) {
		if !used[code] {
			t.Errorf("words.txt: nothing makes the code %q", code)
		}
		_, _ = fmt.Fprintf(&rows, "| `%s` | %s |\n", code, fact.Placeholder.ReplaceAllString(words[code], "`$1`"))
	}
	checkCodes(t, rows.String()+"\n")
}

// checkCodes compares the table of codes in docs/results.md with rows. WEIR_UPDATE=1 writes it.
func checkCodes(t *testing.T, rows string) {
	t.Helper()
	const file, heading = "docs/results.md", "| code | text |\n"
	page := string(require.File(t, file))
	before, rest, found := strings.Cut(page, heading)
	end := strings.Index(rest, "## ")
	switch {
	case !found || end < 0:
		t.Fatalf("%s has no table of codes followed by a section", file)
	case heading+rest[:end] == rows:
	case os.Getenv("WEIR_UPDATE") == "":
		t.Fatalf("the codes in %s differ from words.txt: run WEIR_UPDATE=1 go test . -run %s", file, t.Name())
	default:
		require.NoError(t, os.WriteFile(file, []byte(before+rows+rest[end:]), 0o644))
	}
}

func makesFact(f ast.Expr) bool {
	s, is := f.(*ast.SelectorExpr)
	if !is {
		return false
	}
	of, is := s.X.(*ast.Ident)
	return s.Sel.Name == "addFact" || s.Sel.Name == "New" && is && of.Name == "fact"
}

// literal returns the value of a string literal, "" for other expressions.
func literal(e ast.Expr) string {
	one, is := e.(*ast.BasicLit)
	if !is {
		return ""
	}
	text, _ := strconv.Unquote(one.Value) // the parser accepts only valid literals
	return text
}

// placeholders returns the names of the values that a template has.
func placeholders(template string) []string {
	names := []string{}
	for _, m := range fact.Placeholder.FindAllStringSubmatch(template, -1) {
		names = append(names, m[1])
		format, interval, _ := strings.Cut(m[2], ", ")
		if low, high, ok := strings.Cut(interval, " to "); ok {
			names = append(names, low, high)
		}
		if of, ok := strings.CutPrefix(format, "in "); ok {
			names = append(names, of)
			continue
		}
		if format != "" && fact.Format(format) == nil && fact.TextFormat(format) == nil && !strings.HasPrefix(format, "plural ") &&
			!strings.ContainsAny(format, "dfgqsv") {
			names = append(names, "unknown format "+format)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
