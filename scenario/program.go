package scenario

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"weir/internal/unit"
)

// commandJob is the kind of work that the user's own program does.
const commandJob = "command-job"

// programTimeout is workload.timeout of a command-job: an analysis takes longer
// than a request.
const programTimeout = unit.Duration(3600e9)

// checkProgram checks what the program of kind command-job is given.
func (c *checker) checkProgram() {
	if c.Work.Kind != commandJob {
		return
	}
	for _, arg := range c.Client.Command {
		name := regexp.MustCompile(`\{(source|dest|offset|length)\}`).FindString(strings.ReplaceAll(arg, "{{", ""))
		if name != "" {
			c.say("client.command", "%s: a job is given {url}, {path} and {size}, and does what it likes with them; %s is for kinds read and write", name, name)
		}
	}
}

// inputs returns the client's command. That of a command-job starts in a folder of its own,
// so what names a file of the scenario is made its whole path: an argument
// such as analysis.py, or analysis.C("{url}") up to the parenthesis.
func (s *Scenario) inputs() []string {
	command := slices.Clone(s.Client.Command)
	if s.Work.Kind != commandJob {
		return command
	}
	folder := ""
	if at := s.where["client.command"]; s.file != "" && at.set == "" && !at.outside {
		folder = filepath.Dir(s.file)
	}
	for i, arg := range command {
		if i == 0 && !strings.Contains(arg, "/") {
			continue // looked for where programs are
		}
		name := arg
		if n := strings.IndexAny(arg, "+({"); n >= 0 {
			name = arg[:n]
		}
		whole, err := filepath.Abs(filepath.Join(folder, name))
		if err != nil || name == "" || filepath.IsAbs(name) {
			continue
		}
		if info, err := os.Stat(whole); err == nil && info.Mode().IsRegular() {
			command[i] = strings.NewReplacer("{", "{{", "}", "}}").Replace(whole) + arg[len(name):]
		}
	}
	return command
}
