package lab

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Need skips t when a program is not on this machine and names the package that has it. If the variable WEIR_REQUIRE
// is "all" or lists the program, the test fails instead: required programs are never skipped. With -short, a test that
// needs a program is skipped unless WEIR_REQUIRE is set: the short tests use the embedded servers only.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	if len(programs) > 0 {
		Slow(t, "uses "+strings.Join(programs, ", "))
	}
	for _, p := range programs {
		if _, err := find(p); err != nil {
			Without(t, p, err.Error())
		}
	}
}

// StatusBytes returns an amount of memory of a process in bytes: what is its name in /proc/PID/status, such as "VmRSS:".
func StatusBytes(pid int, what string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, what); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no %s", what)
}

// PeakMemory returns the most memory that this process has had, in MiB. t fails if the system does not say.
func PeakMemory(t testing.TB) int64 {
	t.Helper()
	n, err := StatusBytes(os.Getpid(), "VmHWM:")
	if err != nil {
		t.Fatal(err)
	}
	return n >> 20
}

// Slow skips t, which takes seconds, with -short unless WEIR_REQUIRE is set. why is the reason.
func Slow(t testing.TB, why string) {
	t.Helper()
	if short() {
		t.Skip(why + ": left out with -short")
	}
}

// FullTier skips t unless the full tier of tests is chosen, by the variable WEIR_TIER: `make test-full` sets it to "full". why says what
// t adds to the first tier; CONTRIBUTING.md lists it.
func FullTier(t testing.TB, why string) {
	t.Helper()
	if !Full() {
		t.Skip(why + ": part of the full tier (WEIR_TIER=full)")
	}
}

// Quiet is FullTier for a test whose verdict needs a machine that does nothing else. cmd/suite runs such tests last, one at a time: it
// sets WEIR_PHASE to "waiting" before.
func Quiet(t testing.TB, why string) {
	t.Helper()
	FullTier(t, why)
	if os.Getenv("WEIR_PHASE") == "waiting" {
		t.Skip(why + ": it runs after the tests that wait")
	}
}

// Full reports whether the full tier of tests is chosen.
func Full() bool { return os.Getenv("WEIR_TIER") == "full" }

func short() bool { return testing.Short() && os.Getenv("WEIR_REQUIRE") == "" }

// Main runs the tests of a package that wait more than they compute, 16 of them at a time with -short, unless -parallel says
// otherwise. Its result is for os.Exit.
func Main(m *testing.M) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if short() && !given {
		if err := flag.Set("test.parallel", "16"); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

// Without skips t, which needs something other than a program that this machine may not have; why is the reason. If
// WEIR_REQUIRE is "all" or lists what, the test fails instead, as with Need.
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

// The Start functions start a system for a test: the test needs the programs of the system (see Need), fails if the
// system does not come up, and stops it at its end.

// StartNginx starts [Nginx] for a test.
func StartNginx(t testing.TB, c NginxConfig) *System { return startFor(t, c) }

// StartXRootD starts [XRootD] for a test.
func StartXRootD(t testing.TB, c XRootDConfig) *System { return startFor(t, c) }

// StartHTCondor starts [HTCondor] for a test.
func StartHTCondor(t testing.TB, c HTCondorConfig) *System { return startFor(t, c) }

// StartSlurm starts [Slurm] for a test.
func StartSlurm(t testing.TB, c SlurmConfig) *System { return startFor(t, c) }

// StartKubernetes starts [Kubernetes] for a test.
func StartKubernetes(t testing.TB, c KubernetesConfig) *System { return startFor(t, c) }

// StartSSH starts [SSH] for a test.
func StartSSH(t testing.TB, c SSHConfig) *System { return startFor(t, c) }

// StartGridFTP starts [GridFTP] for a test.
func StartGridFTP(t testing.TB, c GridFTPConfig) *System { return startFor(t, c) }

// StartProFTPD starts [ProFTPD] for a test.
func StartProFTPD(t testing.TB, c ProFTPDConfig) *System { return startFor(t, c) }

// StartPostgreSQL starts [PostgreSQL] for a test.
func StartPostgreSQL(t testing.TB, c PostgreSQLConfig) *System { return startFor(t, c) }

// StartRabbitMQ starts [RabbitMQ] for a test.
func StartRabbitMQ(t testing.TB, c RabbitMQConfig) *System { return startFor(t, c) }

// StartArtemis starts [Artemis] for a test.
func StartArtemis(t testing.TB, c ArtemisConfig) *System { return startFor(t, c) }

// StartKeycloak starts [Keycloak] for a test.
func StartKeycloak(t testing.TB, c KeycloakConfig) *System { return startFor(t, c) }

// StartRucio starts [Rucio] for a test.
func StartRucio(t testing.TB, c RucioConfig) *System { return startFor(t, c) }

// StartS3 starts [S3Config] for a test.
func StartS3(t testing.TB, c S3Config) *System { return startFor(t, c) }

// StartPrometheus starts [Prometheus] for a test.
func StartPrometheus(t testing.TB, c PrometheusConfig) *System { return startFor(t, c) }

// StartInfluxDB starts [InfluxDB] for a test.
func StartInfluxDB(t testing.TB, c InfluxConfig) *System { return startFor(t, c) }

// StartListing starts one of the ListingServers for a test.
func StartListing(t testing.TB, server string) *System {
	return startFor(t, folderServer{name: server})
}

// StartWebDAV starts one of the WebDAVServers for a test. URLs has "http", and with apache2 "https".
func StartWebDAV(t testing.TB, server string) *System {
	return startFor(t, folderServer{name: server, dav: true})
}

// StartFTP starts one of the FTPServers for a test.
func StartFTP(t testing.TB, server string) *System { return startFor(t, ftpServer{name: server}) }

func startFor(t testing.TB, c starter) *System {
	t.Helper()
	Need(t, c.needs()...)
	s, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("last log lines of %s:\n%s", s.Name, s.Log())
		}
		if err := s.Stop(); err != nil {
			t.Errorf("stop %s: %v", s.Name, err)
		}
	})
	return s
}

// Use sets the environment in which programs use s for the test and all that it starts, by Setenv: it is not for
// tests that run in parallel.
func (s *System) Use(t testing.TB) {
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

// Python returns the folder with python3 and the programs of the Python packages that tests use (python.txt,
// installed by `make needs`). Without them it skips t, or fails it, as Need does.
func Python(t testing.TB) string {
	t.Helper()
	Need(t, "python3")
	made, err := built("python")
	if err != nil {
		Without(t, "python", "the Python packages of lab/python.txt are missing: "+err.Error())
	}
	return filepath.Join(made, "bin")
}

// Schemathesis returns the path of the program that tests an API by its OpenAPI description (schemathesis.txt, installed by
// `make needs-full`). Without it it skips t, or fails it, as Need does.
func Schemathesis(t testing.TB) string {
	t.Helper()
	Need(t, "python3")
	made, err := built("schemathesis")
	if err != nil {
		Without(t, "schemathesis", "the Python packages of lab/schemathesis.txt are missing: "+err.Error())
	}
	return filepath.Join(made, "bin", "schemathesis")
}

// FTS returns the folder with python3, FTS's own commands (fts-rest-transfer-submit and others) and Rucio, of the Python packages of
// fts.txt, installed by `make needs`. Without them it skips t, or fails it, as Need does.
func FTS(t testing.TB) string {
	t.Helper()
	Need(t, "python3")
	made, err := built("fts")
	if err != nil {
		Without(t, "fts", "the Python packages of lab/fts.txt are missing: "+err.Error())
	}
	return filepath.Join(made, "bin")
}
