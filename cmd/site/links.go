package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// slugs generates the same anchors of headings as GitHub.
type slugs struct{ used map[string]bool }

var dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// Generate implements parser.IDs.
func (s *slugs) Generate(value []byte, _ ast.NodeKind) []byte {
	name := slug(string(value))
	for i, first := 1, name; s.used[name]; i++ {
		name = fmt.Sprintf("%s-%d", first, i)
	}
	s.used[name] = true
	return []byte(name)
}

// Put implements parser.IDs.
func (s *slugs) Put(value []byte) { s.used[string(value)] = true }

var linkMark = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

func slug(heading string) string {
	name := dropped.ReplaceAllString(strings.ToLower(linkMark.ReplaceAllString(heading, "$1")), "")
	return strings.ReplaceAll(strings.TrimSpace(name), " ", "-")
}

// relink changes the links of a page so that they lead to pages and pictures of the site. A link to
// another file of the sources becomes its text.
func (s *site) relink(p *page, tree ast.Node) error {
	var others []ast.Node
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			to, other, err := s.target(p, string(n.Destination))
			if err != nil {
				return ast.WalkStop, err
			}
			if other {
				others = append(others, n)
			}
			n.Destination = []byte(to)
		case *ast.Image:
			n.Destination = []byte(path.Base(string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
	for _, n := range others {
		parent := n.Parent()
		for n.HasChildren() {
			parent.InsertBefore(parent, n, n.FirstChild())
		}
		parent.RemoveChild(parent, n)
	}
	return err
}

// target returns the destination of a page's link in the site. other reports that the link leads to
// a file of the sources that is not a page.
func (s *site) target(p *page, link string) (to string, other bool, err error) {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") || strings.HasPrefix(link, "#") {
		return link, false, nil
	}
	file, anchor, _ := strings.Cut(link, "#")
	name := path.Join(path.Dir(p.File), file)
	if q := s.pages[name]; q != nil {
		if to = q.Out; anchor != "" {
			to += "#" + anchor
		}
		return to, false, nil
	}
	if _, err := os.Stat(filepath.Join(s.source, filepath.FromSlash(name))); err != nil {
		return "", false, fmt.Errorf("%s: link %s: %w", p.File, link, err)
	}
	ext := path.Ext(name)
	return path.Base(name), path.Dir(name) != "docs" || ext != ".png" && ext != ".json", nil
}

// entriesOf returns the search entries of a page: each heading with the text up to the next
// heading.
func entriesOf(p *page, tree ast.Node) (all []entry) {
	all = []entry{{Page: p.Out, Title: p.Title, Heading: p.Title}}
	var words []string
	end := func() {
		all[len(all)-1].Text = strings.Join(strings.Fields(strings.Join(words, " ")), " ")
		words = nil
	}
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			end()
			id, _ := n.AttributeString("id")
			anchor, _ := id.([]byte)
			all = append(all, entry{Page: p.Out, Anchor: string(anchor), Title: p.Title, Heading: textOf(n, p.text)})
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			words = append(words, string(n.Segment.Value(p.text)))
		case *ast.FencedCodeBlock:
			words = append(words, string(n.Lines().Value(p.text)))
		}
		return ast.WalkContinue, nil
	})
	end()
	return all
}

// textOf returns the text of a node without its markup.
func textOf(n ast.Node, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(source))
		} else {
			b.WriteString(textOf(c, source))
		}
	}
	return b.String()
}
