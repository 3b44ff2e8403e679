package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/scenario"
)

// Luggage is what travels with workers: the plan as they know it, and the files
// that it names, which are secrets as a rule. The files are links in a private
// folder, named as in the plan.
type luggage struct {
	plan  *scenario.Plan
	files []string
}

// pack prepares what plan's workers need in a folder that only this user can
// read, which is made. list tells whether its list of files is one of them; else
// workers are told the files.
func pack(plan *scenario.Plan, folder string, list bool) (l luggage, err error) {
	own := *plan
	ownCredentials(&own)
	there, files, err := own.Abroad()
	if err != nil {
		return l, exit{exitUsage, err}
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return l, err
	}
	if there.Auth.CADir != "" { // a folder cannot travel, what is in it can
		there.Auth.CADir, there.Auth.CAFile = "", "auth_ca_file"
		if err := bundle(filepath.Join(folder, there.Auth.CAFile), files["auth_ca_file"], files["auth_ca_dir"]); err != nil {
			return l, err
		}
		delete(files, "auth_ca_file")
		delete(files, "auth_ca_dir")
		l.files = append(l.files, filepath.Join(folder, there.Auth.CAFile))
	}
	if !list {
		there.Files.List = ""
		delete(files, "files_list")
	}
	for name, from := range files {
		to := filepath.Join(folder, name)
		if err := linkTo(from, to); err != nil {
			return l, err
		}
		l.files = append(l.files, to)
	}
	slices.Sort(l.files)
	l.plan = there
	return l, nil
}

// linkTo makes to a link to a file that can be read.
func linkTo(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	_ = f.Close() // only tried
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(from, to)
}

// ownCredentials names the files in which this user's credentials are where the
// plan leaves that to the machine: workers have no such files.
func ownCredentials(p *scenario.Plan) {
	a := &p.Auth
	there := func(path string) string {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
		return ""
	}
	switch {
	case a.Method == "x509" && a.CertFile == "" && a.ProxyFile == "":
		a.ProxyFile = there(os.Getenv("X509_USER_PROXY"))
		if a.ProxyFile == "" {
			a.ProxyFile = there(fmt.Sprintf("/tmp/x509up_u%d", os.Getuid()))
		}
	case a.Method == "krb5" && a.KeytabFile == "" && a.TicketFile == "":
		a.TicketFile = there(strings.TrimPrefix(os.Getenv("KRB5CCNAME"), "FILE:"))
		if a.TicketFile == "" {
			a.TicketFile = there(fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()))
		}
	}
	if a.Method == "krb5" && a.Krb5File == "" {
		a.Krb5File = there(os.Getenv("KRB5_CONFIG"))
		if a.Krb5File == "" {
			a.Krb5File = there("/etc/krb5.conf")
		}
	}
}

// bundle writes the certificates of a file, if one is named, and of a folder to
// one file.
func bundle(to, file, dir string) error {
	names, err := filepath.Glob(filepath.Join(escaped(dir), "*.[p0-9]*")) // *.pem and the hashed names *.0
	if err != nil {
		return err
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
