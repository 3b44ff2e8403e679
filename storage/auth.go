package storage

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// An AuthMethod is a way to authenticate; "" takes what the target offers.
type AuthMethod string

// Ways to authenticate.
const (
	NoAuth       AuthMethod = "none"
	UnixAuth     AuthMethod = "unix" // a name alone
	KerberosAuth AuthMethod = "krb5"
	X509Auth     AuthMethod = "x509" // a certificate or a proxy
	TokenAuth    AuthMethod = "token"
	BasicAuth    AuthMethod = "basic"
	S3Auth       AuthMethod = "s3"
)

// A DataChannel is a way to secure the data connections of GridFTP (RFC 2228, GFD.20).
type DataChannel string

// Ways to secure data connections. All but ClearData delegate a proxy to the server.
const (
	ClearData         DataChannel = "clear"         // DCAU N
	AuthenticatedData DataChannel = "authenticated" // DCAU A, PROT C: both sides show the proxy
	SafeData          DataChannel = "safe"          // DCAU A, PROT S: data cannot be changed unnoticed
	PrivateData       DataChannel = "private"       // DCAU A, PROT P: data is encrypted
)

// Auth says how clients authenticate. It holds the names of files and environment variables and no secrets, so that
// it can be part of a plan.
type Auth struct {
	Method           AuthMethod `json:"method,omitempty"            yaml:"method,omitempty"            jsonschema:"enum=none,enum=unix,enum=krb5,enum=x509,enum=token,enum=basic,enum=s3"`
	User             string     `json:"user,omitempty"              yaml:"user,omitempty"`
	PasswordFile     string     `json:"password_file,omitempty"     yaml:"password_file,omitempty"`
	PasswordVariable string     `json:"password_variable,omitempty" yaml:"password_variable,omitempty"`
	TokenFile        string     `json:"token_file,omitempty"        yaml:"token_file,omitempty"`
	TokenVariable    string     `json:"token_variable,omitempty"    yaml:"token_variable,omitempty"`
	CertFile         string     `json:"cert_file,omitempty"         yaml:"cert_file,omitempty"`
	KeyFile          string     `json:"key_file,omitempty"          yaml:"key_file,omitempty"`
	ProxyFile        string     `json:"proxy_file,omitempty"        yaml:"proxy_file,omitempty"`
	KeytabFile       string     `json:"keytab_file,omitempty"       yaml:"keytab_file,omitempty"`
	TicketFile       string     `json:"ticket_file,omitempty"       yaml:"ticket_file,omitempty"`
	Krb5File         string     `json:"krb5_file,omitempty"         yaml:"krb5_file,omitempty"`
	CAFile           string     `json:"ca_file,omitempty"           yaml:"ca_file,omitempty"`
	CADir            string     `json:"ca_dir,omitempty"            yaml:"ca_dir,omitempty"`
	Delegate         bool       `json:"delegate,omitempty"          yaml:"delegate,omitempty"`
	// DataChannel is how GridFTP data connections are secured; "" means clear.
	DataChannel DataChannel `json:"data_channel,omitempty"      yaml:"data_channel,omitempty"      jsonschema:"enum=clear,enum=authenticated,enum=safe,enum=private"`
	Insecure    bool        `json:"insecure,omitempty"          yaml:"insecure,omitempty"`
}

// Files returns where a has the names of files and folders, by their keys.
func (a *Auth) Files() map[string]*string {
	return map[string]*string{
		"password_file": &a.PasswordFile, "token_file": &a.TokenFile, "cert_file": &a.CertFile, "key_file": &a.KeyFile,
		"proxy_file": &a.ProxyFile, "ca_file": &a.CAFile, "ca_dir": &a.CADir, "keytab_file": &a.KeytabFile, "ticket_file": &a.TicketFile,
		"krb5_file": &a.Krb5File,
	}
}

// Credentials are the contents of the files and variables that an Auth names. They never leave the process.
type Credentials struct {
	Method   AuthMethod // as in Auth; "" is none
	User     string
	Password string
	Token    string      // bearer token
	TLS      *tls.Config // nil: the system's certificate authorities, no client certificate
	From     Auth        // what they were read from, for drivers that hand files to programs
}

// Read returns the contents of the files and variables that a names.
func (a Auth) Read() (Credentials, error) {
	c := Credentials{Method: a.Method, User: a.User, From: a}
	var err error
	if c.Password, err = secret(a.PasswordFile, a.PasswordVariable); err != nil {
		return c, fmt.Errorf("auth: password: %w", err)
	}
	if c.Token, err = secret(a.TokenFile, a.TokenVariable); err != nil {
		return c, fmt.Errorf("auth: token: %w", err)
	}
	if c.TLS, err = a.tls(); err != nil {
		return c, fmt.Errorf("auth: %w", err)
	}
	switch a.Method {
	case TokenAuth:
		if c.Token == "" {
			if a.TokenFile != "" {
				return c, fmt.Errorf("auth: token: %s is empty", a.TokenFile)
			}
			return c, errors.New("auth: method token needs token_file or token_variable")
		}
	case BasicAuth, S3Auth:
		if c.User == "" || c.Password == "" {
			return c, fmt.Errorf("auth: method %s needs user and password_file or password_variable", a.Method)
		}
	}
	return c, nil
}

// InClear returns an error if a token or password for the target would be sent to another machine over plain HTTP,
// unless auth.insecure allows that.
func (t *Target) InClear() error {
	host := t.URL.Hostname()
	ip, err := netip.ParseAddr(host)
	secret := t.Cred.Token != "" || t.Cred.Method == BasicAuth || t.Cred.Method == "" && t.URL.User != nil
	switch {
	case t.URL.Scheme != "http" && t.URL.Scheme != "dav", !secret, t.Cred.From.Insecure, host == "localhost", err == nil && ip.IsLoopback():
		return nil
	}
	return fmt.Errorf("a token or password is not sent to %s over plain http: use https, or allow it with auth.insecure: true", host)
}

func secret(file, variable string) (string, error) {
	if variable != "" {
		v, ok := os.LookupEnv(variable)
		if !ok {
			return "", fmt.Errorf("variable %s is not set", variable)
		}
		return strings.TrimSpace(v), nil
	}
	if file == "" {
		return "", nil
	}
	b, err := os.ReadFile(file)
	return strings.TrimSpace(string(b)), err
}

func (a Auth) tls() (*tls.Config, error) {
	cert, key := a.CertFile, a.KeyFile
	if a.ProxyFile != "" {
		cert, key = a.ProxyFile, a.ProxyFile
	}
	if cert == "" && a.CAFile == "" && a.CADir == "" && !a.Insecure {
		return nil, nil
	}
	conf := &tls.Config{InsecureSkipVerify: a.Insecure}
	if cert != "" {
		key = cmp.Or(key, cert)
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("client certificate %s: %w", cert, err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	if a.CAFile == "" && a.CADir == "" {
		return conf, nil
	}
	pool, err := authorities(a.CAFile, a.CADir)
	conf.RootCAs = pool
	return conf, err
}

func authorities(file, dir string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	files := []string{}
	if file != "" {
		files = append(files, file)
	}
	if dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "*.[p0-9]*")) // *.pem and the hashed names *.0
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	found := false
	for _, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) && f != file {
			continue // a dangling link in the folder
		}
		if err != nil {
			return nil, fmt.Errorf("certificate authorities: %w", err)
		}
		found = pool.AppendCertsFromPEM(b) || found
	}
	if !found {
		return nil, fmt.Errorf("no certificate authority found in %s%s", file, dir)
	}
	return pool, nil
}
