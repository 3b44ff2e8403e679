package lab

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// GridFTPConfig configures a GridFTP service; its zero value is a valid configuration.
type GridFTPConfig struct {
	Config
	IPv6 bool // one server, at [::1] instead of 127.0.0.1
	// Servers is the number of servers behind HAProxy, at most MaxServers; 0 means one server that stands alone.
	Servers     int
	Connections int // that each server takes at once; 0 means 1000
	// Loopback has all servers send their data by the loopback interface, also where each could have an interface of
	// its own.
	Loopback bool
	// Auth is "none", the default, or "gsi": servers admit clients with a grid proxy alone.
	Auth string
}

// Start starts one GridFTP server that admits every client without credentials, or only clients
// with a grid proxy, or several servers with the same files behind HAProxy (see balanced). URL is
// an ftp:// or gsiftp:// URL of the full path of Data: the server shows the paths of the machine,
// but no folder outside Data.
//
// Clients must send TYPE I before PASV, or get text with changed line ends; curl does not.
func (c GridFTPConfig) Start(ctx context.Context) (*System, error) {
	if c.Servers < 0 || c.Servers > MaxServers {
		return nil, fmt.Errorf("lab: gridftp: %d servers: use 0 (one server alone) to %d", c.Servers, MaxServers)
	}
	if c.Auth != "" && c.Auth != "none" && c.Auth != "gsi" {
		return nil, fmt.Errorf("lab: gridftp: authentication %q: use none or gsi", c.Auth)
	}
	return c.launch(ctx, "gridftp", "globus-gridftp-server", func(s *System, program string) { c.build(s, program) })
}

// Needs returns the programs that it needs.
func (c GridFTPConfig) Needs() []string {
	switch {
	case c.Servers == 0:
		return []string{"globus-gridftp-server"}
	case c.Loopback || !canWire():
		return []string{"globus-gridftp-server", "haproxy"}
	default:
		return []string{"globus-gridftp-server", "haproxy", "mount", "setpriv"}
	}
}

func (c GridFTPConfig) build(s *System, program string) {
	s.account() // the server needs an entry in passwd for the user that it runs under
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
	if c.Auth == "gsi" {
		gridUsers(s)
		s.URL = "gsiftp://" + p.local() + s.Data // clients of Globus want the name of the certificate
		s.URLs = map[string]string{"gsiftp": s.URL}
	}
	if c.Servers > 0 {
		c.balanced(s, program, p)
		return
	}
	s.part("gridftp", askFTP(address), append([]string{program}, c.args(s, Server{Address: address, DataAddress: host})...)...)
}

// args returns the arguments of a server.
func (c GridFTPConfig) args(s *System, server Server) []string {
	host, port, _ := net.SplitHostPort(server.Address)
	name := "localhost"
	if server.Interface != "" {
		name = server.Name // the server has its own host name
	}
	args := []string{
		"-c", "/dev/null", "-disable-usage-stats",
		"-port", port, "-control-interface", host, "-data-interface", server.DataAddress, "-hostname", name,
		"-connections-max", fmt.Sprint(c.Connections),
		"-home-dir", s.Data, "-restrict-paths", s.Data,
		"-log-level", "ERROR,WARN",
	}
	if c.Auth != "gsi" {
		args = append(args, "-aa")
	}
	return args
}

// gridUsers makes the servers admit only clients with a grid proxy: Proxy, CADir, Env and Settings
// describe it.
func gridUsers(s *System) {
	// The server is not root, so it can only map clients to its own user.
	s.Auth, s.User = "gsi", s.account().Username
	makePrivate(s, "client")
	cert, key := s.certificate(true, nil)
	s.Env = append(s.Env, "X509_CERT_DIR="+s.CADir)
	s.set("ca_dir", s.CADir)
	var v xrootdValues // the values that XRootD would get
	XRootDConfig{}.gsi(s, &v)
	s.env = append(s.env, "X509_USER_CERT="+cert, "X509_USER_KEY="+key, "X509_CERT_DIR="+s.CADir,
		"GRIDMAP="+filepath.Join(s.Dir, "grid-mapfile"))
}

// askFTP returns a question that succeeds when the server at address greets with 220.
func askFTP(address string) question { return askGreeting(address, "220", "QUIT\r\n") }

// ProFTPDConfig configures a plain FTP server; its zero value is a valid configuration.
type ProFTPDConfig struct {
	Config
	User, Password string // who may log in; "" means ada, and secret
	Clients        int    // connections at once; 0 means 1000
	Old            bool   // without MLST and MLSD, as servers were before RFC 3659
}

// Start starts ProFTPD, a plain FTP server that requires a password. URL is an ftp:// URL of the
// full path of Data. It has a process for each connection, and after one has ended it takes no
// other for up to 0.4 s.
func (c ProFTPDConfig) Start(ctx context.Context) (*System, error) {
	return c.launch(ctx, "proftpd", "proftpd", func(s *System, program string) { c.build(ctx, s, program) })
}

// Needs returns the programs that it needs.
func (ProFTPDConfig) Needs() []string { return []string{"proftpd", "openssl"} }

func (c ProFTPDConfig) build(ctx context.Context, s *System, program string) {
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
	passwords := s.file("passwd", []byte(c.ftpPasswords(ctx, s, cmp.Or(c.Password, "secret"), account.Uid, account.Gid, "/bin/false")))
	p := s.newPort(false)
	s.URL = "ftp://" + p.Address() + s.Data
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
	s.part("proftpd", askFTP(p.Address()), program, "--nodaemon", "--config", path)
}

// account makes the servers run under a user with an entry in passwd, and returns it. For root it
// is the user nobody, since lab's own plain user has no entry.
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

// me returns the user of this process.
func (s *System) me() *user.User {
	me, err := user.Current()
	if err != nil {
		s.fail(err)
		return &user.User{}
	}
	return me
}

// ftpPasswords returns the line of passwd of User, whose password is hashed as crypt(3) does. more follows the home folder.
func (c Config) ftpPasswords(ctx context.Context, s *System, password, uid, gid, more string) string {
	program := s.program(c, "openssl")
	if s.err != nil {
		return ""
	}
	cmd := exec.CommandContext(ctx, program, "passwd", "-5", "-stdin")
	cmd.Stdin = strings.NewReader(password + "\n")
	hash, err := outputOf(cmd)
	s.fail(err)
	return strings.Join([]string{s.User, hash, uid, gid, "", s.Data, more}, ":") + "\n"
}
