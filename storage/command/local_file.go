package command

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"weir/storage"
)

// vacate makes sure that op's Dest can be made, and that a program finds no file
// there: some refuse to write to what there is.
func vacate(op *storage.Op) error {
	d, err := op.OpenDest()
	if err == nil {
		err = d.Close(nil)
	}
	if err != nil {
		return err
	}
	info, err := os.Lstat(op.Dest)
	if err == nil && info.Mode().IsRegular() {
		err = os.Remove(op.Dest)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", storage.ErrScratch, err)
	}
	return nil
}

// blame says so if the disk of this machine is why a program that wrote to dest
// failed, or brought too little: its words tell, those of the C library or of
// curl, or no more goes to what it wrote. (xrdcp 5.5 and gfal-copy end with
// status 0 on a full disk, and without a word.)
func blame(err error, dest string) error {
	if errors.Is(err, storage.ErrShort) {
		if why := stuck(dest); why != nil {
			return fmt.Errorf("%w: %w: %w", storage.ErrScratch, why, err)
		}
		return err
	}
	var e *exitError
	if !errors.As(err, &e) {
		return err
	}
	text := strings.ToLower(e.text)
	for _, words := range []string{
		"no space left", "quota exceeded", "file too large", "read-only file system",
		"failure writing output", "failed writing body", "failed to open the file",
	} {
		if strings.Contains(text, words) {
			return fmt.Errorf("%w: %s: %w", storage.ErrScratch, dest, err)
		}
	}
	return err
}

// stuck tells why nothing more goes to the end of a file, nil if something does;
// the file stays as it was.
func stuck(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil // it is not there: nobody knows
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	_, err = f.Write(make([]byte, 64<<10)) // more than is left of its last block
	if terr := f.Truncate(info.Size()); err == nil {
		err = terr
	}
	return err
}
