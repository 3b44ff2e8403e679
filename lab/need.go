package lab

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
)

// Need skips t when a program is not on this machine and says which package
// would bring it. Where the variable WEIR_REQUIRE is "all", or lists the
// program, the test fails instead: what is required is never skipped.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := find(p); err != nil {
			Without(t, p, err.Error())
		}
	}
}

// Without skips t, which cannot run without something other than a program
// that this machine may not have; why says so. Where WEIR_REQUIRE is "all", or
// lists what, the test fails instead, as with Need.
func Without(t testing.TB, what, why string) {
	t.Helper()
	if list := os.Getenv("WEIR_REQUIRE"); required(list, what) {
		t.Fatalf("%s (WEIR_REQUIRE=%s)", why, list)
	}
	t.Skip(why)
}

func required(list, what string) bool {
	return list == "all" || slices.Contains(strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }), what)
}

// StartNginx is Nginx for a test: it needs the program, fails t when it does
// not come up, and is stopped when t ends.
func StartNginx(t testing.TB, c NginxConfig) *System {
	t.Helper()
	return startFor(t, []string{"nginx"}, func(ctx context.Context) (*System, error) { return Nginx(ctx, c) })
}

// StartXRootD is XRootD for a test, as StartNginx is Nginx. It needs the
// programs of the authentication, too.
func StartXRootD(t testing.TB, c XRootDConfig) *System {
	t.Helper()
	return startFor(t, c.needs(), func(ctx context.Context) (*System, error) { return XRootD(ctx, c) })
}

// StartHTCondor is HTCondor for a test, as StartNginx is Nginx. It needs what
// `make needs` unpacks.
func StartHTCondor(t testing.TB, c HTCondorConfig) *System {
	t.Helper()
	return startFor(t, condorPrograms(), func(ctx context.Context) (*System, error) { return HTCondor(ctx, c) })
}

// StartSlurm is Slurm for a test, as StartNginx is Nginx.
func StartSlurm(t testing.TB, c SlurmConfig) *System {
	t.Helper()
	return startFor(t, slurmPrograms(), func(ctx context.Context) (*System, error) { return Slurm(ctx, c) })
}

// StartSSH is SSH for a test, as StartNginx is Nginx.
func StartSSH(t testing.TB, c SSHConfig) *System {
	t.Helper()
	return startFor(t, sshPrograms(), func(ctx context.Context) (*System, error) { return SSH(ctx, c) })
}

// StartGridFTP is GridFTP for a test, as StartNginx is Nginx.
func StartGridFTP(t testing.TB, c GridFTPConfig) *System {
	t.Helper()
	return startFor(t, c.needs(), func(ctx context.Context) (*System, error) { return GridFTP(ctx, c) })
}

// Use gives the test, and all that it starts, the environment in which programs
// use s: as Setenv does, so not for tests that run in parallel.
func (s *System) Use(t testing.TB) {
	t.Helper()
	for _, v := range s.Env {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
}

func startFor(t testing.TB, programs []string, start func(context.Context) (*System, error)) *System {
	t.Helper()
	Need(t, programs...)
	s, err := start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what %s said last:\n%s", s.Name, s.Log())
		}
		if err := s.Stop(); err != nil {
			t.Errorf("stop %s: %v", s.Name, err)
		}
	})
	return s
}

// Get returns what a server answers to a GET of url, and fails t unless that is
// a success.
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

// Python returns the folder with python3 and the programs of the Python
// packages that tests use (python.txt, installed by `make needs`). Where they are not there
// it skips t, or fails it, as Need does.
func Python(t testing.TB) string {
	t.Helper()
	made, err := built("python")
	if err != nil {
		Without(t, "python", "the Python packages of lab/python.txt are not there: "+err.Error())
	}
	return filepath.Join(made, "bin")
}
