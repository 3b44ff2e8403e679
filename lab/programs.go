package lab

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// built is the folder build/NAME of the source tree that we are in, or that our
// program was built in, if it is complete: then it has a file NAME.txt.
func built(name string) (string, error) {
	var starts []string
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	if _, source, _, ok := runtime.Caller(0); ok && filepath.IsAbs(source) {
		starts = append(starts, filepath.Dir(source))
	}
	for _, dir := range starts {
		for ; ; dir = filepath.Dir(dir) {
			made := filepath.Join(dir, "build", name)
			if isFile(filepath.Join(dir, "go.mod")) && isFile(filepath.Join(made, name+".txt")) {
				return made, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", fmt.Errorf("no folder build/%s in the source tree: make needs makes it", name)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// program finds name as c says, or in PATH and the folders of daemons.
func (c Config) program(name string) (string, error) {
	if p := c.Programs[name]; p != "" {
		return exec.LookPath(p)
	}
	return find(name)
}

// programs finds several by their names.
func (c Config) programs(names []string) (map[string]string, error) {
	found := map[string]string{}
	for _, name := range names {
		path, err := c.program(name)
		if err != nil {
			return nil, err
		}
		found[name] = path
	}
	return found, nil
}

// find looks for a program in PATH, then where daemons lie, which the PATH
// of an ordinary user often leaves out; for a name that ends in .so, where
// libraries lie.
func find(name string) (string, error) {
	switch name {
	case "condor_master":
		dir, err := unpackedCondor()
		return filepath.Join(dir, "usr/sbin", name), err
	case namespaces:
		return "", tryApart()
	case "python3": // the system's: another may be in a folder that a plain user cannot enter
		if isFile("/usr/bin/python3") {
			return "/usr/bin/python3", nil
		}
	case "postgres", "initdb", "pg_isready":
		if path, ok := findPostgres(name); ok {
			return path, nil
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	if strings.HasSuffix(name, ".so") {
		for _, dir := range []string{"/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib*"} {
			if found, _ := filepath.Glob(filepath.Join(dir, name)); len(found) > 0 {
				return found[0], nil
			}
		}
	}
	return "", &MissingError{Program: name, Package: packageOf(name)}
}
