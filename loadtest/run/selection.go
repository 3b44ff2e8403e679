package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"weir/internal/document"
	"weir/internal/say"
	"weir/loadtest/scenario"
	"weir/storage/all"
)

// A Selection names the scenario of a command, and changes it.
type Selection struct {
	Target string            // of a scenario, instead of its own
	Vars   map[string]string // variables of a scenario's file
	Sets   []string          // KEY=VALUE, which change any key
}

// ReadAll returns the scenarios of the files in args. A target in args, or no argument, selects the default scenario.
// Mistakes in scenarios are UsageErrors.
func (s Selection) ReadAll(args []string) (all []*scenario.Scenario, err error) {
	if len(args) < 2 {
		sc, err := s.Read(args)
		return []*scenario.Scenario{sc}, err
	}
	for _, arg := range args {
		sc, err := s.Read([]string{arg})
		if err != nil {
			return nil, err
		}
		all = append(all, sc)
	}
	return all, nil
}

// Read is ReadAll for at most one argument.
func (s Selection) Read(args []string) (sc *scenario.Scenario, err error) {
	target, sets := s.Target, s.Sets
	if target != "" {
		sets = append(slices.Clip(sets), "target="+target)
	}
	switch {
	case len(args) == 1 && !isTarget(args[0]):
		sc, err = scenario.Read(args[0], s.Vars, sets)
		if errors.As(err, new(*fs.PathError)) {
			err = unreadable(args[0], err)
		}
	case len(args) == 1 && target != "":
		err = usage(fmt.Errorf("%s and --target %s: name one target", say.Plain(args[0]), say.Plain(target)))
	case len(s.Vars) > 0:
		err = usage(errors.New("--var: only a scenario file has variables"))
	case len(args) == 1:
		sc, err = scenario.DefaultWith(args[0], sets)
	case target == "":
		sc, err = scenario.DefaultWith(scenario.BuiltIn, sets)
	default:
		sc, err = scenario.DefaultWith(target, sets)
	}
	if errors.As(err, new(document.Mistakes)) {
		err = usage(err)
	}
	return sc, err
}

// unreadable returns the error of a scenario's file, with a hint on its name if that may be the name of a service.
func unreadable(name string, err error) error {
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR)
	like := scenario.WithScheme(name)
	switch {
	case !missing:
		return usage(err)
	case like == "" || IsScenario(name):
		return usage(fmt.Errorf("%w\nhint: name the file of a scenario, or a service with its protocol, as in http://localhost:8080/data", err))
	}
	return usage(fmt.Errorf("%w\nhint: if %s is a service, write it with its protocol: %s", err, say.Plain(name), like))
}

// urlScheme matches the beginning of a URL.
var urlScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// isTarget distinguishes a target from a scenario's file: it is a URL, or "built-in", and no file.
func isTarget(arg string) bool {
	if !urlScheme.MatchString(arg) && arg != scenario.BuiltIn {
		return false
	}
	_, err := os.Lstat(arg)
	return err != nil
}

// IsScenario distinguishes a scenario's file from a target.
func IsScenario(arg string) bool {
	if ext := filepath.Ext(arg); ext == ".yaml" || ext == ".yml" {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && info.Mode().IsRegular()
}

// Plan returns the plan of a scenario. Its errors are UsageErrors.
func Plan(sc *scenario.Scenario) (*scenario.Plan, error) {
	p, err := sc.Plan(all.Drivers())
	return p, usage(err)
}
