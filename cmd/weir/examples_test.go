package main

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/internal/screen"
)

// Every example in the help of a command is a call of a command with valid flags and arguments.
func TestExamplesOfHelp(t *testing.T) {
	root := newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: screen.New(io.Discard)})
	ran := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Example == "" && c.Runnable() && !c.Hidden {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(strings.ReplaceAll(c.Example, "\\\n", "")) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "weir ") && line != "weir" {
				continue
			}
			ran++
			args := shellWords(t, line)
			called, rest, err := root.Find(args[1:])
			if err == nil {
				err = called.ParseFlags(rest)
			}
			if err == nil {
				err = called.ValidateArgs(called.Flags().Args())
			}
			if err != nil {
				t.Errorf("help of %s: %s: %v", c.CommandPath(), line, err)
			}
		}
	}
	walk(root)
	if ran < 80 {
		t.Errorf("only %d examples found", ran)
	}
}

// shellWords returns the words of the first command of a line for a shell, without redirections.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	for _, end := range []string{" | ", " && ", " > "} {
		line, _, _ = strings.Cut(line, end)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "set -- "+line+"\nprintf '%s\\0' \"$@\"").Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// Each command and each flag has its help in help.txt, which contains no other texts.
func TestHelpTexts(t *testing.T) {
	root := newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: screen.New(io.Discard)})
	_, common := helpOf("flags")
	commands := map[string]bool{"flags": true}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		commands[c.CommandPath()] = true
		if c.Short == "" {
			t.Errorf("%s has no short help", c.CommandPath())
		}
		own, flags := helpOf(c.CommandPath())
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" && !f.Hidden {
				t.Errorf("%s has no help of --%s", c.CommandPath(), f.Name)
			}
			delete(flags, f.Name)
			delete(common, f.Name)
		})
		if len(flags) > 0 && own != "" {
			t.Errorf("help.txt: %s has no flags %v", c.CommandPath(), flags)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	if len(common) > 0 {
		t.Errorf("help.txt: no command has the flags %v", common)
	}
	for line := range strings.Lines(helpText) {
		if title, ok := strings.CutPrefix(line, "# "); ok {
			if name, _, _ := strings.Cut(title, ": "); !commands[name] && !strings.HasPrefix(name, "manual ") {
				t.Errorf("help.txt: there is no command %s", name)
			}
		}
	}
}
