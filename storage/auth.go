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

// An AuthMethod is a way to authenticate; "" selects a method that the target offers.
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

// Auth configures how clients authenticate. It holds the names of files and environment variables
// and no secrets, so that it can be part of a plan.
type Auth struct {
	Method           AuthMethod  `json:"method,omitempty" enum:"none,unix,krb5,x509,token,basic,s3" doc:"Method of authentication."`
	User             string      `json:"user,omitempty" doc:"Name of the user, the Kerberos principal of a keytab, or the access key of S3."`
	PasswordFile     string      `json:"password_file,omitempty" doc:"File that holds the password, or the secret key of S3."`
	PasswordVariable string      `json:"password_variable,omitempty" doc:"Environment variable that holds the password, or the secret key of S3."`
	TokenFile        string      `json:"token_file,omitempty" doc:"File that holds the bearer token."`
	TokenVariable    string      `json:"token_variable,omitempty" doc:"Environment variable that holds the bearer token."`
	CertFile         string      `json:"cert_file,omitempty" doc:"Client certificate, PEM."`
	KeyFile          string      `json:"key_file,omitempty" doc:"Key of the client certificate, PEM."`
	ProxyFile        string      `json:"proxy_file,omitempty" doc:"Proxy certificate with its key, PEM."`
	KeytabFile       string      `json:"keytab_file,omitempty" doc:"Keytab of auth.user, such as weir@EXAMPLE.ORG, to fetch tickets with."`
	TicketFile       string      `json:"ticket_file,omitempty" doc:"Kerberos ticket cache. Default if there is no keytab either: the user's own."`
	Krb5File         string      `json:"krb5_file,omitempty" doc:"Kerberos configuration. Default: KRB5_CONFIG, or /etc/krb5.conf."`
	CAFile           string      `json:"ca_file,omitempty" doc:"Certificate authorities to trust, PEM."`
	CADir            string      `json:"ca_dir,omitempty" doc:"Folder of certificate authorities to trust."`
	Delegate         bool        `json:"delegate,omitempty" doc:"Delegate a limited proxy to the server at login (GridFTP, XRootD)."`
	DataChannel      DataChannel `json:"data_channel,omitempty" enum:"clear,authenticated,safe,private" doc:"Security of the data connections of GridFTP. Default: clear."`
	Insecure         bool        `json:"insecure,omitempty" doc:"Trust any server certificate, and let tokens and passwords go over plain http."`
}

// Files returns the fields of a with the names of files and folders, by their keys.
func (a *Auth) Files() map[string]*string {
	return map[string]*string{
		"password_file": &a.PasswordFile, "token_file": &a.TokenFile, "cert_file": &a.CertFile, "key_file": &a.KeyFile,
		"proxy_file": &a.ProxyFile, "ca_file": &a.CAFile, "ca_dir": &a.CADir, "keytab_file": &a.KeytabFile, "ticket_file": &a.TicketFile,
		"krb5_file": &a.Krb5File,
	}
}

// Credentials are the contents of the files and variables that an Auth names. They never leave the process.
type Credentials struct {
	Method   AuthMethod // as in Auth; may be empty
	User     string
	Password string      // as it was first read; see Secret
	Token    string      // bearer token, as it was first read; see Bearer
	TLS      *tls.Config // nil: the system's certificate authorities, no client certificate; it presents a renewed certificate
	From     Auth        // the source, for drivers that pass files to programs

	password, token *Renewable[string]
	certificate     *Renewable[*tls.Certificate]
}

// Bearer returns the bearer token, which is renewed if it came from a file.
func (c *Credentials) Bearer() *Renewable[string] { return renewable(c.token, c.Token) }

// Secret returns the password, which is renewed if it came from a file.
func (c *Credentials) Secret() *Renewable[string] { return renewable(c.password, c.Password) }

