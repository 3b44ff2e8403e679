package weir

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
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

// TestArchitectureNames finds each `package.Name` of ARCHITECTURE.md in the
// code, so that the page keeps up with renames.
func TestArchitectureNames(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{} // of packages, by their last word: the outermost of each
	for room := range importTable(t) {
		if old := folders[path.Base(room)]; old == "" || len(room) < len(old) {
			folders[path.Base(room)] = room
		}
	}
	found := 0
	for _, m := range qualifiedName.FindAllStringSubmatch(string(page), -1) {
		folder, ok := folders[m[1]]
		if !ok {
			t.Errorf("%s: there is no package %s", m[0], m[1])
			continue
		}
		found++
		if !declares(t, folder, m[2]) {
			t.Errorf("%s does not declare %s, which ARCHITECTURE.md names", folder, m[2])
		}
	}
	if found < 20 {
		t.Errorf("only %d names found in ARCHITECTURE.md", found)
	}
}

// qualifiedName matches an exported name with its package. Names of files,
// such as plan.json, are in lower case.
var qualifiedName = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)`)

// declares tells whether the package in folder has a type or function of the name.
func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == name {
					return true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && s.Name.Name == name {
						return true
					}
				}
			}
		}
	}
	return false
}

// The functions of the walks exist, and each is called where the page says.
func TestArchitectureWalks(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	type hop struct{ file, function string }
	hops := map[string]hop{}
	row := regexp.MustCompile("(?m)^\\| (\\d+) \\| `([^`]+)` `([^`]+)` \\| [^|]+ \\| `?([^|`]+)`? \\|$")
	walks := 0
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		number, h, calledIn := m[1], hop{m[2], m[3]}, m[4]
		if number == "1" {
			walks++
		}
		hops[number] = h
		if bodyOf(t, h.file, h.function) == nil {
			t.Errorf("hop %s: %s has no function %s", number, h.file, h.function)
			continue
		}
		caller, where := hops[calledIn], ast.Node(nil)
		if caller.file == "" {
			where = fileOf(t, calledIn)
		} else if body := bodyOf(t, caller.file, caller.function); body != nil {
			where = body
		}
		_, name, method := strings.Cut(h.function, ".")
		if !method {
			name = h.function
		}
		if where == nil || !mentions(where, name) {
			t.Errorf("hop %s: %s is not called in %s", number, h.function, calledIn)
		}
		if n := len(number); n > 2 || n == 2 && number > "15" {
			t.Errorf("hop %s: a walk has at most 15 hops", number)
		}
	}
	if walks != 2 {
		t.Errorf("%d walks, want 2", walks)
	}
}

func fileOf(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// bodyOf returns the body of a function, or of a method as Type.Name, nil if file has none.
func bodyOf(t *testing.T, file, function string) *ast.BlockStmt {
	t.Helper()
	receiver, name, method := strings.Cut(function, ".")
	if !method {
		receiver, name = "", function
	}
	for _, d := range fileOf(t, file).Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != name || (f.Recv != nil) != method {
			continue
		}
		if !method {
			return f.Body
		}
		of := f.Recv.List[0].Type
		if pointer, ok := of.(*ast.StarExpr); ok {
			of = pointer.X
		}
		if id, ok := of.(*ast.Ident); ok && id.Name == receiver {
			return f.Body
		}
	}
	return nil
}

// mentions reports whether node uses name, apart from declaring it.
func mentions(node ast.Node, name string) bool {
	found := false
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			found = found || n.Body != nil && mentions(n.Body, name)
			return false
		case *ast.Ident:
			found = found || n.Name == name
		}
		return !found
	})
	return found
}
