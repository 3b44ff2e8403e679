package lab

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// PostgreSQLConfig configures a PostgreSQL; its zero value is a valid configuration.
type PostgreSQLConfig struct {
	Config
	// Careless leaves out all that a crash of the machine, not of the server, would need: for tests, which become
	// faster.
	Careless bool
	Settings []string // "name=value" of PostgreSQL's own settings
}

// Start starts a PostgreSQL server with its own database cluster, in UTF-8 with the locale C. URL is the address of
// its database postgres for its superuser, whose password is generated; the server listens on loopback only. Env has
// the variables of psql and other clients. Debian's own cluster is not touched.
func (c PostgreSQLConfig) Start(ctx context.Context) (*System, error) {
	c.Ready = cmp.Or(c.Ready, time.Minute)
	c.as = nobody
	return c.launch(ctx, "postgresql", "postgres", func(s *System, program string) { c.build(ctx, s, program) }, "run")
}

// nobody is an account of every Debian: initdb needs a user with a name.
const nobody = 65534

func (c PostgreSQLConfig) build(ctx context.Context, s *System, program string) {
	p := s.newPort(false)
	password := rand.Text()
	s.URL = (&url.URL{Scheme: "postgres", User: url.UserPassword("weir", password), Host: p.Address(), Path: "/postgres",
		RawQuery: "sslmode=disable"}).String()
	s.URLs["postgres"] = s.URL
	data := filepath.Join(s.Dir, "cluster")
	c.initdb(ctx, s, data, s.file("password", []byte(password+"\n")))
	ready := s.program(c.Config, "pg_isready")
	s.Env = append(s.Env, "PGHOST=127.0.0.1", "PGPORT="+p.String(), "PGUSER=weir", "PGPASSWORD="+password, "PGDATABASE=postgres")
	argv := []string{program, "-D", data, "-h", "127.0.0.1", "-p", p.String(), "-k", "", "-c", "logging_collector=off", "-c",
		"max_connections=200"}
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
	// After SIGINT it ends its sessions; by SIGTERM it waits for them.
	server.end = syscall.SIGINT
	if s.err == nil {
		home, err := filepath.EvalSymlinks(data)
		s.fail(err)
		server.home = home
	}
}

// initdb makes the cluster, as the user that the server will run as, and removes the file with the password.
func (c PostgreSQLConfig) initdb(ctx context.Context, s *System, data, password string) {
	argv := []string{s.program(c.Config, "initdb"), "-D", data, "-U", "weir", "--pwfile=" + password, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C"}
	if c.Careless {
		argv = append(argv, "--no-sync")
	}
	s.tool(ctx, s.user, nil, argv...)
	if s.err == nil {
		s.fail(os.Remove(password))
	}
}

// findPostgres looks for a program of the newest PostgreSQL, which Debian keeps out of PATH.
func findPostgres(name string) (string, bool) {
	found, _ := filepath.Glob(filepath.Join("/usr/lib/postgresql/*/bin", name))
	slices.Sort(found) // of two digits each
	if len(found) == 0 {
		return "", false
	}
	return found[len(found)-1], true
}

// Needs returns the programs that it needs.
func (PostgreSQLConfig) Needs() []string { return []string{"postgres", "initdb", "pg_isready"} }

//go:embed prometheus.yml
var prometheusYML string

//go:embed influxdb.conf
var influxConf string

// PrometheusConfig configures a Prometheus; its zero value is a valid configuration.
type PrometheusConfig struct {
	Config
	Scrape []string      // host:port of pages at /metrics that it fetches
	Token  string        // bearer token for the pages; may be empty
	Every  time.Duration // interval; 0 means 1 s
	Blocks string        // folder of initial blocks, which are copied; may be empty
}

// Start starts a Prometheus server that takes remote write. URL is its own address; URLs has "write", where remote
// write goes.
func (c PrometheusConfig) Start(ctx context.Context) (*System, error) {
	return c.launch(ctx, "prometheus", "prometheus", func(s *System, program string) { c.build(s, program) }, "data")
}

func (c PrometheusConfig) build(s *System, program string) {
	p := s.newPort(false)
	s.URL = "http://" + p.Address()
	s.URLs["write"] = s.URL + "/api/v1/write"
	if c.Every <= 0 {
		c.Every = time.Second
	}
	conf := s.config("prometheus.yml", prometheusYML, c)
	data := filepath.Join(s.Dir, "data")
	if c.Blocks != "" && s.err == nil {
		s.fail(copyIn(s, data, c.Blocks))
	}
	s.part("prometheus", askHTTP(s.URL+"/-/ready", "Ready"), program, "--config.file="+conf, "--storage.tsdb.path="+data,
		"--storage.tsdb.retention.time=100y", "--web.listen-address="+p.Address(), "--web.enable-remote-write-receiver", "--log.level=warn")
}

// copyIn copies a folder into one of s.
func copyIn(s *System, to, from string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(to, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && s.user >= 0 {
			err = os.Chown(path, s.user, s.user)
		}
		return err
	})
}

// InfluxConfig configures an InfluxDB; its zero value is a valid configuration.
type InfluxConfig struct {
	Config
}

// Start starts an InfluxDB 1.x server without databases. URL is its address.
func (c InfluxConfig) Start(ctx context.Context) (*System, error) {
	return c.launch(ctx, "influxdb", "influxd", buildInflux, "meta", "data", "wal")
}

func buildInflux(s *System, program string) {
	web, rpc := s.newPort(false), s.newPort(false) // rpc: backup and restore
	s.URL = "http://" + web.Address()
	conf := s.config("influxdb.conf", influxConf, map[string]string{"Dir": s.Dir, "Web": web.Address(), "RPC": rpc.Address()})
	s.part("influxd", askHTTP(s.URL+"/query?q=SHOW+DATABASES", "results"), program, "-config", conf)
}

// Needs returns the programs that it needs.
func (PrometheusConfig) Needs() []string { return []string{"prometheus"} }

// Needs returns the programs that it needs.
func (InfluxConfig) Needs() []string { return []string{"influxd"} }