// Renewals returns the number of renewals of the token, the password and the client certificate of
// TLS since the last call.
func (c *Credentials) Renewals() (n int) {
	for _, r := range []*Renewable[string]{c.password, c.token} {
		if r != nil {
			n += r.Renewals()
		}
	}
	if c.certificate != nil {
		n += c.certificate.Renewals()
	}
	return n
}

// renewable returns r, or a credential that never changes.
func renewable(r *Renewable[string], value string) *Renewable[string] {
	if r == nil {
		r, _ = NewRenewable(func([]string) (string, error) { return value, nil }) // it cannot fail
	}
	return r
}

// Read returns the contents of the files and variables that a names.
func (a Auth) Read() (Credentials, error) {
	c := Credentials{Method: a.Method, User: a.User, From: a}
	var err error
	if c.password, err = secret(a.PasswordFile, a.PasswordVariable, nil); err != nil {
		return c, fmt.Errorf("auth: password: %w", err)
	}
	if c.token, err = secret(a.TokenFile, a.TokenVariable, CheckToken); err != nil {
		return c, fmt.Errorf("auth: token: %w", err)
	}
	if c.TLS, c.certificate, err = a.tls(); err != nil {
		return c, fmt.Errorf("auth: %w", err)
	}
	c.Password, c.Token = c.Secret().Current(), c.Bearer().Current()
	switch a.Method {
	case TokenAuth:
		if c.Token == "" {
			return c, errors.New("auth: method token needs token_file or token_variable")
		}
	case BasicAuth, S3Auth:
		both := a.Method == S3Auth && strings.Contains(c.Password, ":") // the access key precedes the secret key
		if c.User == "" && !both || c.Password == "" {
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

// CheckToken returns an error if token has characters that no bearer token has.
func CheckToken(token string) error {
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("the token has characters that no token has (white space, control or non-ASCII characters): is it one line, " +
			"and nothing else?")
	}
	return nil
}

// secret returns the content of a variable or, renewed when it changes, of a file, without white space around it; nil if neither is named.
func secret(file, variable string, check func(string) error) (*Renewable[string], error) {
	name, files := "variable "+variable, []string(nil)
	switch {
	case variable == "" && file == "":
		return nil, nil
	case variable == "":
		name, files = file, []string{file}
	}
	return NewRenewable(func(contents []string) (string, error) {
		text, set := "", true
		if variable != "" {
			text, set = os.LookupEnv(variable)
		} else {
			text = contents[0]
		}
		text = strings.TrimSpace(text)
		switch {
		case !set:
			return "", fmt.Errorf("%s is not set", name)
		case text == "":
			return "", fmt.Errorf("%s is empty", name)
		case check != nil:
			return text, check(text)
		}
		return text, nil
	}, files...)
}

func (a Auth) tls() (*tls.Config, *Renewable[*tls.Certificate], error) {
	cert, key := a.CertFile, a.KeyFile
	if a.ProxyFile != "" {
		cert, key = a.ProxyFile, a.ProxyFile
	}
	if cert == "" && a.CAFile == "" && a.CADir == "" && !a.Insecure {
		return nil, nil, nil
	}
	conf := &tls.Config{InsecureSkipVerify: a.Insecure}
	var pair *Renewable[*tls.Certificate]
	if cert != "" {
		var err error
		pair, err = NewRenewable(func(contents []string) (*tls.Certificate, error) {
			pair, err := tls.X509KeyPair([]byte(contents[0]), []byte(contents[1]))
			return &pair, err
		}, cert, cmp.Or(key, cert))
		if err != nil {
			return nil, nil, fmt.Errorf("client certificate %s: %w", cert, err)
		}
		conf.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if own := pair.Current(); asked.SupportsCertificate(own) == nil {
				return own, nil
			}
			return &tls.Certificate{}, nil // no certificate that this server would accept
		}
	}
	if a.CAFile == "" && a.CADir == "" {
		return conf, pair, nil
	}
	pool, err := authorities(a.CAFile, a.CADir)
	conf.RootCAs = pool
	return conf, pair, err
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
