package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Identity is the proof of identity of the clients of one system: names and files that this process
// can read. Only the fields for the system's authentication are set.
type Identity struct {
	Auth string // "none", "unix", "krb5", "gsi" or "ztn"
	User string // who clients are to the service

	Principal   string // Kerberos: User at the lab's realm
	Krb5Conf    string // the realm and its KDC, as KRB5_CONFIG names it
	Keytab      string // User's key
	TicketCache string // a file with User's ticket, good for a month, renewed by Restart

	UserCert, UserKey string // User's certificate and key, PEM
	Proxy             string // RFC 3820 proxy, its key and the certificates above it, good for a month

	Issuer    string // of tokens
	TokenFile string // WLCG token, good for a month, that may read and write everything

	// Env is the environment that real clients (xrdcp, xrdfs, curl) need, each entry NAME=VALUE.
	Env []string
	// Settings are the keys of a scenario's auth block, the same as in storage.Auth: method,
	// keytab_file and so on. nil if no authentication is needed.
	Settings map[string]string
}

// secrets are the inputs of credentials, and the files of the servers' own certificate.
type secrets struct {
	ca                *authority
	grid              gridMember
	issuer            *issuer
	kinit             string // program
	hostCert, hostKey string
}

// month is the default lifetime of credentials.
const month = 30 * 24 * time.Hour

// userName is the name of clients, unless the operating system defines it.
const userName = "ada"

// protect creates the files for the authentication of c and sets the corresponding fields of v for
// the servers' configurations.
func (c XRootDConfig) protect(ctx context.Context, s *System, v *xrootdValues) {
	s.Auth, s.User = c.Auth, userName
	makePrivate(s, "client")
	if c.TLS || c.Auth == "gsi" {
		s.hostCert, s.hostKey = s.certificate(c.Auth == "gsi" || c.Users, c.Authority)
		if v.Names = c.Servers > 0; v.Names {
			if err := resolvable(ctx); err != nil {
				s.fail(fmt.Errorf("lab: %s: %w", s.Name, err))
			}
		}
		s.Env = append(s.Env, "X509_CERT_DIR="+s.CADir)
		s.set("ca_dir", s.CADir)
		if c.TLS {
			v.Cert, v.Key, v.CADir = s.hostCert, s.hostKey, s.CADir
		}
	}
	if s.err != nil {
		return
	}
	switch c.Auth {
	case "unix":
		admitByName(s, v)
	case "krb5":
		c.kerberos(ctx, s, v)
	case "gsi":
		c.gsi(s, v)
	case "ztn":
		c.ztn(ctx, s, v)
	}
	if s.err != nil {
		s.err = fmt.Errorf("lab: %s: authentication %s: %w", s.Name, c.Auth, s.err)
	}
	if v.Protocol != "" {
		s.Env = append(s.Env, "XrdSecPROTOCOL="+v.Protocol)
	}
}

// resolvable reports whether redirectors will find the name of 127.0.0.1 that certificates are made for.
func resolvable(ctx context.Context) error {
	names, err := net.DefaultResolver.LookupAddr(ctx, "127.0.0.1")
	if err == nil && !slices.Contains(names, "localhost") {
		err = fmt.Errorf("it is known as %q", names)
	}
	if err != nil {
		return fmt.Errorf("127.0.0.1 must have the name localhost, which certificates are made for, see /etc/hosts: %w", err)
	}
	return nil
}

func (s *System) set(key, value string) {
	if s.Settings == nil {
		s.Settings = map[string]string{}
	}
	s.Settings[key] = value
}

// admitByName admits the user that started the system, by the name that clients send.
func admitByName(s *System, v *xrootdValues) {
	s.User = s.me().Username
	s.set("method", "unix")
	s.set("user", s.User)
	v.Protocol, v.Security = "unix", "sec.protocol unix"
	v.Authorization = "ofs.authorize\nacc.authdb " + s.file("authdb", []byte("u "+s.User+" /data a\n")) + "\n"
}

// makePrivate makes a folder of Dir that belongs to this process's user, for files that only
// clients read.
func makePrivate(s *System, name string) {
	if err := os.Mkdir(filepath.Join(s.Dir, name), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		s.fail(err)
	}
}

// clientFile writes a file for clients alone: many refuse a credential that others could read.
func (s *System) clientFile(name string, content []byte) string {
	path := filepath.Join(s.Dir, "client", name)
	if s.err == nil {
		s.fail(os.WriteFile(path, content, 0o600))
	}
	return path
}

// newClientFile writes one more file whose name begins with a prefix.
func (s *System) newClientFile(prefix string, content []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Join(s.Dir, "client"), prefix+"-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	return f.Name(), errors.Join(err, f.Close())
}

// WrongCA makes an authority that has the name of the system's own, but is another: who trusts it alone must not
// trust the servers. It returns its file and its folder, as CAFile and CADir.
func (s *System) WrongCA() (file, dir string, err error) {
	if s.ca == nil {
		return "", "", fmt.Errorf("lab: %s has no certificates: start it with TLS or gsi", s.Name)
	}
	wrong, err := newAuthority(s.ca.rsa)
	if err != nil {
		return "", "", err
	}
	return s.writeAuthority("wrong-authorities", wrong)
}
