package diagnosis

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"syscall"

	"weir/storage"
)

// Text returns the problem in one line if the error itself does not contain it, otherwise "".
func (d *Diagnosis) Text() string {
	at := d.target.Host
	switch d.Kind {
	case SpeaksTLS:
		if errors.Is(d.err, storage.ErrLogin) {
			return at + " takes no login without TLS"
		}
		return at + " speaks TLS, and " + d.target.Scheme + ":// does not"
	case SpeaksNoTLS:
		return at + " does not speak TLS, and " + d.target.Scheme + ":// needs it"
	case OtherProtocol:
		return at + " speaks " + d.Speaks + ", not the protocol of " + d.target.Scheme + "://"
	case Silent:
		return at + " takes connections and does not answer them in " + d.target.Scheme + "://"
	case Unconnected:
		return at + " does not answer the request to connect"
	}
	return ""
}

// Hint returns what to do, one line, in the keys of a scenario.
func (d *Diagnosis) Hint() string {
	switch d.Kind {
	case SpeaksTLS:
		if errors.Is(d.err, storage.ErrLogin) {
			return "ftps is not supported: use an account or a server that takes logins without TLS, or https:// or gsiftp:// if the server has it"
		}
		return "use " + d.with(secured(d.target.Scheme)) + tlsNote(d.target.Scheme)
	case SpeaksNoTLS:
		return "use " + d.with(plain(d.target.Scheme)) + ", or the port at which the server speaks TLS"
	case OtherProtocol:
		if d.Speaks == "http" || d.Speaks == "TLS" {
			return "check the port of target; for a web server use https://, http://, davs:// or dav://"
		}
		return "check the port and the scheme of target"
	case Silent:
		return "check the port and the scheme of target"
	case UnknownCA, Expired, NotYetValid, OtherName, NoNames:
		return d.trust()
	case ClientCert:
		return d.clientCertificate()
	case TLSRefused:
		return "the server ended the TLS handshake: it may ask for a client certificate (auth.cert_file) or for another version of TLS"
	case Credentials, Forbidden:
		return d.credentials()
	case NoListing:
		if d.tokenOption != "" {
			return "have the files added from a table (--csv), or by the agent of the site"
		}
		return "name the files with files.list: a text file with a path below the target and, if known, its size on each line, such as: " +
			"run1/file.root 2147483648"
	case NoFiles:
		return "name another folder, or have files made for the run: files.make: {count: 100, size: 10MiB}"
	case IsFile:
		return d.oneFile()
	case Redirected:
		return "use target: " + strings.TrimSuffix(d.To, "/")
	case NoSizes:
		return "write the size behind each path in files.list, such as: run1/file.root 2147483648; or read whole files (without workload.part)"
	case WrongSize:
		return "correct the sizes in files.list, or leave them out: then the service is asked for them"
	}
	return d.atHost()
}

// atHost returns the hint for the kinds that are about hosts, their disks and paths.
func (d *Diagnosis) atHost() string {
	switch d.Kind {
	case Missing:
		return "check the path of target and those in files.list; a server that lists no folders needs files.list"
	case Refused:
		return "check host and port of target, and that the server runs and is reachable from here (firewalls)"
	case Unreachable:
		return "check this machine's routes and firewall: ip route get ADDRESS; a host that has IPv6 addresses only needs IPv6 here"
	case Unconnected:
		return "the host is down, or a firewall drops packets: check host and port of target"
	case UnknownHost:
		return "check the host name in target, and this machine's name service (DNS)"
	case LocalFile:
		return d.localFile()
	case NoSpace:
		if d.target.Scheme == "file" && errors.As(d.err, new(*storage.OpError)) {
			return "free space on the disk that has " + d.target.Path + ", or write less: workload.size, files.make"
		}
		if d.path != "" {
			return "free space on the disk of this machine that has " + d.path + ", or name another folder"
		}
		return "free space on the service or raise the quota there, or write less: workload.size, files.make"
	case NoWrites:
		if d.target.Scheme == "file" {
			return "name a folder that can be written to: the file system of " + d.target.Path + " is mounted read-only"
		}
		return "the server takes no writes at this path: name a folder that can be written to, or switch writes (WebDAV: PUT and MKCOL) on"
	case Busy:
		return "the server refuses work for now: wait, use fewer clients, or raise the server's limit of connections"
	case ServerFailed:
		return "the server failed: look for the reason in its log"
	}
	return ""
}

// localFile returns the hint for a file of this machine.
func (d *Diagnosis) localFile() string {
	switch {
	case errors.Is(d.err, fs.ErrNotExist):
		return d.path + " is not on this machine: correct its name, or make it"
	case errors.Is(d.err, fs.ErrPermission):
		return "give this user the right to " + d.path + ", or name another file or folder"
	case errors.Is(d.err, syscall.ENOTDIR):
		return "a part of " + d.path + " is a file, not a folder: name another folder"
	case errors.Is(d.err, syscall.EROFS):
		return "name another folder: the file system of " + d.path + " is mounted read-only"
	}
	return "name another file or folder of this machine instead of " + d.path
}

