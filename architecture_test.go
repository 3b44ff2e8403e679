package weir

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
)

// The table of ARCHITECTURE.md lists the packages of each group and the imports between groups.
// Each package is in a group and named in its row; each import between groups is in the table,
// points down it, and exists. So the page cannot drift from the code.
func TestArchitecture(t *testing.T) {
	table, packages := groupTable(t), imports(t)
	used := map[string]map[string]bool{} // the imports of the packages of each group
	for room, imported := range packages {
		from := groupOf(table, room)
		if from < 0 {
			t.Errorf("%s is in no group of ARCHITECTURE.md", room)
			continue
		}
		group := table[from]
		if inner, inside := strings.CutPrefix(room, group.name+"/"); inside && !slices.Contains(group.packages, inner) {
			t.Errorf("the row of %s in ARCHITECTURE.md does not name `%s`", group.name, inner)
		}
		if used[group.name] == nil {
			used[group.name] = map[string]bool{}
		}
		for _, i := range imported {
			to := groupOf(table, i)
			switch {
			case to < 0 || to == from:
			case to < from:
				t.Errorf("%s imports %s, which stands above it in ARCHITECTURE.md", room, i)
			case !slices.Contains(group.imports, table[to].name):
				t.Errorf("%s imports %s, which ARCHITECTURE.md does not allow", room, i)
			}
			if to >= 0 {
				used[group.name][table[to].name] = true
			}
			if a, b := driverOf(packages, room), driverOf(packages, i); a != "" && b != "" && a != b {
				t.Errorf("%s imports %s: drivers share code through storage/wireclient", room, i)
			}
		}
	}
	for _, group := range table {
		switch {
		case used[group.name] == nil:
			t.Errorf("ARCHITECTURE.md has a row for %s, which has no package", group.name)
		case group.any:
			continue
		}
		for _, i := range group.imports {
			if i != "internal" && !used[group.name][i] {
				t.Errorf("%s does not import %s, though ARCHITECTURE.md says so", group.name, i)
			}
		}
		for _, inner := range group.packages {
			if _, ok := packages[group.name+"/"+inner]; !ok {
				t.Errorf("ARCHITECTURE.md names %s/%s, which does not exist", group.name, inner)
			}
		}
	}
}

// The halves never import each other, apart from transfer/record, and the imports between the
// folders of the first level have no cycle.
func TestHalves(t *testing.T) {
	table := groupTable(t)
	arrows := map[string]map[string]bool{}
	for room, imported := range imports(t) {
		from, _, _ := strings.Cut(room, "/")
		if from == "cmd" || testsOnly(table, room) {
			continue
		}
		for _, i := range imported {
			to, _, _ := strings.Cut(i, "/")
			if from == "loadtest" && to == "transfer" || from == "transfer" && to == "loadtest" && room != "transfer/record" {
				t.Errorf("%s imports %s of the other half", room, i)
			}
			if from != to && !testsOnly(table, i) {
				if arrows[from] == nil {
					arrows[from] = map[string]bool{}
				}
				arrows[from][to] = true
			}
		}
	}
	n := 0
	for from, all := range arrows {
		n += len(all)
		seen := map[string]bool{}
		if leads(arrows, seen, from, from) {
			t.Errorf("%s imports itself through %v", from, slices.Sorted(maps.Keys(seen)))
		}
	}
	if n > 34 {
		t.Errorf("%d pairs of folders import each other: %v", n, arrows)
	}
	t.Logf("%d pairs of folders import each other", n)
}

// The command does not link the package testing: helpers of tests are packages of their own.
func TestTheCommandLinksNoTesting(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/weir").Output()
	require.NoError(t, err)
	all := strings.Fields(string(out))
	if len(all) < 100 {
		t.Fatalf("only %d packages found", len(all))
	}
	if slices.Contains(all, "testing") {
		t.Error("cmd/weir imports testing: go list -deps ./cmd/weir")
	}
}

// testsOnly reports whether a package is in the row of packages for tests.
func testsOnly(table []group, room string) bool {
	i := groupOf(table, room)
	return i >= 0 && table[i].any && !strings.HasPrefix(table[i].name, "cmd/")
}

// leads reports whether imports lead from one folder to another; seen has the visited folders.
func leads(arrows map[string]map[string]bool, seen map[string]bool, from, to string) bool {
	for next := range arrows[from] {
		if next == to {
			return true
		}
		if !seen[next] {
			seen[next] = true
			if leads(arrows, seen, next, to) {
				return true
			}
		}
	}
	return false
}

// driverOf returns the driver that a package belongs to, or "" if it belongs to no driver. The
// drivers are the packages that storage/all imports.
func driverOf(packages map[string][]string, room string) string {
	for _, d := range packages["storage/all"] {
		if strings.HasPrefix(room+"/", d+"/") && d != "storage" {
			return d
		}
	}
	return ""
}

