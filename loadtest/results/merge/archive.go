package merge

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/durable"
	"weir/internal/tarfile"
	"weir/loadtest/results"
)

// Ending is that of the names of files that Pack makes.
const Ending = ".tar.gz"

// files are what is recorded of a run, and all that is packed: the rest can be
// made again.
func files() []string {
	return []string{results.AboutFile, results.PlanFile, results.IntervalsFile, results.HostsFile, results.EventsFile, results.ManifestFile}
}

// Bounds of what is unpacked: lines of JSON become ten to thirty times as long.
const (
	mostRatio = 300
	mostBytes = 1 << 36
	freeBytes = 64 << 20 // that any archive may have
)

// Pack writes the run directory dir as one file, whole or not at all.
func Pack(dir, file string) error {
	return durable.WriteFunc(file, 0o644, func(w io.Writer) error {
		zip := gzip.NewWriter(w)
		out := tar.NewWriter(zip)
		for _, name := range files() {
			err := tarfile.AddFile(out, filepath.Join(dir, name), tar.Header{Name: name, Mode: 0o644, Format: tar.FormatPAX})
			if err != nil && (name != results.ManifestFile || !errors.Is(err, fs.ErrNotExist)) { // runs that only read have none
				return err
			}
		}
		return errors.Join(out.Close(), zip.Close())
	})
}

// Unpack makes dir, which must not exist, of a file that Pack wrote, or of a run
// directory that somebody packed with tar, whole or not at all. What it holds
// besides the record of one run is passed over.
func Unpack(file, dir string) (err error) {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: %s", file, info.Mode())
	}
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s: %w", dir, fs.ErrExist)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".*")
	if err != nil {
		return err
	}
	if err := unpack(in, min(info.Size()*mostRatio+freeBytes, mostBytes), temp); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", file, err), os.RemoveAll(temp))
	}
	if err := errors.Join(os.Chmod(temp, 0o755), os.Rename(temp, dir)); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return nil
}

// unpack writes what in has into dir, at most so many bytes.
func unpack(in io.Reader, most int64, dir string) error {
	zip, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("no packed run: %w", err)
	}
	var seen []string
	folder := "" // of the run, in the archive
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("not whole, or no packed run: %w", err)
		}
		in, name := path.Split(h.Name)
		of := slices.Contains(files(), name)
		if most -= h.Size; h.Size < 0 || most < 0 {
			return fmt.Errorf("%q in it has %d bytes, far more than the lines of a run would have in so small a file: it was not unpacked",
				h.Name, h.Size)
		}
		switch {
		case !filepath.IsLocal(h.Name):
			return fmt.Errorf("it holds %q, which is no file of a run: it was not unpacked", h.Name)
		case !of:
			continue // can be made again, or is somebody else's
		case h.Typeflag != tar.TypeReg:
			return fmt.Errorf("%q in it is no regular file: it was not unpacked", h.Name)
		case len(seen) > 0 && in != folder:
			return fmt.Errorf("it holds %q besides %q: pack each run by itself", in+name, folder+seen[0])
		case slices.Contains(seen, name):
			return fmt.Errorf("%s is in it twice: it was not unpacked", name)
		}
		folder, seen = in, append(seen, name)
		if err := unpackFile(r, filepath.Join(dir, name), h.Size); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(zip, freeBytes)); err != nil { // its checksum stands at the end
		return fmt.Errorf("not whole: %w", err)
	}
	var missing []string
	for _, name := range files()[:5] {
		if !slices.Contains(seen, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not a whole run: %s missing", strings.Join(missing, ", "))
	}
	return nil
}

func unpackFile(in io.Reader, path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, in, size)
	return errors.Join(err, f.Close())
}
