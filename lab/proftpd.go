package lab

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"os/user"
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
	return c.launch(ctx, "proftpd", "proftpd", func(s *System, program string) { s.proftpd(ctx, c, program) })
}

// StartProFTPD is ProFTPD for a test, as StartNginx is Nginx.
func StartProFTPD(t testing.TB, c ProFTPDConfig) *System {
	t.Helper()
	return startFor(t, []string{"proftpd", "openssl"}, func(ctx context.Context) (*System, error) { return ProFTPD(ctx, c) })
}

func (s *System) proftpd(ctx context.Context, c ProFTPDConfig, program string) {
	account := s.account()
	if s.err != nil {
		return
	}
	group, err := user.LookupGroupId(account.Gid)
	if err != nil {
		s.fail(fmt.Errorf("lab: proftpd: %w", err))
		return
	}
	s.User = cmp.Or(c.User, userName)
	if c.Clients <= 0 {
		c.Clients = 1000
	}
	s.Data = s.newDir("data")
	s.newDir("state")
	passwords := s.ftpPasswords(ctx, c, account)
	p := s.newPort(false)
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
	path := s.file("proftpd.conf", []byte(strings.Join(conf, "\n")+"\n"))
	s.part("proftpd", askFTP(p.address()), program, "--nodaemon", "--config", path)
}

// account has the servers run under a user with an entry in passwd, and returns it. For root that is nobody, since lab's
// own plain user has none.
func (s *System) account() *user.User {
	if s.user < 0 {
		return s.me()
	}
	nobody, err := user.Lookup("nobody")
	if err == nil {
		s.user, err = strconv.Atoi(nobody.Uid)
	}
	if err != nil {
		s.fail(fmt.Errorf("lab: %s: a plain user to run under: %w", s.Name, err))
		return &user.User{}
	}
	return nobody
}

// me is the user of this process.
func (s *System) me() *user.User {
	me, err := user.Current()
	if err != nil {
		s.fail(err)
		return &user.User{}
	}
	return me
}

// ftpPasswords makes a file of one user, whose password is hashed as crypt(3) does.
func (s *System) ftpPasswords(ctx context.Context, c ProFTPDConfig, account *user.User) string {
	program := s.program(c.Config, "openssl")
	if s.err != nil {
		return ""
	}
	cmd := exec.CommandContext(ctx, program, "passwd", "-5", "-stdin")
	cmd.Stdin = strings.NewReader(cmp.Or(c.Password, "secret") + "\n")
	hash, err := cmd.Output()
	if err != nil {
		s.fail(fmt.Errorf("lab: proftpd: hash of a password: %w", err))
	}
	line := strings.Join([]string{s.User, string(bytes.TrimSpace(hash)), account.Uid, account.Gid, "", s.Data, "/bin/false"}, ":")
	return s.file("passwd", []byte(line+"\n"))
}
