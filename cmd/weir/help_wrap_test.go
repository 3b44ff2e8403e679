package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"weir/internal/require"
	"weir/internal/screen"
	"weir/loadtest/run"
)

// allCommands returns the command and its subcommands, hidden ones included.
func allCommands() (all []*cobra.Command) {
	root := newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: screen.New(io.Discard)})
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		all = append(all, c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return all
}

// fits fails t if a line of text is longer than width, unless it is a single word behind its indent.
func fits(t *testing.T, what, text string, width int) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		word := strings.TrimSuffix(strings.TrimSpace(line), " \\")
		if utf8.RuneCountInString(line) > width && strings.Contains(word, " ") && !isQuoted(word) {
			t.Errorf("%s: a line of %d characters, want at most %d: %s", what, utf8.RuneCountInString(line), width, line)
		}
		if strings.HasSuffix(line, " ") {
			t.Errorf("%s: a line ends with spaces: %q", what, line)
		}
	}
}

// isQuoted reports whether a word of an example has its spaces in quotes, or is a flag with its value.
func isQuoted(word string) bool {
	for _, quote := range []string{"'", "\""} {
		if first, last := strings.Index(word, quote), strings.LastIndex(word, quote); last > first && !strings.Contains(word[:first], " ") {
			return true
		}
	}
	return false
}

// The help of each command fits into 80 columns where the width is unknown.
func TestHelpFits(t *testing.T) {
	for _, c := range allCommands() {
		if c.DisableFlagParsing {
			continue
		}
		code, text := weir(t, append(strings.Fields(c.CommandPath())[1:], "--help")...)
		if code != exitFine || text == "" {
			t.Errorf("%s --help: exit code %d", c.CommandPath(), code)
		}
		fits(t, c.CommandPath(), text, 80)
		_, again := weir(t, append([]string{"help"}, strings.Fields(c.CommandPath())[1:]...)...)
		if c.Name() != "help" && again != text {
			t.Errorf("weir help %s differs from --help:\n%s", c.CommandPath(), again)
		}
	}
}

// In lines of any width, the help has the same words, and its examples are the same commands.
func TestHelpKeepsItsWords(t *testing.T) {
	for _, c := range allCommands() {
		if c.Name() == "help" {
			continue
		}
		for _, width := range []int{60, 80, 100, 200} {
			text := wrapHelp(c.Long+"\n\n"+c.UsageString(), width)
			fits(t, c.CommandPath(), text, width)
			examples := c.Example
			if _, after, ok := strings.Cut(text, "\nExamples:\n"); ok {
				examples, _, _ = strings.Cut(after, "\n\n")
			}
			if got, want := commandsIn(t, examples), commandsIn(t, c.Example); !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%s in %d columns: examples %q, want %q", c.CommandPath(), width, got, want)
			}
			if got, want := wordsOf(text), wordsOf(c.Long+"\n\n"+c.UsageString()); !slices.Equal(got, want) {
				t.Errorf("%s in %d columns: words %q, want %q", c.CommandPath(), width, got, want)
			}
		}
	}
}

// commandsIn returns the words of each command of examples.
func commandsIn(t *testing.T, examples string) (all [][]string) {
	t.Helper()
	for line := range strings.Lines(strings.ReplaceAll(examples, "\\\n", "")) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "weir ") {
			all = append(all, shellWords(t, line))
		}
	}
	return all
}

// wordsOf returns the words of a text, sorted: a remark of an example may be in another place.
func wordsOf(text string) []string {
	words := strings.Fields(strings.ReplaceAll(text, "\\\n", ""))
	slices.Sort(words)
	return words
}

// The report of doctor fits into 80 columns and has no spaces at the ends of lines, whatever it
// advises.
func TestDoctorFits(t *testing.T) {
	code, text := weir(t, "doctor")
	if code != exitFine {
		t.Fatal(code, text)
	}
	fits(t, "doctor", text, 80)
	_, asJSON := weir(t, "doctor", "--json")
	var all struct{ Checks []run.HostCheck }
	require.NoError(t, json.Unmarshal([]byte(asJSON), &all))
	if rows := wordsOf(text); len(all.Checks) < 10 || len(rows) < 50 {
		t.Fatalf("%d checks:\n%s", len(all.Checks), text)
	}
	for i := range all.Checks {
		all.Checks[i].Verdict, all.Checks[i].Advice = "warn", strings.Repeat("raise the limit of open files ", 5)
	}
	var b strings.Builder
	require.NoError(t, writeChecks(&b, all.Checks))
	fits(t, "advice", b.String(), 80)
	if n := strings.Count(unwrapped(b.String()), "raise the limit of open files"); n != 5*len(all.Checks) {
		t.Errorf("advice is missing:\n%s", b.String())
	}
}
