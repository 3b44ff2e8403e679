package command

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"weir/internal/lock"
)

// A service's folder is below the system's folder for temporary files. Nobody but
// this user can look into it, so all that is in it comes from the service and
// its programs. The service holds a lock on the folder's manifest, so that a
// folder whose weir was killed is known by its lock being free.
const (
	folderPrefix = "weir-command-"
	manifestName = "manifest"
	manifestText = "this folder, with all that is in it, is of one run of weir and its programs\n"
)

// makeFolder makes a service's folder, after it has removed those that killed
// runs of this user have left. The manifest is to be closed after the folder is gone.
func makeFolder() (dir string, manifest *os.File, err error) {
	clearLeftovers(os.TempDir())
	if dir, err = os.MkdirTemp("", folderPrefix); err != nil {
		return "", nil, err
	}
	if manifest, err = lock.Claim(dir, manifestName, []byte(manifestText)); err != nil {
		return "", nil, errors.Join(err, os.Remove(dir))
	}
	return dir, manifest, nil
}

func clearLeftovers(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // making a folder there will say why
	}
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		if !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		if manifest := abandoned(dir); manifest != nil {
			removeAll(dir)
			_ = manifest.Close() // only held
		}
	}
}

// abandoned returns the manifest of a folder that is this user's and no
// process's any more, locked; nil for all others.
func abandoned(dir string) *os.File {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 || !lock.Mine(info) {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, manifestName), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	text := make([]byte, len(manifestText))
	if lock.Alone(f) == nil {
		if _, err := io.ReadFull(f, text); err == nil && string(text) == manifestText {
			return f
		}
	}
	_ = f.Close() // only read
	return nil
}
