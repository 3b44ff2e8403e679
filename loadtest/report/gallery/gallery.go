// Package gallery writes figures into a folder for papers and wiki pages: each
// in the formats asked for, its numbers as CSV, and captions for all of them.
package gallery

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"weir/loadtest/report/figure"
	"weir/loadtest/report/figure/draw"
	"weir/loadtest/results"
)

// A Set contains the figures and captions that are written together.
type Set struct {
	Title   string          // the subject of the figures
	Origin  []string        // ends of every caption: runs, validity, versions
	Bars    string          // the method of intervals; in captions of figures with bars
	Fits    []string        // formulas of the lines that are fitted to the curve
	Figures []figure.Figure // in the order of the captions
}

// Options control the files that are written, and the style of the drawings.
type Options struct {
	draw.Options
	Formats  []string              // of draw.Formats; empty: only numbers and captions
	Progress func(done, total int) // nil: not needed; several goroutines call it
}

// Captions are the names of the files that hold the captions of all figures.
const (
	CaptionsFile = "captions.md"
	TeXFile      = "captions.tex"
)

// ParseFormats reads a list such as "svg,pdf".
func ParseFormats(list []string) ([]string, error) {
	var all []string
	for _, f := range list {
		f = strings.ToLower(strings.TrimSpace(f))
		if !slices.Contains(draw.Formats(), f) {
			return nil, fmt.Errorf("format %q: use some of %s", f, strings.Join(draw.Formats(), ", "))
		}
		if !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all, nil
}

// Write creates the folder dir if it does not exist and writes set into it. Files of the same names
// are replaced, each completely or not at all; nothing is removed. It returns the names of the
// figures without the extensions of the formats. A run directory is refused, because its files
// belong to other writers.
func Write(dir string, set Set, o Options) ([]string, error) {
	if len(set.Figures) == 0 {
		return nil, errors.New("there is nothing to draw: no step was held")
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: name a folder", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, results.AboutFile)); err == nil {
		return nil, fmt.Errorf("%s is a run directory: name a folder of its own, such as %s", dir, filepath.Join(dir, "figures"))
	}
	d, err := draw.New(o.Options)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	names := Names(set.Figures)
	if err := writeAll(jobs(dir, set, names, d, o), o.Progress); err != nil {
		return nil, err
	}
	err = results.WriteFile(dir, CaptionsFile, func(w io.Writer) error { return markdown(w, set, names, o) })
	if err == nil {
		err = results.WriteFile(dir, TeXFile, func(w io.Writer) error { return tex(w, set, names, o) })
	}
	return names, err
}

// jobs returns the functions that write all files except the captions.
func jobs(dir string, set Set, names []string, d *draw.Drawer, o Options) []func() error {
	var all []func() error
	for i := range set.Figures {
		f, name := &set.Figures[i], names[i]
		for _, format := range o.Formats {
			all = append(all, func() error {
				return results.WriteFile(dir, name+"."+format, func(w io.Writer) error { return d.Draw(w, f, format) })
			})
		}
		all = append(all, func() error {
			return results.WriteFile(dir, name+".csv", func(w io.Writer) error { return Numbers(w, f) })
		})
	}
	return all
}

// writeAll runs the jobs on all cores; after an error no further job begins.
func writeAll(jobs []func() error, progress func(done, total int)) error {
	var next, done atomic.Int64
	var wait sync.WaitGroup
	errs := make([]error, min(runtime.GOMAXPROCS(0), len(jobs)))
	for worker := range errs {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(jobs)); i = next.Add(1) - 1 {
				if errs[worker] = jobs[i](); errs[worker] != nil {
					next.Store(int64(len(jobs)))
					return
				}
				if n := done.Add(1); progress != nil {
					progress(int(n), len(jobs))
				}
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
