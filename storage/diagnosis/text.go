package diagnosis

import (
	"net/url"
	"path"
	"strings"
)

// Text returns what is wrong in one line where the error itself does not say it, or
// "".
func (d *Diagnosis) Text() string {
	at := d.target.Host
	switch d.Kind {
	case SpeaksTLS:
		return at + " speaks TLS, and " + d.target.Scheme + ":// does not"
	case SpeaksNoTLS:
		return at + " does not speak TLS, and " + d.target.Scheme + ":// needs it"
	case OtherProtocol:
		return at + " speaks " + d.Speaks + ", not the protocol of " + d.target.Scheme + "://"
	case Silent:
		return at + " takes connections and does not answer them in " + d.target.Scheme + "://"
	}
	return ""
}

// Hint returns what to do, one line, in the keys of a scenario.
func (d *Diagnosis) Hint() string {
	switch d.Kind {
	case SpeaksTLS:
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
	case UnknownCA, Expired, OtherName:
		return d.trust()
	case Credentials:
		return credentials(d.Offers)
	case Forbidden:
		return "check the rights to this path, and auth.method (basic, token, x509, krb5, unix) with its credentials"
	case NoListing:
		return "name the files with files.list: a text file with a path below the target and, if known, its size on each line, such as: run1/file.root 2147483648"
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
	case Missing:
		return "check the path of target and those in files.list; a server that lists no folders needs files.list"
	case Refused:
		return "check host and port of target, and that the server runs and is reachable from here (firewalls)"
	case UnknownHost:
		return "check the host name in target, and this machine's name service (DNS)"
	case LocalFile:
		return "give this user the right to " + d.path + ", or name another file or folder"
	}
	return ""
}

// trust says what to do about a certificate.
func (d *Diagnosis) trust() string {
	const insecure = "; for tests, auth.insecure: true trusts any certificate"
	switch d.Kind {
	case UnknownCA:
		return "name the certificate authority with auth.ca_file (PEM) or auth.ca_dir, such as /etc/grid-security/certificates" + insecure
	case Expired:
		return "renew the server's certificate, and compare the clocks of both machines" + insecure
	}
	return "use the host name of the certificate in target instead of " + d.path + insecure
}

// with returns the target with another scheme, without credentials and query.
func (d *Diagnosis) with(scheme string) string {
	u := url.URL{Scheme: scheme, Host: d.target.Host, Path: d.target.Path, RawPath: d.target.RawPath}
	return "target: " + u.String()
}

func secured(scheme string) string {
	switch scheme {
	case "http", "dav", "root", "xroot": // root:// where the server demands TLS
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

// oneFile says how the file that was named as the target is read.
func (d *Diagnosis) oneFile() string {
	u := url.URL{Scheme: d.target.Scheme, Host: d.target.Host, Path: path.Dir(d.target.Path)}
	return "a target is a folder: use target: " + u.String() + " and files.list: files.txt, a text file with the line: " + path.Base(d.target.Path)
}

// credentials says which of the ways that the server names weir has.
func credentials(offers []string) string {
	known := map[string]string{
		"basic":  "basic, auth.user and auth.password_file",
		"bearer": "token and auth.token_file (or auth.token_variable)",
	}
	var ways []string
	for _, o := range offers {
		if way, ok := known[strings.ToLower(o)]; ok {
			ways = append(ways, "auth.method: "+way)
		}
	}
	switch {
	case len(ways) > 0:
		return "the server asks for " + strings.Join(offers, ", ") + ": use " + strings.Join(ways, "; or ")
	case len(offers) > 0:
		return "the server asks for " + strings.Join(offers, ", ") + ", which weir's own clients do not have over HTTP: use auth.method: x509 or token if the server takes them, or an external client"
	}
	return "use auth.method: token, basic or x509, with its credentials (auth.token_file, auth.user and auth.password_file, auth.proxy_file)"
}
