package results

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Discard removes the files of a run that ended before its load from dir, and dir and its parents
// up to top, which the run made, if they are empty; "" is no folder. It removes nothing if dir has
// measurements, other files, or a manifest with files that are still on the target.
func Discard(dir, top string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains([]string{PlanFile, AboutFile, IntervalsFile, HostsFile, EventsFile, ManifestFile}, e.Name()) {
			return nil
		}
	}
	for _, name := range []string{IntervalsFile, HostsFile} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Size() > 0 {
			return nil
		}
	}
	if left, err := leftIn(dir); err != nil || left > 0 {
		return err
	}
	for _, e := range entries {
		err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
	}
	if err == nil {
		RemoveEmpty(dir, top)
	}
	return err
}

// RemoveEmpty removes dir and its parents up to top if they are empty.
func RemoveEmpty(dir, top string) {
	for top != "" && (dir == top || strings.HasPrefix(dir, top+string(filepath.Separator))) && os.Remove(dir) == nil {
		dir = filepath.Dir(dir)
	}
}

// leftIn returns the number of files of dir's manifest that were not removed.
func leftIn(dir string) (int, error) {
	if _, err := os.Lstat(filepath.Join(dir, ManifestFile)); err != nil {
		return 0, nil //nolint:nilerr // there is no manifest
	}
	m, err := OpenManifest(dir)
	if err != nil {
		return 0, err
	}
	left, err := m.Left()
	return len(left), errors.Join(err, m.Close())
}

// Missing returns the topmost folder that must be made for dir to exist, "" if dir exists.
func Missing(dir string) (top string) {
	for {
		if _, err := os.Lstat(dir); err == nil {
			return top
		}
		top = dir
		parent := filepath.Dir(dir)
		if parent == dir {
			return top
		}
		dir = parent
	}
}
