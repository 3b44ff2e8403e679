package manpage

import (
	"fmt"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Markdown writes a page in Markdown: its headings become sections, and rows of its tables become
// items. The title, comments and lists of links within the page are left out.
func (p *Page) Markdown(source []byte) {
	m := markdown{Page: p, source: source}
	tree := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	m.blocks(tree)
}

// A markdown writes the nodes of a page in Markdown.
type markdown struct {
	*Page
	source []byte
}

// blocks writes the blocks in a node.
func (m *markdown) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		m.block(n)
	}
}

func (m *markdown) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		m.heading(n)
	case *ast.Paragraph, *ast.TextBlock:
		if !m.isContents(n) {
			m.Paragraph(m.inline(n))
		}
	case *ast.List:
		if !m.isContents(n) {
			m.list(n)
		}
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		m.Verbatim(string(n.Lines().Value(m.source)))
	case *tables.Table:
		m.table(n)
	}
}

func (m *markdown) heading(n *ast.Heading) {
	switch title := m.plain(n); n.Level {
	case 1: // the name of the page
		if n.PreviousSibling() == nil {
			m.Section("Description")
		}
	case 2:
		m.Section(title)
	default:
		m.Subsection(title)
	}
}

// list writes the entries of a list. Further blocks of an entry are indented like its first one.
func (m *markdown) list(n *ast.List) {
	number := n.Start
	for entry := n.FirstChild(); entry != nil; entry = entry.NextSibling() {
		tag := `\(bu 2`
		if n.IsOrdered() {
			tag = fmt.Sprintf("%d. 4", number)
			number++
		}
		m.macro("IP " + tag)
		first := entry.FirstChild()
		if first == nil {
			continue
		}
		m.fill(m.inline(first))
		if first.NextSibling() == nil {
			continue
		}
		m.macro("RS")
		for n := first.NextSibling(); n != nil; n = n.NextSibling() {
			m.block(n)
		}
		m.macro("RE")
	}
}

// table writes each row as an item: the first cell is the term, the last one explains it, and those
// between them follow with the names of their columns.
func (m *markdown) table(n *tables.Table) {
	var names []Text
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []Text
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, m.inline(cell))
		}
		if _, isHead := row.(*tables.TableHeader); isHead {
			names = cells
			continue
		}
		last := len(cells) - 1
		m.Item(cells[0], cells[last])
		var more []string
		for i := 1; i < last; i++ {
			if cells[i] != "" {
				more = append(more, string(names[i]+": "+cells[i]))
			}
		}
		if len(more) > 0 {
			m.macro("br")
			m.fill(Text(strings.Join(more, "; ")))
		}
	}
}

// inline returns the text in a block.
func (m *markdown) inline(parent ast.Node) Text {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			b.WriteString(escape(string(n.Segment.Value(m.source))))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.WriteString(escape(string(n.Value)))
		case *ast.CodeSpan:
			b.WriteString(string(Bold(m.plain(n))))
		case *ast.Emphasis:
			font := `\fI`
			if n.Level == 2 {
				font = `\fB`
			}
			b.WriteString(font + string(m.inline(n)) + `\fR`)
		case *ast.AutoLink:
			b.WriteString(escape(string(n.Label(m.source))))
		case *ast.Link:
			b.WriteString(string(m.link(n)))
		case *ast.Image, *ast.RawHTML:
		default:
			b.WriteString(string(m.inline(n)))
		}
	}
	return Text(b.String())
}

// link returns the text of a link. Other pages are HTML in the documentation of packages.
func (m *markdown) link(n *ast.Link) Text {
	label, to := m.inline(n), string(n.Destination)
	file, _, _ := strings.Cut(to, "#")
	switch plain := m.plain(n); {
	case strings.Contains(to, "://") && plain != to:
		return label + " (" + Plain(to) + ")"
	case path.Ext(plain) == ".md":
		return Plain(strings.TrimSuffix(path.Base(file), ".md") + ".html")
	}
	return label
}

// plain returns the text in a node without its markup.
func (m *markdown) plain(parent ast.Node) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(m.source))
			if n.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		default:
			b.WriteString(m.plain(n))
		}
	}
	return b.String()
}

// isContents reports whether a block has nothing but links within its page.
func (m *markdown) isContents(parent ast.Node) bool {
	links, only := 0, true
	_ = ast.Walk(parent, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		switch n := n.(type) {
		case *ast.Link:
			if entering {
				links++
				only = only && strings.HasPrefix(string(n.Destination), "#")
			}
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			only = only && strings.Trim(string(n.Segment.Value(m.source)), " ,\u00b7") == ""
		case *ast.CodeSpan:
			only = false
		}
		return ast.WalkContinue, nil
	})
	return only && links > 1
}
