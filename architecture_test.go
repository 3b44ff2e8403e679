package weir

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The table of ARCHITECTURE.md says who may import whom. It must name each
// package, and each import that is there must be allowed, and each that is
// allowed must be there: so the page cannot drift from the code.
func TestArchitecture(t *testing.T) {
	allowed := importTable(t)
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		room := roomOf(words[0])
		if words[0] == "weir" || room == "cmd/weir" {
			continue // the command imports everything
		}
		want, ok := allowed[room]
		if !ok {
			t.Errorf("%s has no row in ARCHITECTURE.md", room)
			continue
		}
		seen[room] = true
		var got []string
		for _, imported := range words[1:] {
			if strings.HasPrefix(imported, "weir/") {
				got = append(got, roomOf(imported))
			}
		}
		for _, g := range got {
			if !slices.Contains(want, g) {
				t.Errorf("%s imports %s, which ARCHITECTURE.md does not allow", room, g)
			}
		}
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%s does not import %s, though ARCHITECTURE.md says so", room, w)
			}
		}
	}
	for room := range allowed {
		if !seen[room] {
			t.Errorf("ARCHITECTURE.md has a row for %s, which does not exist", room)
		}
	}
}

func roomOf(path string) string { return strings.TrimPrefix(path, "weir/") }

func importTable(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]string{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue // a row is: | `room` | what it does | imports |
		}
		imports := strings.FieldsFunc(cells[3], func(r rune) bool { return strings.ContainsRune(" ,`\n—", r) })
		table[strings.Trim(cells[1], " `")] = imports
	}
	if len(table) < 10 {
		t.Fatalf("only %d rows found in ARCHITECTURE.md's table", len(table))
	}
	return table
}

// Every package says in its comment what it does and where it stands.
func TestPackageComments(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.Dir}}|{{join .GoFiles " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		dir, files, _ := strings.Cut(strings.TrimSpace(line), "|")
		comment := false
		for _, name := range strings.Fields(files) {
			f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+name, nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			comment = comment || len(f.Doc.Text()) > 40
		}
		if files != "" && !comment {
			t.Errorf("%s: no package comment of more than a few words", dir)
		}
	}
}
