package lab

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed xrootd-*.txt
var xrootdPackages embed.FS

// XRootDVersions returns the versions that `make needs-full` unpacks in addition to this system's
// version, oldest first: the values, besides "", of XRootDConfig.Version. Each has a file
// xrootd-VERSION.txt.
func XRootDVersions() []string {
	files, _ := xrootdPackages.ReadDir(".") // sorted, and always there
	var all []string
	for _, f := range files {
		all = append(all, strings.TrimSuffix(strings.TrimPrefix(f.Name(), "xrootd-"), ".txt"))
	}
	return all
}

// findXRootD returns the folder into which a version was unpacked, and the full version: of "6",
// "6.2" and "6.2.0" the same. They are "" for this system's own version.
func findXRootD(version string) (root, full string, err error) {
	is := func(full string) bool { return full == version || strings.HasPrefix(full, version+".") }
	var have []string
	if path, err := Find("xrootd"); err == nil {
		said, _ := exec.Command(path, "-v").CombinedOutput()
		full := strings.TrimPrefix(strings.TrimSpace(string(said)), "v")
		if is(full) {
			return "", "", nil
		}
		have = append(have, full)
	}
	for _, v := range XRootDVersions() {
		dir, err := Built("xrootd-" + v)
		if err != nil {
			if is(v) {
				return "", "", &MissingError{Program: "xrootd " + version, Target: "needs-full"}
			}
			continue
		}
		names, err := os.ReadFile(filepath.Join(dir, "packages"))
		if err != nil {
			return "", "", err
		}
		_, rest, _ := strings.Cut(string(names), "xrootd-server_")
		full, _, ok := strings.Cut(rest, "-")
		if ok && is(full) {
			return dir, full, nil
		}
		have = append(have, full)
	}
	if len(have) == 0 {
		return "", "", &MissingError{Program: "xrootd " + version, Target: "needs"}
	}
	return "", "", fmt.Errorf("there is no XRootD %s: use one of %s", version, strings.Join(have, ", "))
}

// commands returns the commands of an XRootD's programs, by name.
func (c XRootDConfig) commands(s *System, xrootd string) map[string][]string {
	if c.root != "" {
		if s.err != nil {
			return nil
		}
		programs, err := unpackedPrograms(s, c.root, "xrootd", "cmsd")
		s.fail(err)
		return programs
	}
	programs := map[string][]string{"xrootd": {xrootd}}
	if c.Servers > 0 {
		programs["cmsd"] = []string{s.program(c.Config, "cmsd")}
	}
	return programs
}

// unpackedPrograms returns commands that run programs of a folder that unpack.sh has made, with the
// libraries that are there: the loader is called by each program's name, so that its process has
// that name. Files that the servers' user cannot access are copied.
func unpackedPrograms(s *System, root string, programs ...string) (map[string][]string, error) {
	loaders, _ := filepath.Glob(filepath.Join(root, "lib*/ld-linux-*"))
	libraries, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*"))
	if len(loaders) == 0 || len(libraries) == 0 {
		return nil, fmt.Errorf("lab: folder %s has no loader, or no libraries: remove it, and run make needs", root)
	}
	loader, lib, at := loaders[0], libraries[0], map[string]string{}
	for _, p := range programs {
		if at[p] = filepath.Join(root, "usr/bin", p); !isFile(at[p]) {
			at[p] = filepath.Join(root, "usr/sbin", p)
		}
	}
	here := filepath.Join(s.Dir, "programs")
	if err := s.mkdir(here); err != nil {
		return nil, err
	}
	if reaches(s, lib) != nil {
		to := filepath.Join(here, "copies")
		err := errors.Join(os.Mkdir(to, 0o755), copyFiles(lib, filepath.Join(to, "lib")), copyFile(loader, filepath.Join(to, "loader")))
		for p, from := range at {
			at[p] = filepath.Join(to, p)
			err = errors.Join(err, copyFile(from, at[p]))
		}
		if err != nil {
			return nil, err
		}
		loader, lib = filepath.Join(to, "loader"), filepath.Join(to, "lib")
	}
	all := map[string][]string{}
	for _, p := range programs {
		called := filepath.Join(here, p)
		if err := os.Symlink(loader, called); err != nil {
			return nil, err
		}
		all[p] = []string{called, "--library-path", lib, at[p]}
	}
	return all, nil
}

// copyFiles copies the files of a folder, without its folders.
func copyFiles(from, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(from, e.Name()))
		if err != nil || info.IsDir() {
			continue // a link to a file that was not unpacked
		}
		if err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}
