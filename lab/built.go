package lab

import (
	"fmt"
	"os"
	"path/filepath"
)

// built is the folder build/NAME of the source tree that we are in, or that our
// program was built in, if it is complete: then it has a file NAME.txt.
func built(name string) (string, error) {
	var starts []string
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	for _, dir := range starts {
		for ; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				made := filepath.Join(dir, "build", name)
				if _, err := os.Stat(filepath.Join(made, name+".txt")); err == nil {
					return made, nil
				}
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", fmt.Errorf("no folder build/%s in the source tree: make needs makes it", name)
}
