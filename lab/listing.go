package lab

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"testing"
)

// ListingServers are the servers that serve a folder without WebDAV, each with a
// listing for browsers: the values that Listing takes.
func ListingServers() []string { return []string{"apache2", "caddy", "lighttpd", "python3", "rclone"} }

//go:embed listing.conf
var listingConf string

// Listing starts one of the ListingServers. It serves Data read-only, with ranges
// where the server has them (python3 has none). URLs has "http".
func Listing(ctx context.Context, server string, c Config) (*System, error) {
	return c.launch(ctx, server, server, func(s *System, program string) error { return s.listing(server, program) }, "root/data", "tmp", "home")
}

// StartListing is Listing for a test, as StartNginx is Nginx.
func StartListing(t testing.TB, server string) *System {
	t.Helper()
	return startFor(t, []string{server}, func(ctx context.Context) (*System, error) { return Listing(ctx, server, Config{}) })
}

func (s *System) listing(server, program string) error {
	p, err := s.port(false)
	if err != nil {
		return err
	}
	s.Data = filepath.Join(s.Dir, "root/data")
	s.URL = "http://" + p.address() + "/data"
	s.URLs["http"] = s.URL
	argv, err := s.listingCommand(server, program, p)
	if err != nil {
		return err
	}
	s.env = append(s.env, "XDG_DATA_HOME="+filepath.Join(s.Dir, "home"), "XDG_CONFIG_HOME="+filepath.Join(s.Dir, "home"))
	return s.part(server, askHTTP(s.URL+"/", ""), argv...)
}

func (s *System) listingCommand(server, program string, p *port) ([]string, error) {
	root := filepath.Join(s.Dir, "root")
	switch server {
	case "python3":
		return []string{program, "-m", "http.server", p.String(), "--bind", "127.0.0.1", "--directory", root}, nil
	case "rclone":
		return []string{program, "serve", "http", "--config", "", "--dir-cache-time", "1ns", "--addr", p.address(), root}, nil
	}
	conf, err := render(listingConf, map[string]string{"Server": server, "Dir": s.Dir, "Root": root, "Port": p.String()})
	if err != nil {
		return nil, err
	}
	path, err := s.write(server+".conf", conf)
	if err != nil {
		return nil, err
	}
	switch server {
	case "apache2":
		return []string{program, "-X", "-f", path}, nil
	case "lighttpd":
		return []string{program, "-D", "-f", path}, nil
	case "caddy":
		return []string{program, "run", "--config", path, "--adapter", "caddyfile"}, nil
	}
	return nil, fmt.Errorf("lab: server %q: use one of %v", server, ListingServers())
}
