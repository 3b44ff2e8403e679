package lab

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed packages.txt
var packages string

// Packages returns the Debian packages that the tests need, each with the
// programs that they use of it. The Makefile reads the same file.
func Packages() map[string][]string {
	found := map[string][]string{}
	for line := range strings.Lines(packages) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		found[words[0]] = words[1:]
	}
	return found
}

// packageOf names the Debian package of a program, or "" if none is known.
func packageOf(program string) string {
	for name, programs := range Packages() {
		for _, p := range programs {
			if p == program {
				return name
			}
		}
	}
	return ""
}

// A MissingError says which program, or what else, is not on this machine.
type MissingError struct {
	Program string
	Package string // Debian package that brings it, "" if unknown
	How     string // command that brings it where no package does
	Why     string // sentence on what no command brings
}

// Error names the program and what would bring it.
func (e *MissingError) Error() string {
	if e.Why != "" {
		return e.Why
	}
	if e.How != "" {
		return fmt.Sprintf("program %s not found: run %s", e.Program, e.How)
	}
	if e.Package == "" {
		return fmt.Sprintf("program %s not found", e.Program)
	}
	return fmt.Sprintf("program %s not found: install Debian package %s", e.Program, e.Package)
}
