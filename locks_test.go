package weir

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
)

// A function whose name ends with Locked needs a mutex that its caller holds. TestLocked finds
// callers in transfer that do not hold a mutex: a correct caller is named ...Locked itself, or has
// locked a mutex before the call and not unlocked it since. It also finds uses of the fields of the
// registry without its mutex.
func TestLocked(t *testing.T) {
	functions, fields := 0, registryFields(t)
	for _, name := range sources(t) {
		if !strings.HasPrefix(name, "transfer/") || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			c := &lockChecker{fail: func(at ast.Node, use string) { t.Errorf("%s: %s without a lock", set.Position(at.Pos()), use) }}
			if strings.HasPrefix(name, "transfer/dispatch/") {
				c.guarded, c.fields = registriesIn(fn), fields
			}
			held := mutexes{}
			if isLocked(fn.Name.Name) {
				functions++
				held["the caller's"] = true
			}
			c.block(fn.Body.List, held)
		}
	}
	if functions < 50 {
		t.Errorf("only %d functions found whose callers hold a lock", functions)
	}
}

// registryFields returns the fields of the registry that its mutex guards: the fields before the
// clock, which does not change.
func registryFields(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	ast.Inspect(fileOf(t, "transfer/dispatch/registry.go"), func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "registry" {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			for _, name := range f.Names {
				if name.Name == "now" {
					return false
				}
				all[name.Name] = name.Name != "mu"
			}
		}
		return false
	})
	if len(all) < 10 {
		t.Fatalf("only %d fields of the registry found", len(all))
	}
	return all
}

// registriesIn returns a function that reports whether an expression of fn is the registry: the
// receiver, the field r of another type, or a variable with its value.
func registriesIn(fn *ast.FuncDecl) func(x ast.Expr) bool {
	names := map[string]bool{}
	if fn.Recv != nil && types.ExprString(fn.Recv.List[0].Type) == "*registry" {
		names[fn.Recv.List[0].Names[0].Name] = true
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		s, ok := n.(*ast.AssignStmt)
		for i := 0; ok && i < len(s.Rhs); i++ {
			if strings.HasSuffix(types.ExprString(s.Rhs[i]), ".r") {
				names[types.ExprString(s.Lhs[i])] = true
			}
		}
		return true
	})
	return func(x ast.Expr) bool {
		text := types.ExprString(x)
		return strings.HasSuffix(text, ".r") || names[text]
	}
}

func TestLockChecker(t *testing.T) {
	for body, want := range map[string]string{
		`mu.Lock(); aLocked(); mu.Unlock()`:                              "",
		`mu.Lock(); defer mu.Unlock(); aLocked()`:                        "",
		`mu.Lock(); mu.Unlock(); aLocked()`:                              "aLocked",
		`aLocked(); mu.Lock()`:                                           "aLocked",
		`mu.Lock(); if x { mu.Unlock(); return }; aLocked()`:             "",
		`mu.Lock(); if x { mu.Unlock() }; aLocked()`:                     "aLocked",
		`if x { mu.Lock() }; aLocked()`:                                  "aLocked",
		`mu.Lock(); go func() { aLocked() }()`:                           "aLocked",
		`mu.Lock(); w.Go(func() { aLocked() })`:                          "aLocked",
		`mu.Lock(); each(func() { aLocked() })`:                          "",
		`bLocked := func() { aLocked() }; bLocked()`:                     "bLocked",
		`b := func() { aLocked() }; mu.Lock(); b()`:                      "aLocked",
		`mu.Lock(); return func() { aLocked() }`:                         "aLocked",
		`for { mu.Lock(); if x { mu.Unlock(); continue }; x.aLocked() }`: "",
		`mu.Lock(); for { mu.Unlock(); return }; aLocked()`:              "",
		`switch { case x: mu.Lock(); default: mu.Lock() }; aLocked()`:    "",
		`switch { case x: mu.Lock() }; aLocked()`:                        "aLocked",
		`other.Lock(); mu.Lock(); other.Unlock(); aLocked()`:             "",
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+body+"\n}", parser.SkipObjectResolution)
		require.NoError(t, err)
		found := ""
		c := &lockChecker{fail: func(_ ast.Node, use string) { found = use }}
		c.block(f.Decls[0].(*ast.FuncDecl).Body.List, mutexes{})
		if found != want {
			t.Errorf("%s: found %q, want %q", body, found, want)
		}
	}
}

func isLocked(name string) bool { return strings.HasSuffix(name, "Locked") && !ast.IsExported(name) }

// mutexes is the set of mutexes that are held, as the code writes them.
type mutexes map[string]bool

// A lockChecker follows the statements of a function with the mutexes that are held.
type lockChecker struct {
	fail    func(at ast.Node, use string)
	guarded func(x ast.Expr) bool // nil: no fields are guarded
	fields  map[string]bool
}

// block follows statements. It returns the mutexes that are held after them, nil if the end is not reached.
func (c *lockChecker) block(list []ast.Stmt, held mutexes) mutexes {
	held = maps.Clone(held)
	for _, s := range list {
		if held = c.stmt(s, held); held == nil {
			return nil
		}
	}
	return held
}

