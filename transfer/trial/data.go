package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/internal/adler"
	"weir/internal/content"
	"weir/internal/pause"
	"weir/transfer"
)

// A File is a file to create: its bytes follow from its name.
type File struct {
	Name string // such as /store/run1/f1
	Size int64
	Like string // name of a file of this size with the same bytes; "": it has its own
}

// Files returns n files of one size in a dataset, with the names DATASET/file-0001 and so on.
func Files(dataset string, n int, size int64) []File {
	var all []File
	for i := range n {
		all = append(all, File{Name: fmt.Sprintf("%s/file-%04d", dataset, i+1), Size: size})
	}
	return all
}

// Fill creates files at a site.
func (t *Trial) Fill(site string, files []File) error {
	for _, f := range files {
		if _, err := f.write(filepath.Join(t.Root(site), filepath.FromSlash(f.Name))); err != nil {
			return err
		}
	}
	return nil
}

// write creates the file and returns its checksum.
func (f File) write(path string) (sum string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return "", err
	}
	to, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	digest, buffer := adler.New(), make([]byte, 1<<20)
	for at := int64(0); at < f.Size; {
		part := buffer[:min(int64(len(buffer)), f.Size-at)]
		content.Fill(part, f.seed(), at)
		if _, err := to.Write(part); err != nil {
			return "", err
		}
		_, _ = digest.Write(part)
		at += int64(len(part))
	}
	return adler.Text(digest.Sum32()), nil
}

// seed returns the FNV-1a hash of the name (Fowler, Noll, Vo: draft-eastlake-fnv).
func (f File) seed() uint64 {
	sum, name := uint64(14695981039346656037), cmp.Or(f.Like, f.Name)
	for i := range len(name) {
		sum = (sum ^ uint64(name[i])) * 1099511628211
	}
	return sum
}

// Right returns an error unless a site has the file in the form in which Fill creates it.
func (t *Trial) Right(site string, f File) error {
	from, err := os.Open(filepath.Join(t.Root(site), filepath.FromSlash(f.Name)))
	if err != nil {
		return err
	}
	defer from.Close()
	buffer := make([]byte, 1<<20)
	at := int64(0)
	for {
		n, err := from.Read(buffer)
		if !content.Equal(buffer[:n], f.seed(), at) {
			return fmt.Errorf("%s at %s differs at bytes %d to %d", f.Name, site, at, at+int64(n))
		}
		at += int64(n)
		if err != nil {
			break // the end of the file, or the comparison of the size reports the error
		}
	}
	if at != f.Size {
		return fmt.Errorf("%s at %s has %d bytes, not %d", f.Name, site, at, f.Size)
	}
	return nil
}

// lookEvery is the interval between polls of the coordinator.
const lookEvery = 50 * time.Millisecond

// Add makes a dataset of the files in a site's folder of that name, and waits until its checksums
// are known.
func (t *Trial) Add(ctx context.Context, dataset, site string) error {
	c, err := t.Client()
	if err != nil {
		return err
	}
	scan := transfer.NewScan{Dataset: dataset, Site: site, Path: strings.Trim(dataset, "/")}
	state, err := c.FollowScan(ctx, scan, func(transfer.ScanState) {})
	if err == nil && len(state.Problem) > 0 {
		err = fmt.Errorf("dataset %s at %s: %s", dataset, site, strings.Join(state.Problem, "; "))
	}
	return err
}

// Submit requests a dataset, approves it and returns the number of the request.
func (t *Trial) Submit(ctx context.Context, s transfer.Submission) (int64, error) {
	c, err := t.Client()
	if err != nil {
		return 0, err
	}
	s.Approve = true
	r, err := c.Submit(ctx, s)
	return r.ID, err
}

// Wait waits until a request has ended, even if the coordinator is down for a time, and returns its
// manifest.
func (t *Trial) Wait(ctx context.Context, id int64) (transfer.Manifest, error) {
	c, err := t.Client()
	if err != nil {
		return transfer.Manifest{}, err
	}
	for {
		if r, err := c.Request(ctx, id); err == nil && r.Status.Ended() {
			if m, err := c.Manifest(ctx, id); err == nil {
				return m, nil
			}
		}
		if !pause.For(ctx, lookEvery) {
			return transfer.Manifest{}, ctx.Err()
		}
	}
}
