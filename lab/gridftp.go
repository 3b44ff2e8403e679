package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// GridFTPConfig says which GridFTP service is wanted; its zero value is a good one.
type GridFTPConfig struct {
	Config
	IPv6 bool // one server, at [::1] instead of 127.0.0.1
	// Servers is the number of servers behind HAProxy, at most MaxServers; 0
	// means one server that stands alone.
	Servers     int
	Connections int // that each server takes at once; 0 means 1000
	// Loopback has all servers send their data by the loopback interface, also
	// where each could have an interface of its own.
	Loopback bool
}

// GridFTP starts one GridFTP server that lets everyone in without
// credentials, or several with the same files behind HAProxy (see balanced). URL
// is an ftp:// URL of the full path of Data: such a server shows paths as they
// are, but no folder outside Data.
//
// Clients must send TYPE I before PASV, or get text with changed line ends;
// curl does not.
func GridFTP(ctx context.Context, c GridFTPConfig) (*System, error) {
	if c.TLS {
		return nil, errors.New("lab: gridftp: TLS is not offered here: leave it off")
	}
	if c.Servers < 0 || c.Servers > MaxServers {
		return nil, fmt.Errorf("lab: gridftp: %d servers: use 0 (one server alone) to %d", c.Servers, MaxServers)
	}
	return c.launch(ctx, "gridftp", "globus-gridftp-server", func(s *System, program string) { s.gridftp(c, program) })
}

// needs are the programs of a service like this one.
func (c GridFTPConfig) needs() []string {
	switch {
	case c.Servers == 0:
		return []string{"globus-gridftp-server"}
	case c.Loopback || !canWire():
		return []string{"globus-gridftp-server", "haproxy"}
	default:
		return []string{"globus-gridftp-server", "haproxy", "mount", "setpriv"}
	}
}

func (s *System) gridftp(c GridFTPConfig, program string) {
	s.account() // the server wants an entry in passwd for the user that it runs under
	s.Data = s.newDir("data")
	if c.Connections <= 0 {
		c.Connections = 1000
	}
	p := s.newPort(false)
	host := "127.0.0.1"
	if c.IPv6 {
		host = "::1"
	}
	address := net.JoinHostPort(host, p.String())
	s.URL = "ftp://" + address + s.Data
	s.URLs = map[string]string{"ftp": s.URL}
	if c.Servers > 0 {
		s.balanced(c, program, p)
		return
	}
	s.part("gridftp", askFTP(address), append([]string{program}, s.gridftpArgs(c, Server{Address: address, DataAddress: host})...)...)
}

// gridftpArgs are the arguments of a server.
func (s *System) gridftpArgs(c GridFTPConfig, server Server) []string {
	host, port, _ := net.SplitHostPort(server.Address)
	name := "localhost"
	if server.Interface != "" {
		name = server.Name // which it knows, being a host of its own
	}
	return []string{
		"-aa", "-c", "/dev/null", "-disable-usage-stats",
		"-port", port, "-control-interface", host, "-data-interface", server.DataAddress, "-hostname", name,
		"-connections-max", fmt.Sprint(c.Connections),
		"-home-dir", s.Data, "-restrict-paths", s.Data,
		"-log-level", "ERROR,WARN",
	}
}

// GridFTPWithProxies starts one GridFTP server that lets in who has a grid
// proxy: Proxy, CADir, Env and Settings say with what. URL is a gsiftp:// URL of
// the full path of Data, which all may read and write that are let in.
func GridFTPWithProxies(ctx context.Context, c Config) (*System, error) {
	return c.launch(ctx, "gridftp", "globus-gridftp-server", (*System).gridftpWithProxies)
}

// StartGridFTPWithProxies is GridFTPWithProxies for a test, as StartNginx is Nginx.
func StartGridFTPWithProxies(t testing.TB, c Config) *System {
	t.Helper()
	return startFor(t, []string{"globus-gridftp-server"}, func(ctx context.Context) (*System, error) { return GridFTPWithProxies(ctx, c) })
}

func (s *System) gridftpWithProxies(program string) {
	// The server is not root, so it can only map clients to its own user.
	s.Auth, s.User = "gsi", s.account().Username
	s.private("client")
	cert, key := s.certificate(true, nil)
	s.Env = append(s.Env, "X509_CERT_DIR="+s.CADir)
	s.set("ca_dir", s.CADir)
	var v xrootdValues // what XRootD would be told
	s.gsi(&v)
	s.Data = s.newDir("data")
	p := s.newPort(false)
	s.URL = "gsiftp://" + p.local() + s.Data
	s.URLs = map[string]string{"gsiftp": s.URL}
	s.env = append(s.env, "X509_USER_CERT="+cert, "X509_USER_KEY="+key, "X509_CERT_DIR="+s.CADir, "GRIDMAP="+filepath.Join(s.Dir, "grid-mapfile"))
	s.part("gridftp", askFTP(p.address()), program,
		"-c", "/dev/null", "-disable-usage-stats",
		"-port", p.String(), "-control-interface", "127.0.0.1", "-data-interface", "127.0.0.1", "-hostname", "localhost",
		"-home-dir", s.Data, "-log-level", "ERROR,WARN")
}

// askFTP returns a question that is answered when the server at address
// greets with 220.
func askFTP(address string) question {
	return func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		if deadline, ok := ctx.Deadline(); ok {
			_ = conn.SetDeadline(deadline)
		}
		line, err := bufio.NewReaderSize(conn, 512).ReadString('\n')
		if err != nil {
			return err
		}
		if !strings.HasPrefix(line, "220") {
			return fmt.Errorf("%s greets with %q", address, line)
		}
		_, err = conn.Write([]byte("QUIT\r\n"))
		return err
	}
}
