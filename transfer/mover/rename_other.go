//go:build !linux

package mover

import (
	"errors"
	"io/fs"
	"os"
)

// rename gives a part its name, never instead of another file: its error is
// fs.ErrExist then.
func (m *Mover) rename(_, _ *os.File, part, name string) error {
	err := m.linked(part, name)
	if errors.Is(err, fs.ErrExist) {
		return fs.ErrExist
	}
	return local("give the file its name", err)
}
