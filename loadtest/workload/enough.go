package workload

import (
	"errors"
	"fmt"

	"weir/internal/say"
	"weir/storage"
)

// ErrSizes is wrapped by errors about files of unknown size, for work that depends on it.
var ErrSizes = errors.New("sizes of files are not known")

// Moves reports whether clients remove or rename their own files or folders.
func Moves(w Work) bool {
	ops := choose(w)
	return ops.has(storage.Remove) || ops.has(storage.Move)
}

// NeedsSizes reports whether the reads of w depend on the sizes of the files: the positions of the
// parts of a file, and the position in it at which a job begins.
func NeedsSizes(w Work) bool {
	if w.Kind == JobWork {
		return w.Job != nil && w.Job.Access != Staged
	}
	if w.Kind == CopyWork { // the bytes of a copy are known by its size
		return true
	}
	return w.Part != nil && choose(w).has(storage.Read)
}

// UsesSizes reports whether w uses sizes: if NeedsSizes does, for reads in chunks, whose clients
// would otherwise request the sizes during the load, and for staged jobs, which would otherwise
// copy files that are too small for them.
func UsesSizes(w Work) bool {
	return NeedsSizes(w) || w.Kind == JobWork || w.Chunk > 0 && choose(w).has(storage.Read)
}

// Enough returns nil if the files are sufficient for w. Its error wraps ErrSizes if w needs sizes
// that are not known. Otherwise it reports that each file is too small for a job, or that no file
// has a byte of which a part could be read.
func Enough(w Work, files []File) error {
	if !UsesSizes(w) || len(files) == 0 {
		return nil
	}
	unknown, first, most := 0, "", int64(-1)
	for i := range files {
		if files[i].Size < 0 {
			if unknown++; unknown == 1 {
				first = files[i].Path
			}
		}
		most = max(most, files[i].Size)
	}
	switch {
	case unknown > 0 && NeedsSizes(w):
		return fmt.Errorf("%w: %d of %s, the first is %.200q", ErrSizes, unknown, say.Plural(len(files), "file"), first)
	case unknown > 0:
		return nil
	case w.Kind == JobWork && w.Job != nil && !w.Job.fits(most):
		return fmt.Errorf("workload.job: a job goes through %d events of %v, and the largest of the %s holds %s: "+
			"use larger files, or fewer events",
			w.Job.Events, w.Job.Event, say.Plural(len(files), "file"), say.Plural(int(most/int64(w.Job.Event)), "event"))
	case w.Part != nil && most == 0:
		return fmt.Errorf("workload.part: parts are read of files with content, and the %s are empty: use other files",
			say.Plural(len(files), "file"))
	}
	return nil
}

// Small returns the number of files that are too small for all parts of a read of w: reads of them
// request fewer parts, a smaller part, or no part. It is 0 if w reads whole files.
func Small(w Work, files []File) int {
	if w.Part == nil || !choose(w).has(storage.Read) {
		return 0
	}
	small := 0
	for i := range files {
		if size := files[i].Size; size >= 0 && size/int64(w.Part.Size) < int64(max(w.Part.Count, 1)) {
			small++
		}
	}
	return small
}

// probedFiles is the number of files for which a service is probed: it may lack the checksum of
// some.
const probedFiles = 4

// Probes returns operations of w that change nothing, by their kinds: a service that supports no
// operation of a kind cannot carry out w.
func Probes(w Work, files []File) map[storage.Kind][]storage.Op {
	ops := choose(w)
	all := map[storage.Kind][]storage.Op{}
	for i := range min(len(files), probedFiles) {
		f := &files[i*len(files)/min(len(files), probedFiles)]
		for _, k := range []storage.Kind{storage.Stat, storage.Locate, storage.Checksum, storage.List} {
			op := storage.Op{Kind: k, Path: f.Path, Size: f.Size}
			switch k {
			case storage.Checksum:
				op.Sum = w.Sum
			case storage.List:
				op = storage.Op{Kind: k, Path: parent(f.Path)}
			}
			if ops.has(k) {
				all[k] = append(all[k], op)
			}
		}
	}
	return all
}
