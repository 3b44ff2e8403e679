package storage

import (
	"fmt"
	"io/fs"
	"os"
)

// A LocalFile receives the payload of a read: the file on this machine that Op.Dest names. Its
// errors wrap ErrScratch and the system's error, and name the file. A nil LocalFile discards the
// written bytes. It must not be used by several goroutines at once.
type LocalFile struct{ file *os.File }

// OpenDest creates or truncates the file that o.Dest names, accessible to its owner only. It returns nil if o.Dest
// is empty. The caller closes the file.
func (o *Op) OpenDest() (*LocalFile, error) {
	switch {
	case o.Dest == "":
		return nil, nil
	case o.Kind != Read || o.Ranges != nil:
		return nil, fmt.Errorf("only the payload of a whole file's read can go to %s: %w", o.Dest, fs.ErrInvalid)
	}
	f, err := os.OpenFile(o.Dest, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, scratch(err)
	}
	return &LocalFile{f}, nil
}

// Write appends p.
func (f *LocalFile) Write(p []byte) (int, error) {
	if f == nil {
		return len(p), nil
	}
	n, err := f.file.Write(p)
	return n, scratch(err)
}

// WriteAt writes p at an offset, for payload that arrives out of order.
func (f *LocalFile) WriteAt(p []byte, offset int64) (int, error) {
	if f == nil {
		return len(p), nil
	}
	n, err := f.file.WriteAt(p, offset)
	return n, scratch(err)
}

// Close closes the file after a read that ended with err. It returns err, or, if that is nil, the error of closing.
func (f *LocalFile) Close(err error) error {
	if f == nil {
		return err
	}
	if closing := f.file.Close(); err == nil {
		err = scratch(closing)
	}
	return err
}

// scratch marks an error as one of this machine's disk.
func scratch(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrScratch, err)
}
