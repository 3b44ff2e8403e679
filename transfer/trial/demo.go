package trial

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	plays "weir/scenarios/transfer"
)

// ReadScenarios returns the scenarios of the given names and files, all of weir's own if
// there are none.
func ReadScenarios(args []string) (all []*Scenario, err error) {
	if len(args) == 0 {
		args = plays.Names()
	}
	for _, arg := range args {
		text, own := plays.Read(arg)
		if !own {
			if text, err = os.ReadFile(arg); err != nil {
				return nil, fmt.Errorf("%s is neither a readable file nor one of %s: %w", arg, strings.Join(plays.Names(), ", "), err)
			}
		}
		scenario, err := Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arg, err)
		}
		if slices.ContainsFunc(all, func(s *Scenario) bool { return s.Name == scenario.Name }) {
			return nil, fmt.Errorf("%s: another scenario also has the name %s", arg, scenario.Name)
		}
		all = append(all, scenario)
	}
	return all, nil
}

// ParseFolders reads folders, each DIR or SITE=DIR. They must exist: otherwise the space
// of another disk would be used.
func ParseFolders(given []string, scenarios []*Scenario) (Folders, error) {
	d := Folders{Default: os.TempDir(), Site: map[string]string{}}
	var sites []string
	for _, s := range scenarios {
		sites = append(sites, s.Sites...)
	}
	slices.Sort(sites)
	sites = slices.Compact(sites)
	for _, g := range given {
		site, dir, ofSite := strings.Cut(g, "=")
		if ofSite = ofSite && slices.Contains(sites, site); !ofSite {
			dir = g
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return d, fmt.Errorf("%s: there is no folder %s: use DIR, or SITE=DIR for one of the sites %s", g, dir, strings.Join(sites, ", "))
		}
		dir, err := filepath.Abs(dir)
		if err != nil {
			return d, err
		}
		if ofSite {
			d.Site[site] = dir
		} else {
			d.Default = dir
		}
	}
	return d, nil
}

// Choose returns the cases for which there is room, and descriptions of the others. It
// returns an error if some have no room and are not to be left out.
func (d Folders) Choose(all []*Scenario, seed, leaveOut bool, disk Disk) (fit map[*Scenario][]*Case, left []string, err error) {
	fit, short := d.Fit(all, seed, disk)
	for _, s := range short {
		left = append(left, s.String())
	}
	if len(short) == 0 || leaveOut && len(fit) > 0 {
		return fit, left, nil
	}
	cases := 0
	for _, s := range all {
		cases += len(s.Cases)
	}
	text := fmt.Sprintf("there is no room for %d of %s:\n  %s\nuse --dir DIR or --dir SITE=DIR to name folders with more room",
		len(left), say.Plural(cases, "case"), strings.Join(left, "\n  "))
	if len(fit) > 0 {
		text += ", or --what-fits to play only the others"
	}
	if there := d.Leftovers(); len(there) > 0 {
		text += "\nthese are of demos that run, or were killed: " + strings.Join(there, ", ")
	}
	return nil, nil, errors.New(text)
}

// WriteRows writes one table of all cases, and below it what is not as expected.
func WriteRows(w io.Writer, rows []Row, left []string) error {
	t := say.NewTable(w, "SCENARIO", "CASE", "FILES", "EXPECTED", "OUTCOME", "TOOK", "SPEED", "SPREAD", "")
	good := 0
	var below, runs []string
	for _, r := range rows {
		mark := "as expected"
		if len(r.Problems) > 0 {
			mark = "NOT AS EXPECTED"
		} else {
			good++
		}
		t.Row(r.Scenario, r.Case, fmt.Sprintf("%d x %s", r.Files, unit.Bytes(float64(r.Size))), r.Expected, r.Outcome,
			unit.Seconds(r.Seconds), unit.Bytes(r.Rate)+"/s", unit.Seconds(r.Spread), mark)
		for _, problem := range r.Problems {
			below = append(below, fmt.Sprintf("%s, %s: %s\n", r.Scenario, r.Case, problem))
		}
		if r.Run != "" {
			runs = append(runs, fmt.Sprintf("run directory  %s\n", r.Run))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	below = append(below, fmt.Sprintf("\n%d of %s as expected. Each file was read again at its destination. Spread: from the arrival of\n"+
		"the first file to that of the last one.\n", good, say.Plural(len(rows), "case")))
	for _, why := range left {
		below = append(below, fmt.Sprintf("left out: %s\n", why))
	}
	_, err := io.WriteString(w, strings.Join(append(below, slices.Compact(runs)...), ""))
	return err
}
