package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/results"
)

// Groups reads the groups of runs to compare: each of args is one group, except that a single
// campaign is split into one group for each variant, with its factors. Folders without a run that
// can be compared, and links to other folders of args, are left out, if at least two groups remain.
func Groups(args []string) (groups []compare.Group, factors []compare.Factor, left []fact.Fact, err error) {
	if len(args) == 1 {
		groups, factors, err = VariantGroups(args[0])
		return groups, factors, nil, err
	}
	var errs []error
	for i, arg := range args {
		if other := linked(args, i); other != "" {
			left = append(left, fact.New("compare.left_out.link", "dir", arg, "other", other))
			continue
		}
		if _, err := os.Stat(arg); err != nil {
			return nil, nil, nil, err
		}
		g, err := Group(arg)
		if err == nil && !counts(&g) {
			err = fmt.Errorf("%s: no step counts: %s", arg, g.Runs[0].Found.Headline)
		}
		if err != nil {
			errs, left = append(errs, err), append(left, fact.New("compare.left_out", "error", say.Plain(err.Error())))
			continue
		}
		g.Name = groupName(args, i)
		groups = append(groups, g)
	}
	if len(groups) < 2 && len(errs) > 0 {
		return nil, nil, nil, fmt.Errorf("a comparison needs two groups of runs, of %d folders %d can be compared: %w", len(args), len(groups),
			errors.Join(errs...))
	}
	return groups, nil, left, nil
}

// counts reports whether a run of g has a step that counts.
func counts(g *compare.Group) bool {
	return slices.ContainsFunc(g.Runs, func(r *compare.Run) bool {
		return slices.ContainsFunc(r.Found.Curve, func(s analysis.Step) bool { return s.Excluded == "" })
	})
}

// linked returns the path of args to whose folder args[i] is a symbolic link, such as the target of
// runs/latest; it returns "" if args[i] is no link, or a link to another folder.
func linked(args []string, i int) string {
	link, err := os.Lstat(args[i])
	if err != nil || link.Mode()&fs.ModeSymlink == 0 {
		return ""
	}
	target, err := os.Stat(args[i])
	if err != nil {
		return ""
	}
	for k, other := range args {
		if info, err := os.Lstat(other); k != i && err == nil && os.SameFile(info, target) {
			return other
		}
	}
	return ""
}

// FigureGroups reads the campaign in dir for figures: one group for each variant, or one group with
// all repetitions.
func FigureGroups(dir string, c *Campaign) ([]compare.Group, error) {
	if len(c.Variants()) > 1 {
		groups, _, err := VariantGroups(dir)
		return groups, err
	}
	g, err := Group(dir)
	g.Name = filepath.Base(filepath.Clean(dir))
	return []compare.Group{g}, err
}

// groupName returns the last element of a path, or the whole path if another path ends in the same
// element.
func groupName(args []string, i int) string {
	name := filepath.Base(filepath.Clean(args[i]))
	for k, other := range args {
		if k != i && filepath.Base(filepath.Clean(other)) == name {
			return filepath.Clean(args[i])
		}
	}
	return name
}

// Group reads a run directory, a campaign, or a folder of run directories.
func Group(dir string) (compare.Group, error) {
	var g compare.Group
	if Is(dir) {
		c, err := Read(dir)
		if err != nil {
			return g, err
		}
		for i := range c.Runs {
			addCampaignRun(&g, dir, &c.Runs[i])
		}
		return g, someRuns(g, dir)
	}
	if results.IsRun(dir) {
		r, err := readRun(dir)
		if err == nil {
			g.Runs = append(g.Runs, r)
		}
		return g, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return g, err
	}
	for _, e := range entries { // sorted by name
		path := filepath.Join(dir, e.Name())
		if e.Type()&fs.ModeSymlink != 0 || !results.IsRun(path) {
			continue // a link such as runs/latest would count a run twice
		}
		if r, err := readRun(path); err != nil {
			g.Lose(unreadable(err))
		} else {
			g.Runs = append(g.Runs, r)
		}
	}
	return g, someRuns(g, dir)
}

