package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// built is the folder build/NAME of the source tree that we are in, or that our
// program was built in, if it is complete: then it has a file NAME.txt.
func built(name string) (string, error) {
	var starts []string
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	if _, source, _, ok := runtime.Caller(0); ok && filepath.IsAbs(source) {
		starts = append(starts, filepath.Dir(source))
	}
	for _, dir := range starts {
		for ; ; dir = filepath.Dir(dir) {
			made := filepath.Join(dir, "build", name)
			if isFile(filepath.Join(dir, "go.mod")) && isFile(filepath.Join(made, name+".txt")) {
				return made, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", fmt.Errorf("no folder build/%s in the source tree: make needs makes it", name)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
