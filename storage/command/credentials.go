package command

import (
	"cmp"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/dn"
	"weir/storage"
	"weir/storage/gridcert"
)

// credentials sets the environment of programs: that of this process, with messages in English and the credentials
// where common tools look for them. Secrets are never put on a command line, which every user of the host can read.
func (s *service) credentials(c storage.Credentials) error {
	if c.Method == storage.S3Auth {
		return fmt.Errorf("auth method s3: programs find keys of S3 in their own settings, and get none: %w", errors.ErrUnsupported)
	}
	for key, file := range c.From.Files() { // programs run in folders of their own, and Globus requires absolute names
		if typed := key == "ticket_file" && strings.Contains(*file, ":"); *file == "" || typed {
			continue
		}
		whole, err := filepath.Abs(*file)
		if err != nil {
			return err
		}
		*file = whole
	}
	authorities := c.From.CADir
	if authorities == "" && c.From.CAFile != "" {
		authorities = filepath.Join(s.dir, "authorities")
		if err := hashed(c.From.CAFile, authorities); err != nil {
			return fmt.Errorf("auth: %w", err)
		}
	}
	env := map[string]string{}
	for _, pair := range slices.Concat(s.tool.env, os.Environ()) { // the environment wins
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	env["LC_ALL"] = "C"
	from := c.From
	for _, set := range [][]string{ // a value, and the variables that receive it
		{from.ProxyFile, "X509_USER_PROXY"},
		{from.CertFile, "X509_USER_CERT"},
		{cmp.Or(from.KeyFile, from.CertFile), "X509_USER_KEY"},
		{authorities, "X509_CERT_DIR"},
		{from.CADir, "SSL_CERT_DIR"},
		{from.CAFile, "SSL_CERT_FILE", "CURL_CA_BUNDLE"},
		{from.TicketFile, "KRB5CCNAME"},
		{from.Krb5File, "KRB5_CONFIG"},
		{from.TokenFile, "BEARER_TOKEN_FILE"},
	} {
		for _, name := range set[1:] {
			if set[0] != "" {
				env[name] = set[0]
			}
		}
	}
	protocol := map[storage.AuthMethod]string{storage.UnixAuth: "unix", storage.KerberosAuth: "krb5", storage.X509Auth: "gsi",
		storage.TokenAuth: "ztn"}[c.Method]
	if _, set := env["XrdSecPROTOCOL"]; protocol != "" && !set {
		env["XrdSecPROTOCOL"] = protocol
	}
	for name, value := range env {
		s.env = append(s.env, name+"="+value)
	}
	s.cred, s.given = c, c
	if s.tool.auth == nil {
		return nil
	}
	return s.tool.auth(s, c)
}

// renewed returns the credentials for a program that is started now.
func (s *service) renewed() (storage.Credentials, error) {
	password, token := s.cred.Secret().Current(), s.cred.Bearer().Current()
	s.mu.Lock()
	defer s.mu.Unlock()
	if password == s.given.Password && token == s.given.Token {
		return s.given, nil
	}
	s.given.Password, s.given.Token = password, token
	if s.tool.auth == nil {
		return s.given, nil
	}
	return s.given, s.tool.auth(s, s.given)
}

// secrets returns the texts that must be removed from the output of programs.
func (s *service) secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []string{s.cred.Password, s.cred.Token, s.given.Password, s.given.Token}
}

// hashed writes the authorities of a PEM file into a folder, under the hashes of their names, as
// Globus, gfal2 and XRootD look for them. The names that they may sign are not limited.
func hashed(file, folder string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	all, err := gridcert.ParseCertificates(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, cert := range all {
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
		hashes, err := dn.Hashes(cert.RawSubject)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, h := range hashes {
			name, n := filepath.Join(folder, h), 0
			for ; exists(fmt.Sprintf("%s.%d", name, n)); n++ {
			}
			policy := "access_id_CA X509 '" + dn.Text(cert.RawSubject) + "'\npos_rights globus CA:sign\ncond_subjects globus '\"*\"'\n"
			if err := errors.Join(os.WriteFile(fmt.Sprintf("%s.%d", name, n), text, 0o600),
				os.WriteFile(name+".signing_policy", []byte(policy), 0o600)); err != nil {
				return err
			}
		}
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// environ returns the environment of a program that runs in dir, or, if that is empty, in the current folder.
func (s *service) environ(dir, token string) []string {
	set := slices.Clip(s.env)
	if token != "" {
		set = append(set, "BEARER_TOKEN="+token) // of a variable that is set twice, the last value counts
	}
	if dir == "" {
		return set
	}
	env := slices.DeleteFunc(slices.Clone(set), func(pair string) bool {
		return strings.HasPrefix(pair, "TMPDIR=") || strings.HasPrefix(pair, "PWD=")
	})
	return append(env, "TMPDIR="+dir, "PWD="+dir)
}

// noBasic returns an error for credentials that a program cannot be given.
func noBasic(_ *service, c storage.Credentials) error {
	switch {
	case c.Method == storage.BasicAuth:
		return errors.New("auth: this preset has no way to be given a password: method basic works with curl")
	case c.From.Insecure:
		return errors.New("auth: this preset always checks the server: name its authority with ca_file or ca_dir")
	}
	return nil
}

// curlConfig writes the file from which curl reads its credentials.
func curlConfig(s *service, c storage.Credentials) error {
	var b strings.Builder
	option := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s = %s\n", name, quoted(value))
		}
	}
	if c.Method == storage.BasicAuth {
		option("user", c.User+":"+c.Password)
	}
	option("oauth2-bearer", c.Token) // unlike a header, not sent to other hosts
	option("cacert", c.From.CAFile)
	option("capath", c.From.CADir)
	option("cert", cmp.Or(c.From.ProxyFile, c.From.CertFile))
	option("key", cmp.Or(c.From.ProxyFile, c.From.KeyFile, c.From.CertFile))
	if c.From.Insecure {
		b.WriteString("insecure\n")
	}
	if strings.ContainsAny(c.User+c.Password+c.Token, "\r\n\x00") {
		return errors.New("auth: a line's end in a user's name, password or token")
	}
	s.conf = filepath.Join(s.dir, "curl.conf")
	next := s.conf + ".next" // programs may be reading the file
	if err := os.WriteFile(next, []byte(b.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.conf)
}

// quoted returns s in the syntax of curl's configuration.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