// A group is a row of the table: the packages whose paths begin with its name.
type group struct {
	name     string
	packages []string // below name
	imports  []string // other groups
	any      bool     // it may import all groups below
}

// groupTable reads the rows "| `group` | what is in it | imports |" in their order.
// Packages that only tests use are groups above all others, so that nothing else imports them; each
// of them may import the packages before it.
func groupTable(t *testing.T) (table []group) {
	t.Helper()
	page := require.File(t, "ARCHITECTURE.md")
	quoted := regexp.MustCompile("`([a-z0-9/]+)`")
	var tests, names []string
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || cells[3] == " where " || strings.HasPrefix(cells[1], "-") {
			continue
		}
		var inside []string
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			inside = append(inside, m[1])
		}
		name := strings.Trim(cells[1], " `")
		imports := strings.FieldsFunc(cells[3], func(r rune) bool { return strings.ContainsRune(" ,—", r) })
		switch {
		case name == "tests only":
			tests = inside
		case strings.Contains(cells[1], "`"):
			names = append(names, name)
			any := slices.Equal(imports, []string{"all"})
			table = append(table, group{name: name, packages: inside, imports: append(imports, "internal"), any: any})
		}
	}
	for _, name := range tests {
		table = slices.Insert(table, 0, group{name: name, any: true})
	}
	for i := range table {
		if table[i].any {
			table[i].imports = slices.Concat(names, tests)
		}
	}
	if len(names) < 10 || len(tests) < 5 {
		t.Fatalf("only %d groups and %d packages of tests found in ARCHITECTURE.md's table", len(names), len(tests))
	}
	return table
}

// groupOf returns the index of the group with the longest name that contains the package, or -1 if
// no group contains it.
func groupOf(table []group, room string) int {
	best := -1
	for i, g := range table {
		if (room == g.name || strings.HasPrefix(room, g.name+"/")) && (best < 0 || len(g.name) > len(table[best].name)) {
			best = i
		}
	}
	return best
}

// imports returns the packages of the module and the packages of the module that each of them
// imports, apart from tests. The package at the root is left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	require.NoError(t, err)
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		var own []string
		for _, word := range strings.Fields(line) {
			if room, ok := strings.CutPrefix(word, "weir/"); ok {
				own = append(own, room)
			}
		}
		if len(own) > 0 {
			all[own[0]] = own[1:]
		}
	}
	return all
}

// Each row of the ten changes counts the packages that a change touches. There are at most three,
// and the named packages exist.
func TestTenChanges(t *testing.T) {
	page := require.File(t, "ARCHITECTURE.md")
	packages := imports(t)
	rows := regexp.MustCompile(`(?m)^\| an? [^|]+\| (\d+) \| ([^|]+) \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) != 10 {
		t.Errorf("%d changes, want 10", len(rows))
	}
	for _, row := range rows {
		if row[1] > "3" {
			t.Errorf("a change touches %s packages: %s", row[1], row[2])
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			if _, ok := packages[m[1]]; !ok {
				t.Errorf("%s: there is no package %s", row[0], m[1])
			}
		}
	}
}

// Every package has a comment that describes its purpose and its place in the architecture.
func TestPackageComments(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.Dir}}|{{join .GoFiles " "}}`, "./...").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		dir, files, _ := strings.Cut(strings.TrimSpace(line), "|")
		comment := false
		for _, name := range strings.Fields(files) {
			f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+name, nil, parser.ParseComments|parser.PackageClauseOnly)
			require.NoError(t, err)
			comment = comment || len(f.Doc.Text()) > 40
		}
		if files != "" && !comment {
			t.Errorf("%s: no package comment of more than a few words", dir)
		}
	}
}

// TestArchitectureNames finds each `package.Name` of ARCHITECTURE.md in the code, so that the page
// follows renames.
func TestArchitectureNames(t *testing.T) {
	page := require.File(t, "ARCHITECTURE.md")
	folders := map[string]string{} // of packages, by their last word: the outermost of each
	for room := range imports(t) {
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
	if found < 6 {
		t.Errorf("only %d names found in ARCHITECTURE.md", found)
	}
}

// qualifiedName matches an exported name with its package. Names of files,
// such as plan.json, are in lower case.
var qualifiedName = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)`)

// declares reports whether the package in folder has a type or function of the name.
func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
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

// The functions of the walks exist, and each is called in the function or file that the page names.
func TestArchitectureWalks(t *testing.T) {
	page := require.File(t, "ARCHITECTURE.md")
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
	require.NoError(t, err)
	return f
}

// bodyOf returns the body of a function, or of a method as Type.Name. It returns nil if file does
// not declare it.
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
