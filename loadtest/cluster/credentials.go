package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/loadtest/scenario"
	"weir/storage"
)

// A Pass contains the addresses and secrets with which a worker connects to its controller. It is
// transferred with a job as a file that only its user can read, and is never part of a run
// directory.
type Pass struct {
	Run   string   `json:"run"`   // the run that it belongs to
	URLs  []string `json:"urls"`  // https://HOST:PORT of the controller: the first that responds
	Token string   `json:"token"` // the controller's proof that a worker is its own
	Pin   string   `json:"pin"`   // the workers' proof of the controller: its certificate's SHA-256
}

// Write writes the pass to a file of mode 0600, which must not exist yet.
func (p Pass) Write(path string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("pass: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// longestPass is the most bytes of a pass that are read.
const longestPass = 64 << 10

// ReadPass reads a pass that Write has written.
func ReadPass(path string) (p Pass, err error) {
	f, err := os.Open(path)
	if err != nil {
		return p, fmt.Errorf("pass: %w", err)
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, longestPass)).Decode(&p); err != nil {
		return p, fmt.Errorf("pass: %s: %w", filepath.Base(path), err)
	}
	if len(p.URLs) == 0 || p.Token == "" || p.Pin == "" {
		return p, fmt.Errorf("pass: %s: the controller or the token is missing", filepath.Base(path))
	}
	return p, nil
}

// A Bundle is the data that is transferred with workers: the plan as they receive it, and the files
// that it names, most of which are secrets. The files are symbolic links in a private folder, under
// the names that the plan gives them.
type Bundle struct {
	Plan  *scenario.Plan
	Files []string
}

// newBundle links the files for the workers of plan in folder, which it makes for this user only.
// The plan's list of files is not among them: the controller sends each worker its files.
func newBundle(plan *scenario.Plan, folder string) (b Bundle, err error) {
	own := *plan
	ownCredentials(&own.Auth)
	there, files, err := own.Portable()
	if err != nil {
		return b, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return b, err
	}
	if there.Auth.CADir != "" { // a folder cannot be transferred, its files can
		there.Auth.CADir, there.Auth.CAFile = "", "auth_ca_file"
		if err := joinCertificates(filepath.Join(folder, there.Auth.CAFile), files["auth_ca_file"], files["auth_ca_dir"]); err != nil {
			return b, err
		}
		delete(files, "auth_ca_file")
		delete(files, "auth_ca_dir")
		b.Files = append(b.Files, filepath.Join(folder, there.Auth.CAFile))
	}
	there.Files.List = ""
	delete(files, "files_list")
	for name, from := range files {
		to := filepath.Join(folder, name)
		if err := linkReadable(from, to); err != nil {
			return b, err
		}
		b.Files = append(b.Files, to)
	}
	slices.Sort(b.Files)
	b.Plan = there
	return b, nil
}

// linkReadable makes to a symbolic link to from, which must be readable.
func linkReadable(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	_ = f.Close() // opened only to see whether it is readable
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(from, to)
}

// ownCredentials fills in the default files of this user's credentials if the plan names no files:
// workers do not have them.
func ownCredentials(a *storage.Auth) {
	first := func(paths ...string) string {
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path
			}
		}
		return ""
	}
	switch {
	case a.Method == storage.X509Auth && a.CertFile == "" && a.ProxyFile == "":
		a.ProxyFile = first(os.Getenv("X509_USER_PROXY"), fmt.Sprintf("/tmp/x509up_u%d", os.Getuid()))
	case a.Method == storage.KerberosAuth && a.KeytabFile == "" && a.TicketFile == "":
		a.TicketFile = first(strings.TrimPrefix(os.Getenv("KRB5CCNAME"), "FILE:"), fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()))
	}
	if a.Method == storage.KerberosAuth && a.Krb5File == "" {
		a.Krb5File = first(os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf")
	}
}

// joinCertificates writes the certificates of a file, if it is not empty, and of a folder to one
// file.
func joinCertificates(to, file, dir string) error {
	names, err := fs.Glob(os.DirFS(dir), "*.[p0-9]*") // *.pem and the hashed names *.0
	if err != nil {
		return err
	}
	for i := range names {
		names[i] = filepath.Join(dir, names[i])
	}
	if file != "" {
		names = append([]string{file}, names...)
	}
	var all []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a dangling link in the folder
		}
		if err != nil {
			return err
		}
		all = append(append(all, b...), '\n')
	}
	if len(all) == 0 {
		return fmt.Errorf("auth.ca_dir: no certificate authority is in %s", dir)
	}
	return os.WriteFile(to, all, 0o600)
}
