package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// Parse reads the content of campaign.json.
func Parse(b []byte) (*Campaign, error) {
	c := new(Campaign)
	if err := json.Unmarshal(b, c); err != nil {
		return nil, err
	}
	if c.Version < 1 || c.Version > Version {
		return nil, fmt.Errorf("version %d, this program reads 1 to %d: use a newer weir", c.Version, Version)
	}
	return c, c.check()
}

// check returns an error if c is inconsistent, so that readers of a campaign need no checks of
// their own.
func (c *Campaign) check() error {
	for i, f := range c.Factors {
		if f.Key == "" || len(f.Levels) == 0 {
			return fmt.Errorf("factor %d has no key, or no levels", i+1)
		}
		if distinct(f.Levels) < len(f.Levels) {
			return fmt.Errorf("factor %s has a level twice", f.Key)
		}
		if slices.ContainsFunc(c.Factors[:i], func(g Factor) bool { return g.Key == f.Key }) {
			return fmt.Errorf("factor %s is there twice", f.Key)
		}
	}
	dirs := map[string]int{}
	for i := range c.Runs {
		r := &c.Runs[i]
		if err := c.checkRun(r); err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
		if other, ok := dirs[filepath.Clean(r.Dir)]; ok {
			return fmt.Errorf("runs %d and %d share the folder %q", other, i+1, r.Dir)
		}
		dirs[filepath.Clean(r.Dir)] = i + 1
	}
	return nil
}

func (c *Campaign) checkRun(r *Run) error {
	if r.Block < 1 || r.Number < 1 {
		return fmt.Errorf("number %d and block %d must be 1 or more", r.Number, r.Block)
	}
	if r.Variant == "" {
		return errors.New("variant is missing")
	}
	if !filepath.IsLocal(r.Dir) || filepath.Clean(r.Dir) == "." {
		return fmt.Errorf("dir %q is not a folder below the campaign's", r.Dir)
	}
	for _, f := range c.Factors {
		if level, ok := r.Levels[f.Key]; !ok || !slices.Contains(f.Levels, level) {
			return fmt.Errorf("level %q of factor %s is none of %q", level, f.Key, f.Levels)
		}
	}
	if len(r.Levels) > len(c.Factors) {
		return fmt.Errorf("%d levels for %d factors", len(r.Levels), len(c.Factors))
	}
	return nil
}

func distinct(words []string) int {
	return len(slices.Compact(slices.Sorted(slices.Values(words))))
}
