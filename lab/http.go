package lab

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"
)

//go:embed nginx.conf
var nginxConf string

// NginxConfig configures an nginx; its zero value is a valid configuration.
type NginxConfig struct {
	Config
	Workers        int    // processes that serve; 0 means 1
	Connections    int    // that each worker can hold; 0 means 4096
	User, Password string // if User is set, /data and /slow require them (basic)
	SlowRate       int    // bytes/s of each answer below /slow; 0 means 1 MiB/s
	Extra          string // lines for the server block, in nginx's own language
	HTTP           string // lines for the http block around it
}

// Start starts nginx as a WebDAV server: GET with ranges, PUT, DELETE, MKCOL, COPY, MOVE, and
// listings in JSON (no PROPFIND: Debian's nginx does not support it).
//
// URLs has "http", with TLS "https", and "slow" (the same files, each response at SlowRate), "code"
// (its folders 401, 403, 404, 429, 500, 503 return that status for all paths below; 444 closes the
// connection without a response) and "status" (nginx's own counters).
func (c NginxConfig) Start(ctx context.Context) (*System, error) {
	return c.launch(ctx, "nginx", "nginx", func(s *System, program string) { c.build(s, program) }, "tmp", "run/nginx")
}

// Needs returns the programs that it needs.
func (NginxConfig) Needs() []string { return []string{"nginx"} }

func (c NginxConfig) build(s *System, program string) {
	s.newDisk("nginx", "root")
	s.Data = s.newDir("root/data")
	v := nginxValues{
		Dir: s.Dir, Workers: max(1, c.Workers), Connections: c.Connections, SlowRate: c.SlowRate, Extra: c.Extra, HTTP: c.HTTP,
		Codes: []int{401, 403, 404, 429, 444, 500, 503},
	}
	if v.Connections <= 0 {
		v.Connections = 4096
	}
	if v.SlowRate <= 0 {
		v.SlowRate = 1 << 20
	}
	v.Files = v.Connections*2 + 64
	v.Plain = s.newPort(false).Address()
	base := "http://" + v.Plain
	s.URL = base + "/data"
	s.URLs = map[string]string{"http": s.URL, "slow": base + "/slow", "code": base + "/code", "status": base + "/status"}
	if c.TLS {
		v.Cert, v.Key = s.certificate(false, nil)
		p := s.newPort(false)
		v.Secure = p.Address()
		s.URLs["https"] = "https://" + p.local() + "/data"
	}
	if c.User != "" {
		if strings.ContainsAny(c.User, ":\n") {
			s.fail(fmt.Errorf("lab: nginx: user %q: a colon or a line's end cannot stand in a user's name", c.User))
		}
		hash := sha1.Sum([]byte(c.Password))
		v.Passwords = s.file("passwords", []byte(c.User+":{SHA}"+base64.StdEncoding.EncodeToString(hash[:])+"\n"))
	}
	conf := s.config("nginx.conf", nginxConf, v)
	s.confine("nginx", s.part("nginx", askHTTP(s.URLs["status"], "Active connections"), program, "-p", s.Dir, "-e", "stderr", "-c", conf))
}

type nginxValues struct {
	Dir, Plain, Secure, Cert, Key, Passwords, Extra, HTTP string
	Workers, Connections, Files, SlowRate                 int
	Codes                                                 []int
}

// askHTTP returns a question that succeeds when a GET of url returns 200 and a body that contains
// word.
func askHTTP(url, word string) question {
	return askHTTPBy(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, url, word)
}

// askHTTPBy works like askHTTP, with the given client.
func askHTTPBy(client *http.Client, url, word string) question {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(word)) {
			return fmt.Errorf("GET %s: %s without %q", url, resp.Status, word)
		}
		return nil
	}
}

// ListingServers returns the names of the servers that serve a folder without WebDAV, each with a listing for browsers.
func ListingServers() []string {
	return []string{"apache2", "caddy", "h2o", "lighttpd", "python3", "rclone", "tomcat"}
}

var (
	//go:embed listing.conf
	listingConf string
	//go:embed server.xml
	tomcatServer string
	//go:embed web.xml
	tomcatFolder string
)

// WebDAVServers returns the names of the systems, besides nginx, that serve a folder by WebDAV
// without checksums.
func WebDAVServers() []string { return []string{"apache2", "rclone", "tomcat"} }

// A FolderConfig is a server that serves a folder by HTTP. One of the ListingServers serves Data read-only, with ranges
// if the server supports them (python3 does not); with WebDAV, one of the WebDAVServers lets everyone write to Data. URLs
// has "http", and with WebDAV of apache2 "https". h2o and tomcat write AccessLog.
type FolderConfig struct {
	Config
	Server string // one of ListingServers, or of WebDAVServers
	WebDAV bool
}

// Needs returns the programs that it needs.
func (f FolderConfig) Needs() []string {
	if f.Server == "tomcat" {
		return []string{"bootstrap.jar", "java"}
	}
	return []string{f.Server}
}

// Start starts the server.
func (f FolderConfig) Start(ctx context.Context) (*System, error) {
	program := f.Needs()[0]
	if f.Server == "tomcat" {
		f.Ready = cmp.Or(f.Ready, time.Minute)
	}
	return f.launch(ctx, f.Server, program, func(s *System, program string) { f.build(s, program) }, "root/data", "tmp", "home", "conf")
}

func (f FolderConfig) build(s *System, program string) {
	p := s.newPort(false)
	root := filepath.Join(s.Dir, "root")
	s.Data = filepath.Join(root, "data")
	s.URL = "http://" + p.Address() + "/data"
	s.URLs["http"] = s.URL
	s.env = append(s.env, "XDG_DATA_HOME="+filepath.Join(s.Dir, "home"), "XDG_CONFIG_HOME="+filepath.Join(s.Dir, "home"))
	v := map[string]any{"Server": f.Server, "DAV": f.WebDAV, "Dir": s.Dir, "Root": root, "Port": p.String()}
	if f.WebDAV && f.Server == "apache2" {
		secure := s.newPort(false)
		v["Cert"], v["Key"] = s.certificate(false, nil)
		v["Secure"], s.URLs["https"] = secure.String(), "https://"+secure.local()+"/data"
	}
	if f.Server == "h2o" || f.Server == "tomcat" {
		s.AccessLog = filepath.Join(s.Dir, "requests")
	}
	if f.Server == "tomcat" {
		s.config("conf/server.xml", tomcatServer, v)
		s.config("conf/web.xml", tomcatFolder, v)
		s.part(f.Server, askHTTP(s.URL+"/", ""), f.tomcat(s)...)
		return
	}
	conf := s.config(f.Server+".conf", listingConf, v)
	args := map[string][]string{
		"apache2":  {"-X", "-f", conf},
		"h2o":      {"--conf", conf},
		"caddy":    {"run", "--config", conf, "--adapter", "caddyfile"},
		"lighttpd": {"-D", "-f", conf},
		"python3":  {"-m", "http.server", p.String(), "--bind", "127.0.0.1", "--directory", root},
		"rclone":   {"serve", "http", "--config", "", "--dir-cache-time", "1ns", "--addr", p.Address(), root},
	}[f.Server]
	if args == nil {
		s.fail(fmt.Errorf("lab: server %q: use one of %v", f.Server, ListingServers()))
		return
	}
	if f.Server == "rclone" && f.WebDAV {
		args[1] = "webdav"
	}
	s.part(f.Server, askHTTP(s.URL+"/", ""), append([]string{program}, args...)...)
}
