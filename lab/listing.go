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

// WebDAVServers are those that serve a folder by WebDAV without telling checksums,
// beside nginx: the values that WebDAV takes.
func WebDAVServers() []string { return []string{"apache2", "rclone"} }

// Listing starts one of the ListingServers. It serves Data read-only, with ranges
// where the server has them (python3 has none). URLs has "http".
func Listing(ctx context.Context, server string, c Config) (*System, error) {
	return c.folder(ctx, folderServer{name: server})
}

// WebDAV starts one of the WebDAVServers, which lets everybody write to Data. URLs
// has "http".
func WebDAV(ctx context.Context, server string, c Config) (*System, error) {
	return c.folder(ctx, folderServer{name: server, dav: true})
}

// A folderServer serves a folder, read-only or by WebDAV.
type folderServer struct {
	name string
	dav  bool
}

func (c Config) folder(ctx context.Context, f folderServer) (*System, error) {
	return c.launch(ctx, f.name, f.name, func(s *System, program string) { s.folder(f, program) }, "root/data", "tmp", "home")
}

// StartListing is Listing for a test, as StartNginx is Nginx.
func StartListing(t testing.TB, server string) *System {
	t.Helper()
	return startFor(t, []string{server}, func(ctx context.Context) (*System, error) { return Listing(ctx, server, Config{}) })
}

// StartWebDAV is WebDAV for a test, as StartNginx is Nginx.
func StartWebDAV(t testing.TB, server string) *System {
	t.Helper()
	return startFor(t, []string{server}, func(ctx context.Context) (*System, error) { return WebDAV(ctx, server, Config{}) })
}

func (s *System) folder(f folderServer, program string) {
	p := s.newPort(false)
	root := filepath.Join(s.Dir, "root")
	s.Data = filepath.Join(root, "data")
	s.URL = "http://" + p.address() + "/data"
	s.URLs["http"] = s.URL
	s.env = append(s.env, "XDG_DATA_HOME="+filepath.Join(s.Dir, "home"), "XDG_CONFIG_HOME="+filepath.Join(s.Dir, "home"))
	conf := s.config(f.name+".conf", listingConf, map[string]any{"Server": f.name, "DAV": f.dav, "Dir": s.Dir, "Root": root, "Port": p.String()})
	args := map[string][]string{
		"apache2":  {"-X", "-f", conf},
		"caddy":    {"run", "--config", conf, "--adapter", "caddyfile"},
		"lighttpd": {"-D", "-f", conf},
		"python3":  {"-m", "http.server", p.String(), "--bind", "127.0.0.1", "--directory", root},
		"rclone":   {"serve", "http", "--config", "", "--dir-cache-time", "1ns", "--addr", p.address(), root},
	}[f.name]
	if args == nil {
		s.fail(fmt.Errorf("lab: server %q: use one of %v", f.name, ListingServers()))
		return
	}
	if f.name == "rclone" && f.dav {
		args[1] = "webdav"
	}
	s.part(f.name, askHTTP(s.URL+"/", ""), append([]string{program}, args...)...)
}