// stmt follows a statement, and returns the mutexes that are held after it.
func (c *lockChecker) stmt(s ast.Stmt, held mutexes) mutexes {
	switch s := s.(type) {
	case nil:
	case *ast.ExprStmt:
		return c.call(s.X, held)
	case *ast.DeferStmt:
		if _, name := callee(s.Call); name != "Unlock" && name != "RUnlock" {
			c.later(s.Call, held)
		}
	case *ast.GoStmt:
		c.later(s.Call, held)
	case *ast.ReturnStmt:
		for _, x := range s.Results {
			if literal, ok := x.(*ast.FuncLit); ok {
				c.block(literal.Body.List, mutexes{})
				continue
			}
			c.expr(x, held)
		}
		return nil
	case *ast.BranchStmt:
		return nil
	case *ast.AssignStmt:
		c.assign(s, held)
	case *ast.BlockStmt:
		return c.block(s.List, held)
	case *ast.LabeledStmt:
		return c.stmt(s.Stmt, held)
	case *ast.IfStmt:
		held = c.stmt(s.Init, held)
		c.expr(s.Cond, held)
		return both(c.block(s.Body.List, held), c.stmt(s.Else, maps.Clone(held)))
	case *ast.ForStmt:
		held = c.stmt(s.Init, held)
		c.expr(s.Cond, held)
		return both(held, c.block(append(slices.Clone(s.Body.List), orEmptyStmt(s.Post)), held))
	case *ast.RangeStmt:
		c.expr(s.X, held)
		return both(held, c.block(s.Body.List, held))
	case *ast.SwitchStmt:
		held = c.stmt(s.Init, held)
		c.expr(s.Tag, held)
		return c.cases(s.Body.List, held)
	case *ast.TypeSwitchStmt:
		return c.cases(s.Body.List, c.stmt(s.Assign, c.stmt(s.Init, held)))
	case *ast.SelectStmt:
		return c.cases(s.Body.List, held)
	default:
		c.expr(s, held)
	}
	return held
}

// cases follows the cases of a switch or select.
func (c *lockChecker) cases(list []ast.Stmt, held mutexes) mutexes {
	var after mutexes
	complete := false
	for _, one := range list {
		switch one := one.(type) {
		case *ast.CaseClause:
			complete = complete || one.List == nil
			for _, x := range one.List {
				c.expr(x, held)
			}
			after = both(after, c.block(one.Body, held))
		case *ast.CommClause:
			complete = true
			after = both(after, c.block(append([]ast.Stmt{orEmptyStmt(one.Comm)}, one.Body...), held))
		}
	}
	if !complete {
		after = both(after, held)
	}
	return after
}

func orEmptyStmt(s ast.Stmt) ast.Stmt {
	if s == nil {
		return &ast.EmptyStmt{}
	}
	return s
}

// both returns the mutexes that are held after one of two branches; nil is a branch that does not
// end here.
func both(a, b mutexes) mutexes {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	common := mutexes{}
	for m := range a {
		if b[m] {
			common[m] = true
		}
	}
	return common
}

// call follows a statement that is an expression: it may lock or unlock.
func (c *lockChecker) call(x ast.Expr, held mutexes) mutexes {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		c.expr(x, held)
		return held
	}
	c.expr(call, held)
	switch mutex, name := callee(call); name {
	case "Lock", "RLock":
		held[mutex] = true
	case "Unlock", "RUnlock":
		delete(held, mutex)
	case "panic":
		return nil
	}
	return held
}

// callee returns the receiver of a call, as written, and the name of the callee.
func callee(call *ast.CallExpr) (receiver, name string) {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return "", f.Name
	case *ast.SelectorExpr:
		return types.ExprString(f.X), f.Sel.Name
	}
	return "", ""
}

// assign follows an assignment. A function literal with a name that ends with Locked needs the lock when it is called.
func (c *lockChecker) assign(s *ast.AssignStmt, held mutexes) {
	for i, x := range s.Rhs {
		literal, ok := x.(*ast.FuncLit)
		if id, named := s.Lhs[min(i, len(s.Lhs)-1)].(*ast.Ident); ok && named && isLocked(id.Name) {
			c.block(literal.Body.List, mutexes{"the caller's": true})
			continue
		}
		c.expr(x, held)
	}
}

// later follows a call that is made at another time, or by another goroutine.
func (c *lockChecker) later(call *ast.CallExpr, held mutexes) {
	for _, x := range call.Args {
		c.expr(x, held)
	}
	if literal, ok := call.Fun.(*ast.FuncLit); ok {
		c.block(literal.Body.List, mutexes{})
		return
	}
	c.called(call, mutexes{})
}

// expr follows the calls in an expression, or in a simple statement. Function literals are called at once, unless they go to another
// goroutine.
func (c *lockChecker) expr(n ast.Node, held mutexes) {
	if n == nil {
		return
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			c.block(n.Body.List, held)
			return false
		case *ast.SelectorExpr:
			if len(held) == 0 && c.guarded != nil && c.fields[n.Sel.Name] && c.guarded(n.X) {
				c.fail(n, types.ExprString(n))
			}
		case *ast.CallExpr:
			c.called(n, held)
			if _, name := callee(n); name == "Go" || name == "AfterFunc" {
				c.expr(n.Fun, held)
				for _, x := range n.Args {
					c.expr(x, mutexes{})
				}
				return false
			}
		}
		return true
	})
}

func (c *lockChecker) called(call *ast.CallExpr, held mutexes) {
	if _, name := callee(call); isLocked(name) && len(held) == 0 {
		c.fail(call, name)
	}
}
