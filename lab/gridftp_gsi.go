package lab

import (
	"context"
	"path/filepath"
	"testing"
)

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

func (s *System) gridftpWithProxies(program string) error {
	account, err := s.account()
	if err != nil {
		return err
	}
	// The server is not root, so it can only map clients to its own user.
	s.Auth, s.User = "gsi", account.Username
	if err := s.private("client"); err != nil {
		return err
	}
	cert, key, err := s.certificate(true, nil)
	if err != nil {
		return err
	}
	s.Env = append(s.Env, "X509_CERT_DIR="+s.CADir)
	s.set("ca_dir", s.CADir)
	var v xrootdValues // what XRootD would be told
	if err := s.gsi(&v); err != nil {
		return err
	}
	s.Data = filepath.Join(s.Dir, "data")
	if err := s.mkdir(s.Data); err != nil {
		return err
	}
	p, err := s.port(false)
	if err != nil {
		return err
	}
	s.URL = "gsiftp://" + p.local() + s.Data
	s.URLs = map[string]string{"gsiftp": s.URL}
	s.env = append(s.env, "X509_USER_CERT="+cert, "X509_USER_KEY="+key, "X509_CERT_DIR="+s.CADir, "GRIDMAP="+filepath.Join(s.Dir, "grid-mapfile"))
	return s.part("gridftp", askFTP(p.address()), program,
		"-c", "/dev/null", "-disable-usage-stats",
		"-port", p.String(), "-control-interface", "127.0.0.1", "-data-interface", "127.0.0.1", "-hostname", "localhost",
		"-home-dir", s.Data, "-log-level", "ERROR,WARN")
}
