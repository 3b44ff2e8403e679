package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/engine/scratch"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/results"
	"weir/scenario"
	"weir/workload"
)

// copies are where the copies of staged jobs go. It is nil if a run has none.
type copies struct {
	parent string // of the run's folder
	folder *scratch.Folder
	found  []scratch.Leftover // of other runs
}

// openCopies makes the folder for the copies of a plan's staged jobs, after it
// has removed those that killed runs have left in the same place.
func openCopies(p *scenario.Plan) (*copies, error) {
	job := p.Work.Job
	if p.Work.Kind != workload.JobWork || job == nil || job.Access != workload.Staged {
		return nil, nil
	}
	parent := job.Scratch
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	c := &copies{parent: parent, found: scratch.Clear(parent)}
	if c.folder, err = scratch.Open(parent, p.MostClients()); err != nil {
		reason := err
		if at := (*fs.PathError)(nil); errors.As(err, &at) {
			reason = at.Err
		}
		return nil, fmt.Errorf("workload.job.scratch: the copies of staged jobs cannot go to %s: %w: name a folder that exists and that "+
			"you may write to", parent, reason)
	}
	return c, nil
}

// Close removes the run's folder.
func (c *copies) Close() error {
	if c == nil {
		return nil
	}
	return c.folder.Close()
}

// path returns the run's folder, "" for none.
func (c *copies) path() string {
	if c == nil {
		return ""
	}
	return c.folder.Path()
}

// about says where copies go, nil for nowhere.
func (c *copies) about() *results.Scratch {
	if c == nil {
		return nil
	}
	d := scratch.On(c.parent)
	return &results.Scratch{Folder: c.parent, Device: d.Device, Filesystem: d.Filesystem, Free: max(d.Free, 0)}
}

// warnings are sentences about the disk for the reader of the results: what was
// found there, which disk it is not, and whether the copies of all clients fit.
func (c *copies) warnings(clients int, files []workload.File) (all []string) {
	if c == nil {
		return nil
	}
	for _, l := range c.found {
		all = append(all, l.String())
	}
	switch d := scratch.On(c.parent); {
	case d.Device != "" || d.Filesystem == "":
	case d.Filesystem == "tmpfs" || d.Filesystem == "ramfs":
		all = append(all, fmt.Sprintf("copies of files go to %s, which is memory (%s): there is no scratch disk whose load could be seen",
			c.parent, d.Filesystem))
	default:
		all = append(all, fmt.Sprintf("copies of files go to %s, a file system of kind %s: which disk that is, and its load, is not known",
			c.parent, d.Filesystem))
	}
	if text := c.room(clients, files); text != "" {
		all = append(all, text)
	}
	return all
}

// room returns a warning if the copies of all clients at once do not fit; "" if
// they do, or if it is not known. A full disk may be what is tested.
func (c *copies) room(clients int, files []workload.File) string {
	var largest int64
	for i := range files {
		largest = max(largest, files[i].Size)
	}
	need, free := float64(clients)*float64(largest), scratch.On(c.parent).Free
	if free < 0 || need <= float64(free) {
		return ""
	}
	return fmt.Sprintf("%s with a copy of up to %s each need %s, and %s has %s free: jobs that find it full fail",
		say.Plural(clients, "client"), unit.Bytes(float64(largest)), unit.Bytes(need), c.parent, unit.Bytes(float64(free)))
}