// trust returns the hint for a server certificate that is not trusted.
func (d *Diagnosis) trust() string {
	const insecure = "; for tests, auth.insecure: true trusts any certificate"
	switch d.Kind {
	case UnknownCA:
		return "name the certificate authority with auth.ca_file (PEM) or auth.ca_dir, such as /etc/grid-security/certificates" + insecure
	case Expired:
		return "renew the server's certificate, and compare the clocks of both machines" + insecure
	case NotYetValid:
		return "compare the clocks of both machines: the server's certificate becomes valid later" + insecure
	case NoNames:
		text := "have the server's certificate issued again with subjectAltName " + d.path + ": a common name (CN) is not a host name"
		var name x509.HostnameError
		if errors.As(d.err, &name) && d.auth.CAFile+d.auth.CADir == "" && bytes.Equal(name.Certificate.RawIssuer, name.Certificate.RawSubject) {
			text += "; it is self-signed, so name it with auth.ca_file as well"
		}
		return text + insecure
	}
	return "use the host name of the certificate in target instead of " + d.path + insecure
}

// clientCertificate returns the hint for the client's certificate.
func (d *Diagnosis) clientCertificate() string {
	if file := cmp.Or(d.auth.ProxyFile, d.auth.CertFile); file != "" {
		return "the server refused the certificate in " + file + ": check that it is valid and signed by an authority of the server"
	}
	return "the server asks for a client certificate: use auth.cert_file and auth.key_file, or auth.proxy_file"
}

// with returns the target with another scheme, without credentials and query.
func (d *Diagnosis) with(scheme string) string {
	u := url.URL{Scheme: scheme, Host: d.target.Host, Path: d.target.Path, RawPath: d.target.RawPath}
	return "target: " + u.String()
}

func secured(scheme string) string {
	switch scheme {
	case "http", "dav", "root", "xroot": // root:// if the server demands TLS
		return scheme + "s"
	}
	return "https"
}

func tlsNote(scheme string) string {
	if scheme == "ftp" {
		return " if it is a web server: ftp:// has no TLS"
	}
	return ""
}

func plain(scheme string) string { return strings.TrimSuffix(scheme, "s") }

// oneFile returns the hint for a target that is a file.
func (d *Diagnosis) oneFile() string {
	u := url.URL{Scheme: d.target.Scheme, Host: d.target.Host, Path: path.Dir(d.target.Path)}
	return "a file can only be read: use its folder as target: " + u.String()
}

// shown returns the credentials that the run has sent to the server and the kind of offer that
// requires them; "" for a run without credentials.
func (d *Diagnosis) shown() (what, offer string) {
	a := &d.auth
	password := cmp.Or(a.PasswordFile, a.PasswordVariable, "target")
	switch {
	case a.Method == storage.TokenAuth || a.Method == "" && a.TokenFile+a.TokenVariable != "":
		return "the token in " + cmp.Or(a.TokenFile, a.TokenVariable), "bearer"
	case a.Method == storage.BasicAuth:
		return "user " + a.User + " with the password in " + password, "basic"
	case a.Method == storage.S3Auth:
		return "access key " + a.User + " with the secret key in " + password, "s3"
	case a.Method == "" && d.target.User != nil:
		return "user " + d.target.User.Username() + " with the password in " + password, "basic"
	case a.ProxyFile+a.CertFile != "":
		return "the certificate in " + cmp.Or(a.ProxyFile, a.CertFile), "x509"
	case a.Method == storage.KerberosAuth:
		return "the ticket in " + cmp.Or(a.TicketFile, a.KeytabFile, "the credential cache"), "krb5"
	}
	return "", ""
}

// doubts returns the possible problems of credentials of a kind.
func doubts(offer string) string {
	switch offer {
	case "bearer":
		return "expired? wrong audience? no scope for this path?"
	case "s3":
		return "wrong key? no right to this bucket? clocks that differ?"
	case "x509":
		return "expired? not registered at the server?"
	}
	return "wrong user or password? no right to this path?"
}

// credentials returns the hint if the server requires other credentials, or more rights.
func (d *Diagnosis) credentials() string {
	what, offer := d.shown()
	wanted := len(d.Offers) == 0 || slices.ContainsFunc(d.Offers, func(o string) bool { return strings.EqualFold(o, offer) })
	login := errors.Is(d.err, storage.ErrLogin)
	switch {
	case what == "" && d.tokenOption != "":
		return "the server asks for credentials: name a file with a token by " + d.tokenOption
	case login && !errors.Is(d.err, fs.ErrPermission):
		return "the server refused the login for a reason of its own: correct it there, or log in as another user (auth.user)"
	case what != "" && wanted:
		return "the server refused " + what + " (" + doubts(offer) + ")"
	case login && d.target.Scheme == "ftp":
		return "the server refused the anonymous login: use auth.method: basic, auth.user and auth.password_file"
	case d.Kind == Forbidden:
		return "check the rights to this path, and auth.method (basic, token, x509, krb5, s3, unix) with its credentials"
	}
	return offers(d.Offers)
}

// offers returns the ways to authenticate, named by the server, that weir supports.
func offers(names []string) string {
	known := map[string]string{
		"basic":  "basic, auth.user and auth.password_file",
		"bearer": "token and auth.token_file (or auth.token_variable)",
		"s3":     "s3, auth.user (access key) and auth.password_file (secret key)",
	}
	var ways []string
	for _, o := range names {
		if way, ok := known[strings.ToLower(o)]; ok {
			ways = append(ways, "auth.method: "+way)
		}
	}
	switch {
	case len(ways) > 0:
		return "the server asks for " + strings.Join(names, ", ") + ": use " + strings.Join(ways, "; or ")
	case len(names) > 0:
		return "the server asks for " + strings.Join(names, ", ") + ", which weir's own clients do not have over HTTP: use auth.method: " +
			"x509 or token if the server takes them, or an external client"
	}
	return "use auth.method: token, basic or x509, with its credentials (auth.token_file, auth.user and auth.password_file, auth.proxy_file)"
}
