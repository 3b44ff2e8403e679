// Package tarfile adds files to tar archives.
package tarfile

import (
	"archive/tar"
	"io"
	"os"
)

// AddFile adds the file at path. h has its name, its mode and the format; its size and its time are
// taken from the file.
func AddFile(t *tar.Writer, path string, h tar.Header) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Size, h.ModTime = info.Size(), info.ModTime()
	if err := t.WriteHeader(&h); err != nil {
		return err
	}
	_, err = io.CopyN(t, f, h.Size) // also of a file that grows
	return err
}

// AddText adds a file with the given text.
func AddText(t *tar.Writer, name string, text []byte) error {
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
		return err
	}
	_, err := t.Write(text)
	return err
}