func someRuns(g compare.Group, dir string) error {
	if len(g.Runs) > 0 {
		return nil
	}
	if len(g.Missing) > 0 {
		return fmt.Errorf("%s: no run can be compared: %s", dir, g.Missing[0])
	}
	return fmt.Errorf("%s is no run directory, no campaign, and holds no run directories", dir)
}

// VariantGroups reads a campaign as one group for each variant.
func VariantGroups(dir string) ([]compare.Group, []compare.Factor, error) {
	c, err := Read(dir)
	if err != nil {
		return nil, nil, err
	}
	var groups []compare.Group
	for _, name := range c.Variants() {
		g := compare.Group{Name: name}
		for i := range c.Runs {
			if c.Runs[i].Variant == name {
				g.Levels = c.Runs[i].Levels
				g.Name = c.VariantName(&c.Runs[i])
				addCampaignRun(&g, dir, &c.Runs[i])
			}
		}
		groups = append(groups, g)
	}
	if len(groups) < 2 {
		return nil, nil, fmt.Errorf("%s repeats one plan: weir report %s sums it up; or compare it with another campaign", dir, dir)
	}
	done := slices.DeleteFunc(slices.Clone(groups), func(g compare.Group) bool { return len(g.Runs) == 0 })
	if len(done) < 2 {
		return nil, nil, fmt.Errorf("%s: only %d of %d variants have a run that can be compared", dir, len(done), len(groups))
	}
	for _, g := range groups {
		if len(g.Runs) == 0 {
			done[0].Lose(fact.New("compare.missing.variant", "variant", say.Plain(g.Name)))
		}
	}
	var factors []compare.Factor
	for _, f := range c.Factors {
		factors = append(factors, compare.Factor{Key: f.Key, Levels: f.Levels})
	}
	return done, factors, nil
}

// VariantName returns the levels of a run's variant if they are short, such as kept/4KiB, else the
// variant's letter. Levels that all variants share are left out.
func (c *Campaign) VariantName(r *Run) string {
	const most = 30
	var levels []string
	for _, f := range c.Factors {
		if len(f.Levels) > 1 || len(c.Factors) == 1 {
			levels = append(levels, r.Levels[f.Key])
		}
	}
	if name := say.Plain(strings.Join(levels, "/")); name != "" && len(name) <= most {
		return name
	}
	return r.Variant
}

// addCampaignRun reads one run of the campaign in dir. It records the run as missing if it does not
// exist.
func addCampaignRun(g *compare.Group, dir string, r *Run) {
	path := filepath.Join(dir, r.Dir)
	if !results.IsRun(path) {
		g.Lose(fact.New("compare.missing.run", "dir", path))
		return
	}
	run, err := readRun(path)
	if err != nil {
		g.Lose(unreadable(err))
		return
	}
	g.Runs = append(g.Runs, run.Of(dir, r.Block, r.Levels))
}

func unreadable(err error) fact.Fact {
	return fact.New("compare.missing.error", "error", say.Plain(err.Error()))
}

// Findings returns the findings of run. It analyzes the run only if its findings.json is missing or
// older than the measurement, and writes nothing.
func Findings(run *results.Run) (*analysis.Findings, error) {
	if found := oldFindings(run.Dir); found != nil {
		return found, nil
	}
	return analysis.Analyze(run)
}

// readRun reads a run and its findings.
func readRun(dir string) (*compare.Run, error) {
	run, err := results.Open(dir)
	if err != nil {
		return nil, err
	}
	found, err := Findings(run)
	if err != nil {
		return nil, err
	}
	if len(found.Curve) == 0 {
		return nil, fmt.Errorf("%s: no step was held", dir)
	}
	return compare.NewRun(dir, run.About, run.Plan, found), nil
}

// oldFindings returns dir's findings.json if this version of the program wrote it after the last
// measurement, else nil.
func oldFindings(dir string) *analysis.Findings {
	path := filepath.Join(dir, results.FindingsFile)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	for _, name := range []string{results.IntervalsFile, results.HostsFile, results.EventsFile} {
		if of, err := os.Stat(filepath.Join(dir, name)); err == nil && of.ModTime().After(info.ModTime()) {
			return nil
		}
	}
	b, err := os.ReadFile(path)
	f := new(analysis.Findings)
	if err != nil || json.Unmarshal(b, f) != nil || f.Version != analysis.FindingsVersion {
		return nil
	}
	return f
}
