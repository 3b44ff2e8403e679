package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// PostgreSQLConfig says which PostgreSQL is wanted; its zero value is a good one.
type PostgreSQLConfig struct {
	Config
	// Careless leaves out all that a crash of the machine, not of the server,
	// would need: for tests, which become faster.
	Careless bool
	Settings []string // "name=value" of PostgreSQL's own settings
}

// PostgreSQL starts a PostgreSQL server with a database cluster of its own, in
// UTF-8 with the locale C. URL is the address of its database postgres for its
// superuser, whose password is made for this server alone; it listens on
// loopback only. Env has what psql and other clients find it by. Debian's own
// cluster has nothing to do with it.
func PostgreSQL(ctx context.Context, c PostgreSQLConfig) (*System, error) {
	if c.TLS {
		return nil, errors.New("lab: postgresql: TLS is not offered here: leave it off")
	}
	if c.Ready <= 0 {
		c.Ready = time.Minute // the cluster's first files are synced to disk
	}
	c.as = nobody
	return c.launch(ctx, "postgresql", "postgres", func(s *System, program string) { s.postgres(ctx, c, program) }, "run")
}

// nobody is a user that every Debian has: initdb wants one with a name.
const nobody = 65534

func (s *System) postgres(ctx context.Context, c PostgreSQLConfig, program string) {
	p := s.newPort(false)
	password := rand.Text()
	s.URL = (&url.URL{Scheme: "postgres", User: url.UserPassword("weir", password), Host: p.address(), Path: "/postgres", RawQuery: "sslmode=disable"}).String()
	s.URLs["postgres"] = s.URL
	data := filepath.Join(s.Dir, "cluster")
	s.initdb(ctx, c, data, s.file("password", []byte(password+"\n")))
	ready := s.program(c.Config, "pg_isready")
	s.Env = append(s.Env, "PGHOST=127.0.0.1", "PGPORT="+p.String(), "PGUSER=weir", "PGPASSWORD="+password, "PGDATABASE=postgres")
	argv := []string{program, "-D", data, "-h", "127.0.0.1", "-p", p.String(), "-k", "", "-c", "logging_collector=off", "-c", "max_connections=200"}
	settings := c.Settings
	if c.Careless {
		settings = append([]string{"fsync=off", "full_page_writes=off"}, settings...)
	}
	for _, set := range settings {
		argv = append(argv, "-c", set)
	}
	server := s.part("postgres", func(ctx context.Context) error {
		return exec.CommandContext(ctx, ready, "-q", "-h", "127.0.0.1", "-p", p.String()).Run()
	}, argv...)
	// Asked to end by SIGINT it ends its sessions; by SIGTERM it waits for them.
	server.end = syscall.SIGINT
	if s.err == nil {
		home, err := filepath.EvalSymlinks(data)
		s.fail(err)
		server.home = home
	}
}

// initdb makes the cluster, as the user that the server will run as, and removes the file with the password.
func (s *System) initdb(ctx context.Context, c PostgreSQLConfig, data, password string) {
	argv := []string{s.program(c.Config, "initdb"), "-D", data, "-U", "weir", "--pwfile=" + password, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"}
	if c.Careless {
		argv = append(argv, "--no-sync")
	}
	s.tool(ctx, s.user, nil, argv...)
	if s.err == nil {
		s.fail(os.Remove(password))
	}
}

// findPostgres looks for a program of the newest PostgreSQL, which Debian keeps
// out of PATH.
func findPostgres(name string) (string, bool) {
	found, _ := filepath.Glob(filepath.Join("/usr/lib/postgresql/*/bin", name))
	slices.Sort(found) // of two digits each
	if len(found) == 0 {
		return "", false
	}
	return found[len(found)-1], true
}

func postgresPrograms() []string { return []string{"postgres", "initdb", "pg_isready"} }

// StartPostgreSQL is PostgreSQL for a test, as StartNginx is Nginx.
func StartPostgreSQL(t testing.TB, c PostgreSQLConfig) *System {
	t.Helper()
	return startFor(t, postgresPrograms(), func(ctx context.Context) (*System, error) { return PostgreSQL(ctx, c) })
}
