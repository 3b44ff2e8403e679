package trial

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/unit"
)

// FolderPrefix is the prefix of the names of a trial's own folders.
const FolderPrefix = "weir-trial-"

// Folders are existing folders below which sites get their folders.
type Folders struct {
	Default string            // of all sites that are not in Site
	Site    map[string]string // of sites by name
}

// of returns the folder of a site.
func (d Folders) of(site string) string {
	if dir, ok := d.Site[site]; ok {
		return dir
	}
	return d.Default
}

// Make creates the folders of a Play: one for all sites together, and one for each site that has a
// folder of its own. The caller calls remove.
func (d Folders) Make(p *Play) (remove func() error, err error) {
	var made []string
	remove = func() error {
		var errs []error
		for _, dir := range made {
			errs = append(errs, os.RemoveAll(dir))
		}
		return errors.Join(errs...)
	}
	folder := func(parent string) string {
		dir, failed := os.MkdirTemp(parent, FolderPrefix)
		if failed == nil {
			made = append(made, dir)
		}
		err = errors.Join(err, failed)
		return dir
	}
	p.Options.Dir, p.Roots = folder(d.Default), map[string]string{}
	for _, site := range p.Scenario.Sites {
		if dir, ok := d.Site[site]; ok {
			p.Roots[site] = folder(dir)
		}
	}
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return remove, nil
}

// Leftovers returns up to ten folders that trials have created there and not removed: the trials
// run, or were killed.
func (d Folders) Leftovers() (all []string) {
	for _, dir := range append(slices.Collect(maps.Values(d.Site)), d.Default) {
		there, _ := filepath.Glob(filepath.Join(dir, FolderPrefix+"*")) // fails only for a malformed pattern
		all = append(all, there...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), 10)]
}

// A Disk returns the file system of a folder, and the number of free bytes there; negative if that
// is not known.
type Disk func(folder string) (filesystem string, free int64)

// A Shortage is a case for whose files a file system has too little room.
type Shortage struct {
	Scenario, Case string
	Folder         string
	Need, Free     int64 // bytes
}

// String describes the needed and the free space.
func (s Shortage) String() string {
	return fmt.Sprintf("%s, %s: needs %s in %s, which has %s free", s.Scenario, s.Case, unit.Bytes(float64(s.Need)), s.Folder,
		unit.Bytes(float64(s.Free)))
}

// Fit returns the cases of each scenario whose files fit, and the shortages of the other cases.
// File systems that do not report their free space count as having room.
func (d Folders) Fit(all []*Scenario, seed bool, disk Disk) (fit map[*Scenario][]*Case, short []Shortage) {
	fit = map[*Scenario][]*Case{}
	for _, s := range all {
		for i := range s.Cases {
			if lack, ok := d.shortage(s, &s.Cases[i], seed, disk); ok {
				short = append(short, lack)
			} else {
				fit[s] = append(fit[s], &s.Cases[i])
			}
		}
	}
	return fit, short
}

// shortage returns the first file system without room for a case.
func (d Folders) shortage(s *Scenario, c *Case, seed bool, disk Disk) (Shortage, bool) {
	needs := d.needs(s, c, seed, disk)
	slices.SortFunc(needs, func(a, b Shortage) int { return strings.Compare(a.Folder, b.Folder) })
	i := slices.IndexFunc(needs, func(n Shortage) bool { return n.Need > n.Free })
	if i < 0 {
		return Shortage{}, false
	}
	return needs[i], true
}

// needs returns the space that a case needs on each file system, named by the first of its folders,
// and the free space there.
func (d Folders) needs(s *Scenario, c *Case, seed bool, disk Disk) (all []Shortage) {
	sites, place := map[string][]string{}, map[string]int{}
	for _, site := range s.Sites {
		on, free := disk(d.of(site))
		if free < 0 {
			continue
		}
		if _, known := place[on]; !known {
			place[on] = len(all)
			all = append(all, Shortage{Scenario: s.Name, Case: c.Name, Folder: d.of(site), Free: free})
		}
		sites[on] = append(sites[on], site)
	}
	for on, i := range place {
		n := c.Need(sites[on], seed)
		all[i].Need = n + n/100 // databases, logs, the file system's own
	}
	return all
}
