package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/tier"
	"weir/lab/labtest"
)

// Every command of docs/third-party.md works as written, in the order of the page, except for the
// ports, and each copy exists.
func TestThirdPartyPage(t *testing.T) {
	tier.Full(t, "the page, line by line")
	labtest.Need(t, "curl", "gfal-copy", "davix-cp")
	if os.Getenv("GFAL_PYTHONBIN") == "" { // its modules are packaged for the distribution's python
		t.Setenv("GFAL_PYTHONBIN", "/usr/bin/python3")
	}
	dir := t.TempDir()
	block := section(t, "third-party.md", "## Try it")
	_, block, _ = strings.Cut(block, "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	var ports []string // as written, and as used here
	for line := range strings.Lines(block) {
		line = strings.NewReplacer(ports...).Replace(strings.TrimSpace(line))
		if args, ok := strings.CutPrefix(line, "weir "); ok {
			words := strings.Fields(args) // serve FOLDER --listen HOST:PORT ...
			address := words[3]
			words[1], words[3] = filepath.Join(dir, words[1]), "127.0.0.1:0"
			_, url := serving(t, append(words, "--while-stdin")...)
			ports = append(ports, address, strings.TrimPrefix(url, "http://"))
			continue
		}
		code, said := start(t, dir, "sh", "-c", line).ended()
		if code != 0 || strings.Contains(said, "failure") {
			t.Errorf("%s: exit code %d\n%s", line, code, said)
		}
	}
	for _, name := range []string{"pulled", "pushed", "by-gfal", "by-davix"} {
		if text, err := os.ReadFile(filepath.Join(dir, "b", name)); err != nil || string(text) != "hello\n" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
