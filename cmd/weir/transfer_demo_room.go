package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/engine/scratch"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/transfer/trial"
)

// demoFolder is how folders of demos begin.
const demoFolder = "weir-trial-"

// demoDirs are the folders below which sites have theirs: of all sites that are not
// named, and of those that are.
type demoDirs struct {
	all  string
	site map[string]string
}

// parseDemoDirs reads what --dir was given, each DIR or SITE=DIR. A folder must be
// there: where none is the space of another disk would be used.
func parseDemoDirs(given []string, scenarios []*trial.Scenario) (demoDirs, error) {
	d := demoDirs{all: os.TempDir(), site: map[string]string{}}
	var sites []string
	for _, s := range scenarios {
		sites = append(sites, s.Sites...)
	}
	slices.Sort(sites)
	sites = slices.Compact(sites)
	for _, g := range given {
		name, dir, of := strings.Cut(g, "=")
		if of = of && slices.Contains(sites, name); !of {
			dir = g
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return d, fmt.Errorf("--dir %s: there is no folder %s: use DIR, or SITE=DIR for one of the sites %s", g, dir, strings.Join(sites, ", "))
		}
		dir, err := filepath.Abs(dir)
		if err != nil {
			return d, err
		}
		if of {
			d.site[name] = dir
		} else {
			d.all = dir
		}
	}
	return d, nil
}

func (d demoDirs) of(site string) string {
	if dir, ok := d.site[site]; ok {
		return dir
	}
	return d.all
}

// make makes a folder for everything else and one for each site that has its own,
// and returns how they are removed.
func (d demoDirs) make(p *trial.Play) (remove func() error, err error) {
	var made []string
	remove = func() error {
		var errs []error
		for _, dir := range made {
			errs = append(errs, os.RemoveAll(dir))
		}
		return errors.Join(errs...)
	}
	folder := func(parent string) string {
		dir, failed := os.MkdirTemp(parent, demoFolder)
		if failed == nil {
			made = append(made, dir)
		}
		err = errors.Join(err, failed)
		return dir
	}
	p.Options.Dir, p.Roots = folder(d.all), map[string]string{}
	for _, site := range p.Scenario.Sites {
		if dir, ok := d.site[site]; ok {
			p.Roots[site] = folder(dir)
		}
	}
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return remove, nil
}

// left are folders of demos in those of d, a few of them.
func (d demoDirs) left() (all []string) {
	for _, dir := range append(slices.Sorted(maps.Values(d.site)), d.all) {
		there, _ := filepath.Glob(filepath.Join(dir, demoFolder+"*")) // fails only for a pattern that is none
		all = append(all, there...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), 10)]
}

// needs are the bytes that a case needs on each file system, by a folder on it, and
// what is free there. Those that do not tell are left out.
func (d demoDirs) needs(s *trial.Scenario, c *trial.Case, seed bool) (need, free map[string]int64) {
	need, free = map[string]int64{}, map[string]int64{}
	sites, first := map[string][]string{}, map[string]string{}
	for _, site := range s.Sites {
		disk := scratch.On(d.of(site))
		if disk.Free < 0 {
			continue
		}
		dir, ok := first[disk.Number]
		if !ok {
			dir = d.of(site)
			first[disk.Number], free[dir] = dir, disk.Free
		}
		sites[dir] = append(sites[dir], site)
	}
	for dir := range sites {
		n := c.Need(sites[dir], seed)
		need[dir] = n + n/100 // databases, logs, what file systems keep of their own
	}
	return need, free
}

// noRoom says why a case cannot be played, "" if it can.
func (d demoDirs) noRoom(s *trial.Scenario, c *trial.Case, seed bool) string {
	need, free := d.needs(s, c, seed)
	for _, dir := range slices.Sorted(maps.Keys(need)) {
		if need[dir] > free[dir] {
			return fmt.Sprintf("%s, %s: needs %s in %s, which has %s free", s.Name, c.Name, unit.Bytes(float64(need[dir])), dir, unit.Bytes(float64(free[dir])))
		}
	}
	return ""
}

// room finds the cases for which there is room, nil if that is all of them, before
// anything is made. Without --what-fits it is an error if there are others; left says
// what is left out and why.
func (f *demoFlags) room(all []*trial.Scenario) (fit map[*trial.Scenario][]*trial.Case, left []string, err error) {
	fit = map[*trial.Scenario][]*trial.Case{}
	cases := 0
	for _, s := range all {
		for i := range s.Cases {
			cases++
			if why := f.dirs.noRoom(s, &s.Cases[i], f.scale == "seed"); why != "" {
				left = append(left, why)
			} else {
				fit[s] = append(fit[s], &s.Cases[i])
			}
		}
	}
	if len(left) > 0 && (!f.fits || len(left) == cases) {
		text := fmt.Sprintf("there is no room for %d of %s:\n  %s\nuse --dir DIR or --dir SITE=DIR to name folders with more room", len(left), say.Plural(cases, "case"), strings.Join(left, "\n  "))
		if len(left) < cases {
			text += ", or --what-fits to play the others only"
		}
		if there := f.dirs.left(); len(there) > 0 {
			text += "\nthese are of demos that run, or were killed: " + strings.Join(there, ", ")
		}
		return nil, nil, errors.New(text)
	}
	return fit, left, nil
}
