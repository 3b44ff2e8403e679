package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"weir/analysis/compare"
	"weir/internal/say"
	"weir/report/figure/draw"
	"weir/report/gallery"
	"weir/run/campaign"
)

// figureFlags say which figures are written, and how they look.
type figureFlags struct {
	dir, size string
	formats   []string
	dpi       int
	titles    bool
}

// figuresFlags adds the flags of every command that can draw.
func figuresFlags(c *cobra.Command, f *figureFlags) {
	usual := draw.Defaults()
	fs := c.Flags()
	fs.StringVar(&f.dir, "figures", "", "write figures for papers and wiki pages into `DIR`: one file for each and each format, with captions and numbers")
	fs.StringSliceVar(&f.formats, "format", draw.Formats(), "`FORMATS` of the figures, some of "+strings.Join(draw.Formats(), ", "))
	fs.StringVar(&f.size, "size", "column", "`SIZE` of the figures: column (one of a paper), wide (two columns), or millimeters as in 120x80")
	fs.IntVar(&f.dpi, "dpi", usual.DPI, "pixels per inch of PNG figures: `N` from 50 to 1200")
	fs.BoolVar(&f.titles, "titles", false, "write its title above each figure; papers have captions below")
}

// check refuses flags that say how figures should look and not where they go,
// and those that nothing can be drawn with, before anything else is done.
func (f *figureFlags) check(c *cobra.Command) error {
	if c.Flags().Changed("figures") && f.dir == "" {
		return exit{exitUsage, errors.New("--figures: name the folder to write them into")}
	}
	for _, name := range []string{"format", "size", "dpi", "titles"} {
		if f.dir == "" && c.Flags().Changed(name) {
			return exit{exitUsage, fmt.Errorf("--%s is about figures: name their folder with --figures DIR", name)}
		}
	}
	_, err := f.options()
	return err
}

func (f *figureFlags) options() (gallery.Options, error) {
	o := gallery.Options{Options: draw.Options{DPI: f.dpi, Title: f.titles}}
	var err error
	if o.Formats, err = gallery.ParseFormats(f.formats); err != nil {
		return o, exit{exitUsage, fmt.Errorf("--format: %w", err)}
	}
	if o.Size, err = draw.ParseSize(f.size); err != nil {
		return o, exit{exitUsage, fmt.Errorf("--size: %w", err)}
	}
	if _, err = draw.New(o.Options); err != nil {
		return o, exit{exitUsage, fmt.Errorf("--dpi: %w", err)}
	}
	return o, nil
}

// write draws the set and says on err what is there now: out belongs to the
// table, or to JSON.
func (f *figureFlags) write(set gallery.Set, s streams) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	w := s.working("drawing figures")
	o.Progress = func(done, total int) { w.advance("drawing figures", done, total) }
	names, err := gallery.Write(f.dir, set, o)
	w.done()
	if err != nil {
		return fmt.Errorf("--figures: %w", err)
	}
	s.say("weir: %s in %s, as %s; captions in %s\n", say.Plural(len(names), "figure"), line(f.dir),
		strings.Join(append(o.Formats, "csv"), ", "), line(filepath.Join(f.dir, gallery.CaptionsFile)))
	return nil
}

// campaignFigures draws the variants of the campaign in dir on one plot, or the
// mean of its repetitions.
func (f *figureFlags) campaign(dir string, c *campaign.Campaign, s streams) error {
	var groups []compare.Group
	var err error
	if len(c.Variants()) > 1 {
		groups, _, err = campaign.VariantGroups(dir)
	} else {
		groups = make([]compare.Group, 1)
		groups[0], err = campaign.Group(dir)
		groups[0].Name = filepath.Base(filepath.Clean(dir))
	}
	if err != nil {
		return fmt.Errorf("--figures: %w", err)
	}
	return f.write(gallery.OfComparison(groups, version()), s)
}
