package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/storage"
)

// credentials makes the environment that programs get: our own, in plain
// English, with the credentials where the field's tools look for them. Secrets
// never stand on a command line, where every user of the host could read them.
func (s *service) credentials(c storage.Credentials) error {
	env := environment{}
	env.inherit(os.Environ())
	for _, pair := range s.tool.env {
		name, value, _ := strings.Cut(pair, "=")
		env.suggest(name, value)
	}
	env["LC_ALL"] = "C"
	from := c.From
	env.unless(from.ProxyFile, "X509_USER_PROXY")
	env.unless(from.CertFile, "X509_USER_CERT")
	env.unless(first(from.KeyFile, from.CertFile), "X509_USER_KEY")
	env.unless(from.CADir, "X509_CERT_DIR", "SSL_CERT_DIR")
	env.unless(from.CAFile, "SSL_CERT_FILE", "CURL_CA_BUNDLE")
	env.unless(from.TicketFile, "KRB5CCNAME")
	env.unless(from.Krb5File, "KRB5_CONFIG")
	env.unless(c.Token, "BEARER_TOKEN")
	env.unless(from.TokenFile, "BEARER_TOKEN_FILE")
	if protocol := map[string]string{"unix": "unix", "krb5": "krb5", "x509": "gsi", "token": "ztn"}[c.Method]; protocol != "" {
		env.suggest("XrdSecPROTOCOL", protocol)
	}
	s.env = env.list()
	s.secrets = []string{c.Password, c.Token}
	if s.tool.auth == nil {
		return nil
	}
	return s.tool.auth(s, c)
}

// environ is what a program gets that runs in dir.
func (s *service) environ(dir string) []string {
	if dir == "" {
		return s.env
	}
	env := slices.DeleteFunc(slices.Clone(s.env), func(pair string) bool {
		return strings.HasPrefix(pair, "TMPDIR=") || strings.HasPrefix(pair, "PWD=")
	})
	return append(env, "TMPDIR="+dir, "PWD="+dir)
}

type environment map[string]string

func (e environment) inherit(pairs []string) {
	for _, p := range pairs {
		if name, value, ok := strings.Cut(p, "="); ok {
			e[name] = value
		}
	}
}

// suggest sets a variable that is not set.
func (e environment) suggest(name, value string) {
	if _, ok := e[name]; !ok {
		e[name] = value
	}
}

// unless sets variables, unless value is empty.
func (e environment) unless(value string, names ...string) {
	if value == "" {
		return
	}
	for _, name := range names {
		e[name] = value
	}
}

func (e environment) list() []string {
	list := make([]string, 0, len(e))
	for name, value := range e {
		list = append(list, name+"="+value)
	}
	return list
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// noBasic refuses what a program has no way to take.
func noBasic(_ *service, c storage.Credentials) error {
	switch {
	case c.Method == "basic":
		return errors.New("auth: this preset has no way to be given a password: method basic works with curl")
	case c.From.Insecure:
		return errors.New("auth: this preset always checks the server: name its authority with ca_file or ca_dir")
	}
	return nil
}

// curlConfig writes the file that curl reads its credentials from.
func curlConfig(s *service, c storage.Credentials) error {
	var b strings.Builder
	option := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s = %s\n", name, quoted(value))
		}
	}
	if c.Method == "basic" {
		option("user", c.User+":"+c.Password)
	}
	option("oauth2-bearer", c.Token) // not told to other hosts, as a header would be
	option("cacert", c.From.CAFile)
	option("capath", c.From.CADir)
	option("cert", first(c.From.ProxyFile, c.From.CertFile))
	option("key", first(c.From.ProxyFile, first(c.From.KeyFile, c.From.CertFile)))
	if c.From.Insecure {
		b.WriteString("insecure\n")
	}
	if strings.ContainsAny(c.User+c.Password+c.Token, "\r\n\x00") {
		return errors.New("auth: a line's end in a user's name, password or token")
	}
	s.conf = filepath.Join(s.dir, "curl.conf")
	return os.WriteFile(s.conf, []byte(b.String()), 0o600)
}

// quoted writes a value as curl's configuration wants it.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
