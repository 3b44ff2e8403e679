package lab

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed packages.txt
var packages string

//go:embed rpm.txt
var rpmPackages string

// words returns the words of each line of text that is not a comment.
func words(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		if w := strings.Fields(line); len(w) > 0 && !strings.HasPrefix(w[0], "#") {
			all = append(all, w)
		}
	}
	return all
}

// Packages returns the Debian packages that the tests need, each with the programs that they use of it. The Makefile
// reads the same file.
func Packages() map[string][]string {
	found := map[string][]string{}
	for _, w := range words(packages) {
		found[w[0]] = w[1:]
	}
	return found
}

// packageOf returns the Debian package of a program, or "" if it is unknown.
func packageOf(program string) string {
	for name, programs := range Packages() {
		if slices.Contains(programs, program) {
			return name
		}
	}
	return ""
}

// rpmOf returns the RPM package with the programs of a Debian package, and whether RHEL has it in EPEL
// only.
func rpmOf(debian string) (name string, epel bool) {
	for _, w := range words(rpmPackages) {
		if w[0] == debian {
			return w[1], len(w) > 2
		}
	}
	return debian, false
}

// A distribution is this machine's kind of Linux, by the program that installs packages.
type distribution struct {
	apt, dnf bool // both if the distribution is unknown
	fedora   bool // whose own packages include those of EPEL
	source   bool // the working directory is in a source tree of weir
}

// thisDistribution returns the kind of this machine's distribution.
func thisDistribution() distribution {
	text, _ := os.ReadFile("/etc/os-release") // a machine without the file is unknown
	s := distributionOf(string(text))
	dir, err := os.Getwd()
	for ; err == nil && !s.source; dir = filepath.Dir(dir) {
		s.source = isFile(filepath.Join(dir, "lab", "needs.sh"))
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return s
}

// distributionOf returns the kind of a distribution: https://www.freedesktop.org/software/systemd/man/os-release.html
func distributionOf(release string) distribution {
	var s distribution
	for line := range strings.Lines(release) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key != "ID" && key != "ID_LIKE" {
			continue
		}
		for _, id := range strings.Fields(strings.Trim(value, `"'`)) {
			s.apt = s.apt || id == "debian" || id == "ubuntu"
			s.dnf = s.dnf || id == "fedora" || id == "rhel" || id == "centos"
			s.fedora = s.fedora || id == "fedora" && key == "ID"
		}
	}
	if !s.apt && !s.dnf {
		s.apt, s.dnf = true, true
	}
	return s
}

// A MissingError names a program, or another requirement, that is not on this machine.
type MissingError struct {
	Program string
	Package string // Debian package that brings it, "" if unknown
	Target  string // of make in the source tree of weir, which installs it if no package does
	Why     string // sentence on requirements that no command installs
}

// Error names the program and the package or the command that installs it.
func (e *MissingError) Error() string { return e.text(thisDistribution()) }

func (e *MissingError) text(s distribution) string {
	text := fmt.Sprintf("program %s not found", e.Program)
	rpm, _ := rpmOf(e.Package)
	switch {
	case e.Why != "":
		return e.Why
	case e.Target != "":
		return text + ": run " + s.makeCommand(e.Target)
	case e.Package == "":
		return text
	case !s.dnf:
		return text + ": install Debian package " + e.Package
	case !s.apt:
		return text + ": install RPM package " + rpm
	}
	return text + ": install Debian package " + e.Package + " or RPM package " + rpm
}

// makeCommand returns the command that makes a target. Where weir was installed from a package there
// is no Makefile.
func (s distribution) makeCommand(target string) string {
	if s.source {
		return "make " + target
	}
	return "make " + target + " in the source tree of weir, and start weir lab there"
}

// Install returns the commands that install the missing programs: one command, several, or "" if no
// command does.
func Install(list []*MissingError) string { return thisDistribution().install(list) }

func (s distribution) install(list []*MissingError) string {
	var debian, rpm, targets []string
	needsEPEL := false
	for _, m := range list {
		if m.Target != "" {
			targets = append(targets, m.Target)
		} else if m.Package != "" {
			name, epel := rpmOf(m.Package)
			debian, rpm, needsEPEL = append(debian, m.Package), append(rpm, name), needsEPEL || epel
		}
	}
	var commands []string
	if len(debian) > 0 {
		apt := "apt-get install --no-install-recommends " + once(debian)
		dnf := "dnf install " + once(rpm)
		if needsEPEL && !s.fedora {
			dnf = "dnf install epel-release && " + dnf
		}
		switch {
		case !s.dnf:
			commands = append(commands, apt)
		case !s.apt:
			commands = append(commands, dnf)
		default:
			commands = append(commands, apt+" (or "+dnf+")")
		}
	}
	switch { // needs-full includes needs
	case slices.Contains(targets, "needs-full"):
		commands = append(commands, s.makeCommand("needs-full"))
	case len(targets) > 0:
		commands = append(commands, s.makeCommand(targets[0]))
	}
	return strings.Join(commands, " && ")
}

// once returns different words in the order of their first occurrence.
func once(all []string) string {
	var different []string
	for _, word := range all {
		if !slices.Contains(different, word) {
			different = append(different, word)
		}
	}
	return strings.Join(different, " ")
}
