package lab

import (
	"context"
	_ "embed"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

//go:embed prometheus.yml
var prometheusYML string

//go:embed influxdb.conf
var influxConf string

// PrometheusConfig says which Prometheus is wanted; its zero value is a good one.
type PrometheusConfig struct {
	Config
	Scrape []string      // host:port of pages at /metrics that it fetches
	Every  time.Duration // how often; 0 means 1 s
	Blocks string        // folder of blocks to begin with, which are copied; "" is none
}

// Prometheus starts a Prometheus server that takes remote write. URL is its
// own address; URLs has "write", where remote write goes.
func Prometheus(ctx context.Context, c PrometheusConfig) (*System, error) {
	return c.launch(ctx, "prometheus", "prometheus", func(s *System, program string) { s.prometheus(c, program) }, "data")
}

func (s *System) prometheus(c PrometheusConfig, program string) {
	p := s.newPort(false)
	s.URL = "http://" + p.address()
	s.URLs["write"] = s.URL + "/api/v1/write"
	if c.Every <= 0 {
		c.Every = time.Second
	}
	conf := s.config("prometheus.yml", prometheusYML, c)
	data := filepath.Join(s.Dir, "data")
	if c.Blocks != "" && s.err == nil {
		s.fail(s.copyIn(data, c.Blocks))
	}
	s.part("prometheus", askHTTP(s.URL+"/-/ready", "Ready"), program, "--config.file="+conf, "--storage.tsdb.path="+data, "--storage.tsdb.retention.time=100y",
		"--web.listen-address="+p.address(), "--web.enable-remote-write-receiver", "--log.level=warn")
}

// copyIn copies a folder into one of s.
func (s *System) copyIn(to, from string) error {
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

// InfluxConfig says which InfluxDB is wanted; its zero value is a good one.
type InfluxConfig struct {
	Config
}

// InfluxDB starts an InfluxDB 1.x server without databases. URL is its address.
func InfluxDB(ctx context.Context, c InfluxConfig) (*System, error) {
	return c.launch(ctx, "influxdb", "influxd", (*System).influx, "meta", "data", "wal")
}

func (s *System) influx(program string) {
	web, rpc := s.newPort(false), s.newPort(false) // rpc: backup and restore
	s.URL = "http://" + web.address()
	conf := s.config("influxdb.conf", influxConf, map[string]string{"Dir": s.Dir, "Web": web.address(), "RPC": rpc.address()})
	s.part("influxd", askHTTP(s.URL+"/query?q=SHOW+DATABASES", "results"), program, "-config", conf)
}

// StartPrometheus is Prometheus for a test, as StartNginx is Nginx.
func StartPrometheus(t testing.TB, c PrometheusConfig) *System {
	t.Helper()
	return startFor(t, []string{"prometheus"}, func(ctx context.Context) (*System, error) { return Prometheus(ctx, c) })
}

// StartInfluxDB is InfluxDB for a test, as StartNginx is Nginx.
func StartInfluxDB(t testing.TB, c InfluxConfig) *System {
	t.Helper()
	return startFor(t, []string{"influxd"}, func(ctx context.Context) (*System, error) { return InfluxDB(ctx, c) })
}
