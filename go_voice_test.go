package weir

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"weir/internal/require"
)

// maxLine is the number of characters that a line of Go may have.
const maxLine = 140

// longWord matches text that cannot be broken, such as a key or a header of a table.
var longWord = regexp.MustCompile(`\S{100}`)

// calques are phrases that native technical English does not have, or that were words of this code
// alone, with their replacements.
var calques = []struct {
	pattern *regexp.Regexp
	better  string
}{
	{regexp.MustCompile(`\bcannot be told\b|\btold (apart|from)\b|\b(is|are|was|were) told of\b`), "distinguished, unknown, reported"},
	{regexp.MustCompile(`\b[Nn]obody( (knows|else|has|can|may|does|waits|reads|writes|asks|asked|uses)|'s)\b`),
		"the subject: no client, no process, unknown, unused"},
	{regexp.MustCompile(`\btells whether\b`), "reports whether"},
	{regexp.MustCompile(`, too(\.|;|:|\)|"|$)`), "also, before the verb"},
	{regexp.MustCompile(`\b[Hh]angs? on (which|how|what|when|the|that|this|it|them)\b`), "depends on"},
	{regexp.MustCompile(`\bis that true\b`), "a statement: whether the result is valid"},
	{regexp.MustCompile(`\bis no number\b|\bnames no (file|machines|KDC)\b`), "is not a number, contains no"},
	{regexp.MustCompile(`\bwhat became of\b`), "the outcome of"},
	{regexp.MustCompile(`\bin vain\b`), "without success, timed out"},
	{regexp.MustCompile(`\b(an?|each|every|[Nn]o|weir|other) doors?\b|\bdoors of\b`), "endpoint"},
	{regexp.MustCompile(`\b(troop|muster|luggage|expedition|sapling|goOn)s?\b`), "workers, bundle, offline run, session, resume"},
}

// TestGoVoice finds long lines of Go, and calques in comments and messages, also of the pages'
// scripts. TestVoice checks the pages.
func TestGoVoice(t *testing.T) {
	files := 0
	for _, name := range sources(t) {
		if filepath.Ext(name) == ".ts" {
			checkScript(t, name)
			continue
		}
		if filepath.Ext(name) != ".go" || name == "go_voice_test.go" {
			continue
		}
		files++
		checkGo(t, name)
	}
	checkScript(t, filepath.Join("cmd", "weir", "help.txt"))
	if files < 500 {
		t.Errorf("only %d files of Go found", files)
	}
}

// checkGo checks the lines of a file, and its comments and strings unless it is a test, since tests
// quote other texts.
func checkGo(t *testing.T, name string) {
	t.Helper()
	src := require.File(t, name)
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, src, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	raw := map[int]bool{} // lines with a raw string: texts of other languages, such as SQL and regular expressions
	ast.Inspect(f, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok && !strings.HasSuffix(name, "_test.go") {
			checkErrorPrefix(t, set, f.Name.Name, c)
		}
		s, ok := n.(*ast.BasicLit)
		switch {
		case !ok || s.Kind != token.STRING:
		case s.Value[0] == '`':
			for line := set.Position(s.Pos()).Line; line <= set.Position(s.End()).Line; line++ {
				raw[line] = true
			}
		case !strings.HasSuffix(name, "_test.go"):
			checkVoice(t, name, set.Position(s.Pos()).Line, s.Value)
		}
		return true
	})
	for i, line := range strings.Split(string(src), "\n") {
		if n := utf8.RuneCountInString(line); n > maxLine && !raw[i+1] && !longWord.MatchString(line) {
			t.Errorf("%s:%d: %d characters; use at most %d", name, i+1, n, maxLine)
		}
	}
	if strings.HasSuffix(name, "_test.go") {
		return
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			checkVoice(t, name, set.Position(c.Pos()).Line, c.Text)
		}
	}
}

// checkErrorPrefix checks that the text of an error does not begin with the name of its package, which users do not know.
func checkErrorPrefix(t *testing.T, set *token.FileSet, pkg string, c *ast.CallExpr) {
	t.Helper()
	known := []string{"coordinator", "lab", "simulated", "command"} // what users know: commands, a scheme of targets, a key
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "Errorf" && f.Sel.Name != "New" || len(c.Args) == 0 || slices.Contains(known, pkg) {
		return
	}
	if s, ok := c.Args[0].(*ast.BasicLit); ok && strings.HasPrefix(s.Value, `"`+pkg+`: `) {
		t.Errorf("%s: %s names the package; name the failed action", set.Position(s.Pos()), s.Value)
	}
}

// checkScript checks the lines of a script in TypeScript, or of the help.
func checkScript(t *testing.T, name string) {
	t.Helper()
	src := require.File(t, name)
	for i, line := range strings.Split(string(src), "\n") {
		checkVoice(t, name, i+1, line)
	}
}

func checkVoice(t *testing.T, file string, line int, text string) {
	t.Helper()
	for _, c := range calques {
		if found := c.pattern.FindString(text); found != "" {
			t.Errorf("%s:%d: %q; better: %s", file, line, found, c.better)
		}
	}
}
