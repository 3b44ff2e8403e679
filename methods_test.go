package weir

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
)

// mostMethods is the largest number of methods of a type, including methods that embedded types of
// this module promote.
const mostMethods = 60

// TestTypesAreSmall finds types with more than mostMethods methods.
func TestTypesAreSmall(t *testing.T) {
	types := typesOf(t)
	for name := range types {
		if n := len(types.methods(name, nil)); n > mostMethods {
			t.Errorf("%s has %d methods: at most %d; split it", name, n, mostMethods)
		}
	}
	if len(types) < 1000 {
		t.Errorf("only %d types found", len(types))
	}
}

// A declaredType has its own methods, and the names of the types that it embeds.
type declaredType struct{ own, embedded []string }

// declaredTypes are the types of the module apart from tests by package and name, such as storage.Op.
type declaredTypes map[string]*declaredType

// methods returns the names of the methods of a type. outer are the types that embed it.
func (d declaredTypes) methods(name string, outer []string) []string {
	one := d[name]
	if one == nil || slices.Contains(outer, name) {
		return nil
	}
	all := slices.Clone(one.own)
	for _, e := range one.embedded {
		all = append(all, d.methods(e, append(outer, name))...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (d declaredTypes) named(name string) *declaredType {
	if d[name] == nil {
		d[name] = &declaredType{}
	}
	return d[name]
}

// typesOf reads all types of the module.
func typesOf(t *testing.T) declaredTypes {
	t.Helper()
	all := declaredTypes{}
	for _, name := range sources(t) {
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		room, imported := path.Dir(filepath.ToSlash(name)), map[string]string{}
		for _, i := range f.Imports {
			if to, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "weir/"); ok {
				imported[path.Base(to)] = to
				if i.Name != nil {
					imported[i.Name.Name] = to
				}
			}
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					one := all.named(typeName(room, imported, d.Recv.List[0].Type))
					one.own = append(one.own, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						all.named(room+"."+s.Name.Name).declare(room, imported, s.Type)
					}
				}
			}
		}
	}
	return all
}

// declare adds the embedded types of a struct or interface, and the methods of the latter.
func (d *declaredType) declare(room string, imported map[string]string, x ast.Expr) {
	var fields []*ast.Field
	switch x := x.(type) {
	case *ast.StructType:
		fields = x.Fields.List
	case *ast.InterfaceType:
		fields = x.Methods.List
	}
	for _, f := range fields {
		if len(f.Names) == 0 {
			d.embedded = append(d.embedded, typeName(room, imported, f.Type))
		} else if _, method := f.Type.(*ast.FuncType); method {
			if _, is := x.(*ast.InterfaceType); is {
				d.own = append(d.own, f.Names[0].Name)
			}
		}
	}
}

// typeName returns the package and name of a type that a file of a package names, or "" if the type
// is not of this module.
func typeName(room string, imported map[string]string, x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(room, imported, x.X)
	case *ast.IndexExpr:
		return typeName(room, imported, x.X)
	case *ast.IndexListExpr:
		return typeName(room, imported, x.X)
	case *ast.Ident:
		return room + "." + x.Name
	case *ast.SelectorExpr:
		if id, ok := x.X.(*ast.Ident); ok && imported[id.Name] != "" {
			return imported[id.Name] + "." + x.Sel.Name
		}
	}
	return ""
}
