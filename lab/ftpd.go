package lab

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// FTPServers returns the plain FTP servers of the full tier besides ProFTPD: the values of
// FTPConfig.Server.
func FTPServers() []string { return []string{"vsftpd", "pure-ftpd"} }

// An FTPConfig is one of the FTPServers, which make needs-full unpacks, because Debian installs a single FTP server. Each serves Data at
// URL and writes AccessLog in the format of xferlog. vsftpd admits anonymous clients; Pure-FTPd admits User with the password
// "secret", and needs root, since it changes to the user of each login.
type FTPConfig struct {
	Config
	Server string // one of FTPServers
}

// Needs returns the programs that it needs.
func (f FTPConfig) Needs() []string {
	if f.Server == "pure-ftpd" {
		return []string{f.Server, "openssl", rootUser}
	}
	return []string{f.Server}
}

// Start starts the server.
func (f FTPConfig) Start(ctx context.Context) (*System, error) {
	return f.launch(ctx, f.Server, f.Server, func(s *System, _ string) { f.build(ctx, s) })
}

func (f FTPConfig) build(ctx context.Context, s *System) {
	root, err := Built(f.Server)
	s.fail(err)
	if s.err != nil {
		return
	}
	names := []string{f.Server}
	if f.Server == "pure-ftpd" {
		names = append(names, "pure-pw")
	}
	programs, err := unpackedPrograms(s, root, names...)
	s.fail(err)
	p := s.newPort(false)
	s.Data, s.AccessLog = s.newDir("data"), s.file("transfers", nil)
	s.URL = "ftp://" + p.Address() // whose first folder is Data
	if f.Server == "vsftpd" {
		s.URL += s.Data // a vsftpd that is not root cannot change its root
		conf := s.file("vsftpd.conf", []byte(strings.Join([]string{
			"listen=YES", "listen_address=127.0.0.1", "listen_port=" + p.String(), "background=NO", "run_as_launching_user=YES",
			"anonymous_enable=YES", "no_anon_password=YES", "local_enable=NO", "anon_root=" + s.Data,
			"write_enable=YES", "anon_upload_enable=YES", "anon_mkdir_write_enable=YES", "anon_other_write_enable=YES", "anon_umask=022",
			"secure_chroot_dir=" + s.newDir("empty"), "seccomp_sandbox=NO", "isolate=NO", "isolate_network=NO", "setproctitle_enable=NO",
			"xferlog_enable=YES", "xferlog_std_format=YES", "xferlog_file=" + s.AccessLog,
		}, "\n")+"\n"))
		s.part(f.Server, askFTP(p.Address()), append(programs[f.Server], conf)...)
	} else {
		users := f.users(ctx, s, programs["pure-pw"])
		if s.err == nil {
			s.fail(os.Chown(s.AccessLog, 0, 0)) // it drops the right to write to files of others
		}
		s.part(f.Server, askFTP(p.Address()), append(programs[f.Server], "-S", "127.0.0.1,"+p.String(), "-l", "puredb:"+users, "-A", "-E", "-H",
			"-u", "1", "-c", "1000", "-C", "1000", "-O", "xferlog:"+s.AccessLog, "-g", s.Dir+"/pid")...).user = -1
	}
	s.URLs["ftp"] = s.URL
}

// users makes the database of Pure-FTPd with User, the owner of Data.
func (f FTPConfig) users(ctx context.Context, s *System, program []string) string {
	s.User = userName
	id := strconv.Itoa(s.user)
	users := s.file("users", []byte(f.ftpPasswords(ctx, s, "secret", id, id, "::::::::::::")))
	if s.err != nil {
		return ""
	}
	argv := append(program, "mkdb", users+".pdb", "-f", users)
	_, err := outputOf(exec.CommandContext(ctx, argv[0], argv[1:]...))
	s.fail(err)
	return users + ".pdb"
}
