package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/workload"
)

// A Place is the place for the copies of files of the jobs of one process, or of several processes
// on one machine: a Folder on a disk, and the space that they may take there. A nil Place belongs
// to a run without staged jobs.
type Place struct {
	parent string // of the folder
	quota  int64  // bytes; 0: no quota
	device string // of the folder, "" if there is no device or it is not known
	folder *Folder
	found  []Leftover // of other runs
}

// job returns the first staged job of works, nil if no job is staged.
func job(works []workload.Work) *workload.Job {
	for _, w := range works {
		if w.Kind == workload.JobWork && w.Job != nil && w.Job.Access == workload.Staged {
			return w.Job
		}
	}
	return nil
}

// Default returns the folder that a batch system gives the job that this process is part of, or the system's for
// temporary files.
func Default(env func(string) string) string {
	for _, name := range []string{"_CONDOR_SCRATCH_DIR", "SLURM_TMPDIR", "TMPDIR"} {
		if dir := env(name); dir != "" {
			return dir
		}
	}
	return os.TempDir()
}

// OpenPlace makes the folder for so many copies of the staged jobs of works, after it has removed
// the copies that killed processes have left in the same folder. It returns nil if no job is
// staged. The caller closes it.
func OpenPlace(works []workload.Work, copies int) (*Place, error) {
	j := job(works)
	if j == nil {
		return nil, nil
	}
	parent := j.Scratch
	if parent == "" {
		parent = Default(os.Getenv)
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	p := &Place{parent: parent, quota: int64(j.Quota), device: On(parent).Device, found: Clear(parent)}
	if p.folder, err = Open(parent, copies); err != nil {
		reason := err
		if at := (*fs.PathError)(nil); errors.As(err, &at) {
			reason = at.Err
		}
		return nil, fmt.Errorf("workload.job.scratch: the copies of staged jobs cannot go to %s: %w: name a folder that exists and that "+
			"you may write to", parent, reason)
	}
	return p, nil
}

// Close removes the folder, and the folders that killed processes have left beside it meanwhile.
func (p *Place) Close() error {
	if p == nil {
		return nil
	}
	err := p.folder.Close()
	Clear(p.parent)
	return err
}

// Path returns the folder for the copies, "" for a nil Place.
func (p *Place) Path() string {
	if p == nil {
		return ""
	}
	return p.folder.Path()
}

// Quota returns the number of bytes that the copies on this machine may take at once, 0 for no
// limit but the disk.
func (p *Place) Quota() int64 {
	if p == nil {
		return 0
	}
	return p.quota
}

// About returns the folder and the disk of the copies, nil for a nil Place.
func (p *Place) About() *measure.Scratch {
	if p == nil {
		return nil
	}
	d := On(p.parent)
	return &measure.Scratch{Folder: p.parent, Device: d.Device, Filesystem: d.Filesystem, Free: max(d.Free, 0)}
}

// Device returns the block device of the copies, "" if there is no device or it is not known. It
// costs nothing: the monitor calls it each second.
func (p *Place) Device() string {
	if p == nil {
		return ""
	}
	return p.device
}

// Leftovers returns sentences about the folders of other processes that were found. Folders in use
// are included if inUse is true.
func (p *Place) Leftovers(inUse bool) (all []string) {
	if p == nil {
		return nil
	}
	for _, l := range p.found {
		if inUse || !l.InUse {
			all = append(all, l.String())
		}
	}
	return all
}

// Warnings returns sentences about the disk for the reader of the results: that the file system has
// no known disk, and that the copies of so many clients at once do not fit. A full disk may be the
// purpose of the test.
func (p *Place) Warnings(clients int, files []workload.File) (all []string) {
	if p == nil {
		return nil
	}
	switch d := On(p.parent); {
	case d.Device != "" || d.Filesystem == "":
	case d.Filesystem == "tmpfs" || d.Filesystem == "ramfs":
		all = append(all, fmt.Sprintf("copies of files go to %s, which is memory (%s): there is no scratch disk whose load could be seen",
			p.parent, d.Filesystem))
	default:
		all = append(all, fmt.Sprintf("copies of files go to %s, a file system of kind %s: which disk that is, and its load, is not known",
			p.parent, d.Filesystem))
	}
	if text := Crowded(clients, Largest(files), On(p.parent).Free, p.quota); text != "" {
		all = append(all, p.parent+": "+text)
	}
	return all
}

// Refuse returns an error if not even one copy of the largest file fits on the disk, or into the quota: all jobs that
// draw such a file would fail.
func (p *Place) Refuse(files []workload.File) error {
	if p == nil {
		return nil
	}
	largest, free := Largest(files), On(p.parent).Free
	switch {
	case free >= 0 && largest > free:
		return fmt.Errorf("workload.job.scratch: a job copies up to %s, and %s has only %s free: free some space or name a folder on a larger "+
			"disk", unit.Bytes(float64(largest)), p.parent, unit.Bytes(float64(free)))
	case p.quota > 0 && largest > p.quota:
		return fmt.Errorf("workload.job.scratch_quota: a job copies up to %s, and all copies on one machine may take %s: use a larger quota or "+
			"smaller files", unit.Bytes(float64(largest)), unit.Bytes(float64(p.quota)))
	}
	return nil
}

// Largest returns the size of the largest of files, 0 if no size is known.
func Largest(files []workload.File) (bytes int64) {
	for i := range files {
		bytes = max(bytes, files[i].Size)
	}
	return bytes
}

// Crowded returns a sentence if copies of up to largest bytes of so many clients at once need more
// than is free on their disk (negative: not known) or more than the quota (0: no quota), and "" if
// they fit.
func Crowded(clients int, largest, free, quota int64) string {
	need, has := float64(clients)*float64(largest), "there are %s free"
	if quota > 0 && (free < 0 || quota <= free) {
		free, has = quota, "the quota is %s"
	}
	if free < 0 || need <= float64(free) {
		return ""
	}
	return fmt.Sprintf("%s with a copy of up to %s each need %s, and "+has+": jobs that find it full fail",
		say.Plural(clients, "client"), unit.Bytes(float64(largest)), unit.Bytes(need), unit.Bytes(float64(free)))
}
