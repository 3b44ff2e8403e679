// Package labtest starts the systems of package lab for tests, and finds the programs that tests use.
package labtest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/ports"
	"weir/internal/tier"
	"weir/lab"
)

// Need skips t when a program is not on this machine and names the package that has it, or fails it as [tier.Without]
// does. With -short, a test that needs a program is skipped unless WEIR_REQUIRE is set: the short tests use the embedded
// servers only.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	if len(programs) > 0 {
		tier.Slow(t, "uses "+strings.Join(programs, ", "))
	}
	for _, p := range programs {
		if _, err := lab.Find(p); err != nil {
			tier.Without(t, p, err.Error())
		}
	}
}

// A System is a system that Start has started: *lab.System, or a type that has one.
type System interface {
	Log() string
	Stop() error
}

// A Config is the configuration of a system of type S.
type Config[S System] interface {
	Needs() []string // programs
	Start(ctx context.Context) (S, error)
}

// Start starts a system for a test: the test needs the programs of the system (see Need), fails if the system does not
// come up, and stops it at its end.
func Start[S System](t testing.TB, c Config[S]) S {
	t.Helper()
	Need(t, c.Needs()...)
	s, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("last log lines of %T:\n%s", c, s.Log())
		}
		if err := s.Stop(); err != nil {
			t.Errorf("stop of %T: %v", c, err)
		}
	})
	return s
}

// Use sets the environment in which programs use s for the test and all that it starts, by Setenv: it is not for tests
// that run in parallel.
func Use(t testing.TB, s *lab.System) {
	t.Helper()
	for _, v := range s.Env {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
}

// Get returns the body of the answer to a GET of url. It fails t unless the status is 200.
func Get(t testing.TB, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v: %s", url, resp.Status, err, text)
	}
	return string(text)
}

// Address reserves a port until the test ends and returns its address on 127.0.0.1: a server of the test can listen
// there, end and listen there again, and nothing else gets the port in between.
func Address(t testing.TB) string {
	t.Helper()
	p, err := ports.Reserve("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Free)
	return p.Address()
}

// PeakMemory returns the most memory that this process has had, in MiB. t fails if the system does not report it.
func PeakMemory(t testing.TB) int64 {
	t.Helper()
	n, err := lab.StatusBytes(os.Getpid(), "VmHWM:")
	if err != nil {
		t.Fatal(err)
	}
	return n >> 20
}

// Python returns the folder with python3 and the programs of the Python packages that tests use (lab/python.txt,
// installed by `make needs`). Without them it skips t, or fails it, as Need does.
func Python(t testing.TB) string { return packages(t, "python") }

// FTS returns the Python for FTS's own commands (fts-rest-transfer-submit and others) and Rucio, of
// lab/fts.txt.
func FTS(t testing.TB) string { return packages(t, "fts") }

// Schemathesis returns the Python for the program that tests an API by its OpenAPI description, of
// lab/schemathesis.txt, installed by `make needs-full`. It returns the path of the program.
func Schemathesis(t testing.TB) string {
	return filepath.Join(packages(t, "schemathesis"), "schemathesis")
}

// packages returns the folder of the programs of Python packages.
func packages(t testing.TB, name string) string {
	t.Helper()
	Need(t, "python3")
	made, err := lab.Built(name)
	if err != nil {
		tier.Without(t, name, "the Python packages of lab/"+name+".txt are missing: "+err.Error())
	}
	return filepath.Join(made, "bin")
}

// XRootDs returns the versions of XRootD that tests run on: this system's, and in the full tier all others.
func XRootDs() []string {
	if tier.IsFull() {
		return append([]string{""}, lab.XRootDVersions()...)
	}
	return []string{""}
}

// ListingServers returns the names of [lab.FolderConfig] without WebDAV that tests run on. Tomcat and h2o belong to the
// full tier.
func ListingServers() []string {
	return firstOf(lab.ListingServers(), "h2o", "tomcat")
}

// WebDAVServers returns the names of the systems with WebDAV that tests run on.
func WebDAVServers() []string { return firstOf(lab.WebDAVServers(), "tomcat") }

// S3Servers returns the S3 services that tests run on: the gateway of Versity and, in the full tier, s3proxy.
func S3Servers() []string { return firstOf(lab.S3Servers(), "s3proxy") }

// firstOf returns all names except the names of the full tier, unless that tier is chosen.
func firstOf(names []string, full ...string) []string {
	if tier.IsFull() {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(full, name) })
}
