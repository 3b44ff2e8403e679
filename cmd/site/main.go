// Command site makes a documentation site from the pages in docs and at the root: HTML with a
// search, which opens without a server and without a network. `make site` calls it. It fails if a
// link leads nowhere.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"html/template"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

//go:embed page.html.tmpl
var pageText string

//go:embed site.css
var styleText []byte

//go:embed search.js
var searchText []byte

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// A page is a Markdown file and its rendered form.
type page struct {
	File  string // its path in the sources, such as docs/links.md
	Out   string // its file in the site, such as links.html
	Title string
	Body  template.HTML
	text  []byte
}

// A section is a part of the navigation.
type section struct {
	Title string
	Pages []*page
}

// A site is a site that is being built.
type site struct {
	source, out string
	pages       map[string]*page // by File
	order       []*page
	sections    []section
	index       []entry
}

// An entry is a result of the search: a heading with the text below it.
type entry struct {
	Page    string `json:"page"`
	Anchor  string `json:"anchor"`
	Title   string `json:"title"`
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

// run makes a site according to the arguments, and reports on out.
func run(args []string, out io.Writer) error {
	s := site{pages: map[string]*page{}}
	fs := flag.NewFlagSet("site", flag.ContinueOnError)
	fs.StringVar(&s.source, "source", ".", "folder of the sources")
	fs.StringVar(&s.out, "out", "site", "folder for the pages")
	if err := fs.Parse(args); err != nil {
		return err
	}
	for _, step := range []func() error{s.read, s.navigate, s.render, s.write} {
		if err := step(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%d pages in %s\n", len(s.pages), s.out)
	return err
}

// read reads the pages.
func (s *site) read() error {
	files, err := filepath.Glob(filepath.Join(s.source, "docs", "*.md"))
	if err != nil {
		return err
	}
	for _, name := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		files = append(files, filepath.Join(s.source, name))
	}
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(s.source, f)
		if err != nil {
			return err
		}
		p := &page{File: filepath.ToSlash(name), text: content}
		switch p.File {
		case "README.md":
			p.Out = "index.html"
		case "docs/README.md":
			p.Out = "docs.html"
		default:
			p.Out = strings.ToLower(strings.TrimSuffix(path.Base(p.File), ".md")) + ".html"
		}
		title, _, _ := strings.Cut(string(content), "\n")
		p.Title = strings.ReplaceAll(strings.TrimPrefix(title, "# "), "`", "")
		s.pages[p.File], s.order = p, append(s.order, p)
	}
	return nil
}

var (
	sectionRow = regexp.MustCompile(`^\| ([a-z-]+:? [a-z: ,-]+) \| \|$`)
	pageRow    = regexp.MustCompile(`^\| (\[[^|]+) \| .+ \|$`)
	pageLink   = regexp.MustCompile(`\]\(([a-zA-Z./-]+\.md)\)`)
)

// navigate reads the sections of the navigation from docs/README.md: rows "| how-to: one task | |"
// and "| [page](page.md), [another](another.md) | about |".
func (s *site) navigate() error {
	s.sections = []section{{Title: "weir", Pages: []*page{s.pages["README.md"], s.pages["docs/README.md"]}}}
	for line := range strings.Lines(string(s.pages["docs/README.md"].text)) {
		line = strings.TrimSpace(line)
		if m := sectionRow.FindStringSubmatch(line); m != nil {
			s.sections = append(s.sections, section{Title: m[1]})
		} else if m := pageRow.FindStringSubmatch(line); m != nil {
			for _, link := range pageLink.FindAllStringSubmatch(m[1], -1) {
				p := s.pages[path.Join("docs", link[1])]
				if p == nil {
					return fmt.Errorf("docs/README.md: there is no page %s", link[1])
				}
				last := &s.sections[len(s.sections)-1]
				last.Pages = append(last.Pages, p)
			}
		}
	}
	return nil
}

// render renders all pages.
func (s *site) render() error {
	for _, p := range s.order {
		md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
			goldmark.WithRendererOptions(html.WithUnsafe())) // the pages are ours
		ctx := parser.NewContext(parser.WithIDs(&slugs{used: map[string]bool{}}))
		tree := md.Parser().Parse(text.NewReader(p.text), parser.WithContext(ctx))
		if err := s.relink(p, tree); err != nil {
			return err
		}
		var b bytes.Buffer
		if err := md.Renderer().Render(&b, p.text, tree); err != nil {
			return err
		}
		s.index = append(s.index, entriesOf(p, tree)...)
		p.Body = template.HTML(reachable(strings.ReplaceAll(b.String(), `="docs/`, `="`)))
	}
	return nil
}

// write writes the pages, their pictures, the style and the search.
func (s *site) write() error {
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	for _, p := range s.order {
		var b bytes.Buffer
		if err := t.Execute(&b, map[string]any{"Page": p, "Sections": s.sections}); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.out, p.Out), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	index, err := json.Marshal(s.index)
	if err != nil {
		return err
	}
	files := map[string][]byte{"site.css": styleText, "search.js": searchText, "index.js": append([]byte("const entries = "), index...)}
	for _, kind := range []string{"*.png", "*.json"} {
		found, err := filepath.Glob(filepath.Join(s.source, "docs", kind))
		if err != nil {
			return err
		}
		for _, f := range found {
			if files[filepath.Base(f)], err = os.ReadFile(f); err != nil {
				return err
			}
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(s.out, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
