package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	plays "weir/scenarios/transfer"
)

// ReadScenarios returns the scenarios of the given names and files, or all of weir's own if args is
// empty.
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

// ParseFolders parses folders, each DIR or SITE=DIR. They must exist: otherwise the space of
// another disk would be used.
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

// Choose returns the cases for which there is room, and descriptions of the other cases. It returns
// an error if some cases have no room and leaveOut is false.
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

// possible returns the scenarios that can be played on this machine, and descriptions of the other
// scenarios.
func possible(ctx context.Context, all []*Scenario) (possible []*Scenario, left []string) {
	for _, s := range all {
		if err := CheckLinks(ctx, s.Named()); err != nil {
			left = append(left, s.Name+": "+err.Error())
			continue
		}
		possible = append(possible, s)
	}
	return possible, left
}

// All plays scenarios one after another with the options of p, in folders below dirs, and removes
// these. It leaves out scenarios that this machine cannot play and, if leaveOut is set, cases whose
// files do not fit; left describes them. For each scenario it creates the run directory p.Out/NAME.
func (p Play) All(ctx context.Context, all []*Scenario, dirs Folders, leaveOut bool, disk Disk) (rows []Row, left []string, err error) {
	all, impossible := possible(ctx, all)
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("nothing can be played: %s", strings.Join(impossible, "; "))
	}
	fit, left, err := dirs.Choose(all, p.Seed, leaveOut, disk)
	if err != nil {
		return nil, nil, err
	}
	rows = []Row{}
	for _, s := range all {
		if len(fit[s]) == 0 {
			continue
		}
		one := p
		one.Scenario, one.Cases = s, fit[s]
		if p.Options.DB != "" {
			one.Prefix = "/store/demo-" + time.Now().UTC().Format("20060102-150405.000")
		}
		if p.Out != "" {
			one.Out = filepath.Join(p.Out, s.Name)
		}
		results, err := one.in(ctx, dirs)
		switch {
		case ctx.Err() != nil:
			return nil, nil, fmt.Errorf("interrupted while %s was played: all processes and files are removed", s.Name)
		case err != nil:
			return nil, nil, err
		}
		rows = append(rows, one.Rows(results)...)
	}
	return rows, append(impossible, left...), nil
}

// in plays the scenario in folders below dirs.
func (p *Play) in(ctx context.Context, dirs Folders) (results []Result, err error) {
	remove, err := dirs.Make(p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return p.Run(ctx)
}

// WriteRows writes a table of all cases, a table of the resource usage of their processes, and then
// the deviations from the expectations.
func WriteRows(w io.Writer, rows []Row, left []string) error {
	t := say.NewTable(w, "SCENARIO", "CASE", "FILES", "EXPECTED", "OUTCOME", "TOOK", "SPEED", "PEAK", "SPREAD", "")
	good := 0
	var below []string
	for _, r := range rows {
		mark := "as expected"
		if len(r.Problems) > 0 {
			mark = "NOT AS EXPECTED"
		} else {
			good++
		}
		t.Row(r.Scenario, r.Case, fmt.Sprintf("%d x %s", r.Files, unit.Bytes(float64(r.Size))), r.Expected, r.Outcome,
			unit.Seconds(r.Seconds), unit.Bytes(r.Rate)+"/s", unit.Bytes(r.Peak)+"/s", unit.Seconds(r.Spread), mark)
		for _, problem := range r.Problems {
			below = append(below, fmt.Sprintf("%s, %s: %s\n", r.Scenario, r.Case, problem))
		}
	}
	if err := errors.Join(t.Flush(), writeUsage(w, rows), writeAdded(w, rows)); err != nil {
		return err
	}
	below = append(below, fmt.Sprintf("\n%d of %s as expected. Each file was read again at its destination. Peak: "+
		"the largest speed within a\nsecond. Spread: from the arrival of the first file to that of the last one. Main is the coordinator.\n",
		good, say.Plural(len(rows), "case")))
	for _, why := range left {
		below = append(below, fmt.Sprintf("left out: %s\n", why))
	}
	_, err := io.WriteString(w, strings.Join(below, ""))
	return err
}

// cell returns the cells of a usage in a table.
func (u Usage) cell() []any {
	return []any{unit.Percent(u.CPU), unit.Bytes(float64(u.Memory)), unit.Seconds(u.Seconds)}
}

// writeUsage writes the resource usage of the coordinator, the sources and the destinations of each
// case.
func writeUsage(w io.Writer, rows []Row) error {
	t := say.NewTable(w, "SCENARIO", "CASE", "PROCESS", "CPU MAX", "MEMORY MAX", "CPU TIME", "SENT")
	for _, r := range rows {
		scenario, name := r.Scenario, r.Case
		add := func(process string, u Usage, sent string) {
			t.Row(append(append([]any{scenario, name, process}, u.cell()...), sent)...)
			scenario, name = "", ""
		}
		add(Main, r.Hosts[Main], "")
		for _, s := range r.Sources {
			add("source "+s.Site, r.Hosts[s.Site], fmt.Sprintf("%s in %s", say.Plural(s.Files, "file"), unit.Seconds(s.Seconds)))
		}
		for _, to := range r.to {
			add("destination "+to, r.Hosts[to], "")
		}
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return t.Flush()
}

// writeAdded writes the results of each request that was added to others.
func writeAdded(w io.Writer, rows []Row) error {
	for _, r := range rows {
		if len(r.Added) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s, %s: until the next request\n", r.Scenario, r.Case); err != nil {
			return err
		}
		processes := []string{Main}
		for _, s := range r.Sources {
			processes = append(processes, s.Site)
		}
		head := []any{"REQUESTS", "OPEN", "SPEED"}
		for _, p := range append(processes, r.to...) {
			head = append(head, strings.ToUpper(p)+": CPU MAX", "MEMORY MAX", "CPU TIME")
		}
		t := say.NewTable(w, head...)
		for _, a := range r.Added {
			row := []any{a.Requests, a.Open, unit.Bytes(a.Rate) + "/s"}
			for _, p := range append(processes, r.to...) {
				row = append(row, a.Usage[p].cell()...)
			}
			t.Row(row...)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}
