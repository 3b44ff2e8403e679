package durable

import (
	"fmt"
	"os"
	"path/filepath"
)

// StateDir returns the folder of that name in weir's part of this user's state (XDG Base Directory
// Specification). It does not create the folder.
func StateDir(name ...string) (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("cannot determine the state directory: %w: set XDG_STATE_HOME", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(append([]string{base, "weir"}, name...)...), nil
}
