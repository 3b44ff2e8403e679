package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// GridFTPConfig says which GridFTP server is wanted; its zero value is a good one.
type GridFTPConfig struct {
	Config
	Connections int // that the server takes at once; 0 means 1000
}

// GridFTP starts one GridFTP server that lets everyone in without
// credentials. URL is an ftp:// URL of the full path of Data: such a server
// shows paths as they are, but no folder outside Data.
//
// Clients must send TYPE I before PASV, or get text with changed line ends;
// curl does not.
func GridFTP(ctx context.Context, c GridFTPConfig) (*System, error) {
	if c.TLS {
		return nil, errors.New("lab: gridftp: TLS is not offered here: leave it off")
	}
	return c.launch(ctx, "gridftp", "globus-gridftp-server", func(s *System, program string) error { return s.gridftp(c, program) })
}

func (s *System) gridftp(c GridFTPConfig, program string) error {
	// The server wants an entry in passwd for the user that it runs under.
	if s.user >= 0 {
		nobody, err := user.Lookup("nobody")
		if err != nil {
			return fmt.Errorf("lab: gridftp: a plain user to run under: %w", err)
		}
		if s.user, err = strconv.Atoi(nobody.Uid); err != nil {
			return fmt.Errorf("lab: gridftp: user nobody: %w", err)
		}
	}
	s.Data = filepath.Join(s.Dir, "data")
	if err := s.mkdir(s.Data); err != nil {
		return err
	}
	p, err := s.port(false)
	if err != nil {
		return err
	}
	s.URL = "ftp://" + p.address() + s.Data
	s.URLs = map[string]string{"ftp": s.URL}
	connections := c.Connections
	if connections <= 0 {
		connections = 1000
	}
	return s.part("gridftp", askFTP(p.address()), program,
		"-aa", "-c", "/dev/null", "-disable-usage-stats",
		"-port", p.String(), "-control-interface", "127.0.0.1", "-data-interface", "127.0.0.1", "-hostname", "localhost",
		"-connections-max", fmt.Sprint(connections),
		"-home-dir", s.Data, "-restrict-paths", s.Data,
		"-log-level", "ERROR,WARN")
}

// askFTP returns a question that is answered when the server at address
// greets with 220.
func askFTP(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // nothing was written that matters
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
