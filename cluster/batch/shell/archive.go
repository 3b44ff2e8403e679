package shell

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"weir/cluster/batch"
)

// outputs are the names of what is brought back of each worker.
func outputs(sub *batch.Submission) []string {
	return append([]string{"stdout", "stderr"}, sub.Brings...)
}

// pack writes all that travels to a machine as an archive.
func pack(out io.Writer, w *batch.Work, sub *batch.Submission) error {
	t := tar.NewWriter(out)
	if err := addFile(t, "weir", w.Program, 0o700); err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "files/", Mode: 0o700}); err != nil {
		return err
	}
	for _, f := range w.Files {
		if err := addFile(t, "files/"+filepath.Base(f), f, 0o600); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{".run": runScript(w.Args), ".bring": bringScript(outputs(sub))} {
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
			return err
		}
		if _, err := io.WriteString(t, text); err != nil {
			return err
		}
	}
	return t.Close()
}

func addFile(t *tar.Writer, name, from string, mode int64) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: info.Size(), ModTime: info.ModTime()}); err != nil {
		return err
	}
	_, err = io.CopyN(t, f, info.Size())
	return err
}

// unpack takes what workers have left from an archive into the folders for it, and
// nothing else: names from elsewhere are not trusted.
func unpack(in io.Reader, sub *batch.Submission, workers []int) error {
	names := outputs(sub)
	for t := tar.NewReader(in); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		dir, name := path.Split(path.Clean(h.Name))
		n, err := strconv.Atoi(path.Clean(dir))
		if err != nil || h.Typeflag != tar.TypeReg || !slices.Contains(workers, n) || !slices.Contains(names, name) {
			return fmt.Errorf("unexpected %q among the outputs", h.Name)
		}
		if err := keep(t, sub.Out(n), name); err != nil {
			return err
		}
	}
}

func keep(in io.Reader, dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}
