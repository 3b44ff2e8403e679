package lab

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// ProFTPDConfig says which plain FTP server is wanted; its zero value is a good one.
type ProFTPDConfig struct {
	Config
	User, Password string // who may log in; "" means ada, and secret
	Clients        int    // connections at once; 0 means 1000
	Old            bool   // without MLST and MLSD, as servers were before RFC 3659
}

// ProFTPD starts ProFTPD, a plain FTP server that wants a password. URL is an
// ftp:// URL of the full path of Data. It has a process for each connection, and
// after one has ended it takes no other for up to 0.4 s.
func ProFTPD(ctx context.Context, c ProFTPDConfig) (*System, error) {
	return c.launch(ctx, "proftpd", "proftpd", func(s *System, program string) error { return s.proftpd(ctx, c, program) })
}

// StartProFTPD is ProFTPD for a test, as StartNginx is Nginx.
func StartProFTPD(t testing.TB, c ProFTPDConfig) *System {
	t.Helper()
	return startFor(t, []string{"proftpd", "openssl"}, func(ctx context.Context) (*System, error) { return ProFTPD(ctx, c) })
}

func (s *System) proftpd(ctx context.Context, c ProFTPDConfig, program string) error {
	account, err := s.account()
	if err != nil {
		return err
	}
	group, err := user.LookupGroupId(account.Gid)
	if err != nil {
		return fmt.Errorf("lab: proftpd: %w", err)
	}
	if s.User = c.User; s.User == "" {
		s.User = userName
	}
	if c.Password == "" {
		c.Password = "secret"
	}
	if c.Clients <= 0 {
		c.Clients = 1000
	}
	s.Data = filepath.Join(s.Dir, "data")
	for _, dir := range []string{s.Data, filepath.Join(s.Dir, "state")} {
		if err := s.mkdir(dir); err != nil {
			return err
		}
	}
	passwords, err := s.ftpPasswords(ctx, c, account)
	if err != nil {
		return err
	}
	p, err := s.port(false)
	if err != nil {
		return err
	}
	s.URL = "ftp://" + p.address() + s.Data
	s.URLs = map[string]string{"ftp": s.URL}
	conf := []string{
		"ServerName lab", "ServerType standalone", "DefaultAddress 127.0.0.1", "SocketBindTight on", "Port " + p.String(),
		"UseReverseDNS off", "UseIPv6 off", "WtmpLog off", "TransferLog none", "DelayEngine off", "TimeoutIdle 0", "TimeoutNoTransfer 0",
		"User " + account.Username, "Group " + group.Name,
		"PidFile " + s.Dir + "/state/pid", "ScoreboardFile none",
		"AuthOrder mod_auth_file.c", "AuthUserFile " + passwords, "RequireValidShell off",
		"AllowOverwrite on", "AllowRetrieveRestart on", "MaxInstances " + strconv.Itoa(c.Clients),
	}
	if c.Old {
		conf = append(conf, "<Limit MLST MLSD>", "DenyAll", "</Limit>")
	}
	path, err := s.write("proftpd.conf", []byte(strings.Join(conf, "\n")+"\n"))
	if err != nil {
		return err
	}
	return s.part("proftpd", askFTP(p.address()), program, "--nodaemon", "--config", path)
}

// account is the entry in passwd of whom the servers run under; for root it is
// nobody, since lab's own plain user has none.
func (s *System) account() (*user.User, error) {
	if s.user < 0 {
		return user.Current()
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("lab: %s: a plain user to run under: %w", s.Name, err)
	}
	if s.user, err = strconv.Atoi(nobody.Uid); err != nil {
		return nil, fmt.Errorf("lab: %s: user nobody: %w", s.Name, err)
	}
	return nobody, nil
}

// ftpPasswords makes a file of one user, whose password is hashed as crypt(3) does.
func (s *System) ftpPasswords(ctx context.Context, c ProFTPDConfig, account *user.User) (string, error) {
	program, err := c.program("openssl")
	if err != nil {
		return "", fmt.Errorf("lab: proftpd: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, "passwd", "-5", "-stdin")
	cmd.Stdin = strings.NewReader(c.Password + "\n")
	hash, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("lab: proftpd: hash of a password: %w", err)
	}
	line := strings.Join([]string{s.User, string(bytes.TrimSpace(hash)), account.Uid, account.Gid, "", s.Data, "/bin/false"}, ":")
	return s.write("passwd", []byte(line+"\n"))
}
