// Package man writes manual pages of a command and its subcommands, in the
// macros of man(7), from what their help says.
package man

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Manual is what the pages say beyond the commands' own help.
type Manual struct {
	Root    *cobra.Command
	Version string // of the program, at the foot of each page
	Date    string // at the foot, too; empty for none
	Exit    []Item // exit codes
	Env     []Item // variables of the environment
	Files   []Item // what the program reads and writes
	See     []string
}

// An Item is a name and what it means.
type Item struct{ Name, Text string }

// Write writes a page for each command that is not hidden into dir, which it
// makes: weir.1, weir-run.1, weir-lab-up.1. The same program and Manual make
// the same bytes. It returns the names of the files.
func (m *Manual) Write(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return m.write(dir, m.Root)
}

func (m *Manual) write(dir string, c *cobra.Command) ([]string, error) {
	var b strings.Builder
	m.page(&b, c)
	name := pageName(c) + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o644); err != nil {
		return nil, err
	}
	names := []string{name}
	for _, sub := range shown(c) {
		more, err := m.write(dir, sub)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	return names, nil
}

// shown are the subcommands that users are meant to see.
func shown(c *cobra.Command) []*cobra.Command {
	var subs []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			subs = append(subs, sub)
		}
	}
	return subs
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page writes the page of c.
func (m *Manual) page(w io.Writer, c *cobra.Command) {
	p := &page{w}
	name := pageName(c)
	p.line(".\\\" Made by %s man", m.Root.Name())
	p.line(".TH %s 1 \"%s\" \"%s\" \"%s manual\"", strings.ToUpper(escape(name)), escape(m.Date), escape(m.Version), m.Root.Name())
	p.line(".nh\n.ad l")
	p.section("NAME")
	p.line("%s \\- %s", escape(name), escape(strings.TrimSuffix(c.Short, ".")))
	p.section("SYNOPSIS")
	m.synopsis(p, c)
	p.section("DESCRIPTION")
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	p.text(long)
	p.commands(c)
	p.flags(c)
	p.items("EXIT STATUS", m.Exit)
	if c == m.Root {
		p.items("FILES", m.Files)
	}
	p.items("ENVIRONMENT", m.Env)
	if c.Example != "" {
		p.section("EXAMPLES")
		p.block(strings.Split(c.Example, "\n"))
	}
	m.seeAlso(p, c)
}

func (m *Manual) synopsis(p *page, c *cobra.Command) {
	if c.HasSubCommands() {
		p.line("\\fB%s\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]", escape(c.CommandPath()))
		return
	}
	arguments := strings.TrimPrefix(c.Use, c.Name())
	p.line("\\fB%s\\fR [\\fIOPTIONS\\fR]%s", escape(c.CommandPath()), escape(arguments))
}

// seeAlso names the pages above, below and beside c.
func (m *Manual) seeAlso(p *page, c *cobra.Command) {
	var pages []string
	if c.HasParent() {
		pages = append(pages, pageName(c.Parent()))
		if c.Parent() != m.Root {
			pages = append(pages, pageName(m.Root))
		}
		for _, beside := range shown(c.Parent()) {
			if beside != c && beside.GroupID == c.GroupID {
				pages = append(pages, pageName(beside))
			}
		}
	}
	for _, sub := range shown(c) {
		pages = append(pages, pageName(sub))
	}
	var links []string
	for _, page := range pages {
		links = append(links, fmt.Sprintf("\\fB%s\\fR(1)", escape(page)))
	}
	for _, s := range m.See {
		links = append(links, escape(s))
	}
	p.section("SEE ALSO")
	p.line("%s", strings.Join(links, ",\n"))
}

// commands lists the subcommands of c in their groups.
func (p *page) commands(c *cobra.Command) {
	if len(shown(c)) == 0 {
		return
	}
	p.section("COMMANDS")
	groups := append([]*cobra.Group{}, c.Groups()...)
	if len(groups) > 0 {
		groups = append(groups, &cobra.Group{Title: "Besides:"})
	} else {
		groups = append(groups, &cobra.Group{})
	}
	for _, g := range groups {
		title := g.Title
		for _, sub := range shown(c) {
			if sub.GroupID != g.ID {
				continue
			}
			if title != "" {
				p.line(".SS %s", escape(strings.TrimSuffix(title, ":")))
				title = ""
			}
			p.line(".TP\n\\fB%s\\fR", escape(sub.CommandPath()))
			p.text(sub.Short)
		}
	}
}

// flags lists what c can be told.
func (p *page) flags(c *cobra.Command) {
	c.InitDefaultHelpFlag()
	p.section("OPTIONS")
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		text := "\\fB\\-\\-" + escape(f.Name) + "\\fR"
		if f.Shorthand != "" {
			text = "\\fB\\-" + f.Shorthand + "\\fR, " + text
		}
		if value != "" {
			text += " \\fI" + escape(value) + "\\fR"
		}
		p.line(".TP\n%s", text)
		if d := f.DefValue; !nothing(d) && !strings.Contains(usage, "(default") {
			usage += " (default " + d + ")"
		}
		p.text(usage)
	})
}

// nothing tells whether a default is that nothing was said.
func nothing(value string) bool {
	switch value {
	case "", "0", "0s", "false", "[]":
		return true
	}
	return false
}
