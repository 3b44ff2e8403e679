package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/docs"
	"weir/internal/manpage"
	"weir/internal/say"
)

// manCommand returns the command that writes the manual pages, for packagers.
func manCommand(s streams) *cobra.Command {
	return command("man DIR", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		date, err := manDate()
		if err != nil {
			return err
		}
		root := c.Root()
		root.InitDefaultCompletionCmd()
		pages := commandPages(root)
		others, err := otherPages()
		if err != nil {
			return err
		}
		pages = append(pages, others...)
		if err := os.MkdirAll(args[0], 0o755); err != nil {
			return err
		}
		for _, p := range pages {
			p.Date, p.Source, p.Manual = date, "weir "+version(), "weir manual"
			file := filepath.Join(args[0], fmt.Sprintf("%s.%d", p.Name, p.Chapter))
			if err := os.WriteFile(file, []byte(p.String()), 0o644); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(s.out, "%d pages in %s\n", len(pages), filepath.Clean(args[0]))
		return err
	})
}

// manDate returns the date of the pages, the zero time if no date is known.
func manDate() (time.Time, error) {
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return time.Time{}, usagef("SOURCE_DATE_EPOCH=%s: use seconds since 1970", line(epoch))
		}
		return time.Unix(seconds, 0).UTC(), nil
	}
	_, text := built()
	at, _ := time.Parse(time.RFC3339, text) // no date gives the zero time
	return at.UTC(), nil
}

// commandPages returns the pages of c and its subcommands.
func commandPages(c *cobra.Command) []*manpage.Page {
	pages := []*manpage.Page{commandPage(c)}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			pages = append(pages, commandPages(sub)...)
		}
	}
	return pages
}

// pageName returns the name of the page of a command, as in weir-run.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// commandPage returns the page of a command.
func commandPage(c *cobra.Command) *manpage.Page {
	p := &manpage.Page{Name: pageName(c), Chapter: 1, About: c.Short}
	p.Section("Synopsis")
	use := strings.TrimPrefix(c.UseLine(), c.CommandPath())
	if c.HasAvailableSubCommands() {
		use = " COMMAND [flags]"
	}
	p.Paragraph(manpage.Bold(c.CommandPath()) + manpage.Text(strings.ReplaceAll(string(manpage.Plain(use)), "|", `|\:`))) // may break there
	p.Section("Description")
	for _, b := range helpBlocks(cmp.Or(c.Long, c.Short+".")) {
		switch {
		case b.kind == helpItem && b.name != "":
			p.Item(manpage.Plain(b.name), manpage.Plain(b.text))
		case b.kind == helpItem:
			p.Verbatim(b.indent + b.text)
		case b.kind != helpBlank:
			p.Paragraph(manpage.Plain(b.text))
		}
	}
	if subs := slices.DeleteFunc(slices.Clone(c.Commands()), func(s *cobra.Command) bool { return !s.IsAvailableCommand() }); len(subs) > 0 {
		p.Section("Commands")
		for _, s := range subs {
			p.Item(manpage.Bold(s.CommandPath()), manpage.Plain(s.Short))
		}
	}
	if c.HasAvailableFlags() {
		p.Section("Options")
		c.Flags().VisitAll(func(f *pflag.Flag) { flagItem(p, f) })
	}
	if c.Example != "" {
		p.Section("Examples")
		var b strings.Builder
		for line := range strings.Lines(wrapHelp("Examples:\n"+c.Example, 69)) {
			b.WriteString(strings.TrimPrefix(line, "  "))
		}
		_, lines, _ := strings.Cut(b.String(), "\n")
		p.Verbatim(lines)
	}
	p.Section("Exit status")
	exitItems(p)
	helpSection(p, "Environment", "manual environment")
	if !c.HasParent() {
		helpSection(p, "Files", "manual files")
	}
	p.Section("See also")
	p.Paragraph(manpage.Plain(strings.Join(seeAlso(c), ", ")))
	return p
}

// flagItem writes a flag.
func flagItem(p *manpage.Page, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	value, usage := pflag.UnquoteUsage(f)
	term := manpage.Bold("--" + f.Name)
	if f.Shorthand != "" {
		term = manpage.Bold("-"+f.Shorthand) + ", " + term
	}
	if f.Value.Type() != "bool" && value != "" {
		term += "=" + manpage.Italic(strings.TrimPrefix(value, "="))
		if d := f.DefValue; d != "" && d != "0" && d != "0s" && d != "[]" && !strings.Contains(usage, "(default") {
			usage += " (default " + d + ")"
		}
	}
	p.Item(term, manpage.Plain(say.Capital(usage)+"."))
}

// exitItems writes the exit codes.
func exitItems(p *manpage.Page) {
	for _, e := range exitCodes() {
		p.Item(manpage.Bold(strconv.Itoa(int(e.code))), manpage.Plain(e.means))
	}
}

// helpSection writes a section of help.txt with a line "NAME: text" for each item.
func helpSection(p *manpage.Page, title, name string) {
	p.Section(title)
	about, _ := helpOf(name)
	for line := range strings.Lines(strings.TrimSpace(about)) {
		if term, text, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			p.Item(manpage.Bold(term), manpage.Plain(text))
		}
	}
}

// seeAlso returns the pages that belong to the page of a command.
func seeAlso(c *cobra.Command) []string {
	var all []string
	if c.HasParent() {
		all = append(all, pageName(c.Parent())+"(1)")
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, pageName(sub)+"(1)")
		}
	}
	return append(all, "weir-configuration(5)", "weir-scenario(5)", "weir-exit-codes(7)")
}

// otherPages returns the pages of file formats and of the exit codes.
func otherPages() ([]*manpage.Page, error) {
	codes := &manpage.Page{Name: "weir-exit-codes", Chapter: 7, About: "exit codes of weir"}
	codes.Section("Description")
	exitItems(codes)
	for _, text := range exitCodeRules() {
		codes.Paragraph(manpage.Plain(text))
	}
	codes.Section("See also")
	codes.Paragraph("weir(1)")
	all := []*manpage.Page{codes}
	for _, about := range []struct{ name, text string }{
		{"scenario", "format of the scenarios of load tests"},
		{"configuration", "configuration files of weir coordinator, weir agent and weir serve"},
	} {
		source, err := docs.Pages.ReadFile(about.name + ".md")
		if err != nil {
			return nil, err
		}
		p := &manpage.Page{Name: "weir-" + about.name, Chapter: 5, About: about.text}
		p.Markdown(source)
		if about.name == "configuration" {
			if err := configKeys(p); err != nil {
				return nil, err
			}
		}
		p.Section("See also")
		p.Paragraph("weir(1), weir\\-run(1), weir\\-config(1), weir\\-exit\\-codes(7), /usr/share/doc/weir/html")
		all = append(all, p)
	}
	return all, nil
}

// configKeys writes the keys of the configuration files.
func configKeys(p *manpage.Page) error {
	for _, name := range configCommands() {
		c, file, _, err := configOf(name)
		if err != nil {
			return err
		}
		text, err := file.Schema(c.Flags(), configFormat(name))
		if err != nil {
			return err
		}
		var schema struct {
			Properties map[string]struct{ Description string }
		}
		if err := json.Unmarshal(text, &schema); err != nil {
			return err
		}
		p.Section("Keys of weir " + name)
		for _, key := range slices.Sorted(maps.Keys(schema.Properties)) {
			about := strings.TrimSuffix(schema.Properties[key].Description, ".")
			p.Item(manpage.Bold(key), manpage.Plain(say.Capital(about)+"."))
		}
	}
	return nil
}
