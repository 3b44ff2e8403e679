// Package diagnosis finds out what a failed first contact with a target means and what a user can do about it.
package diagnosis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path"
	"strings"
	"syscall"

	"weir/storage"
)

// A Kind says what is wrong. Its text is a word for programs.
type Kind string

// The kinds of diagnoses.
const (
	SpeaksTLS     Kind = "tls"            // a target without TLS names a port that speaks TLS
	SpeaksNoTLS   Kind = "no tls"         // a target with TLS names a port that does not
	OtherProtocol Kind = "other protocol" // the port speaks another protocol than the target's
	Silent        Kind = "silent"         // the server takes the connection and does not answer
	UnknownCA     Kind = "unknown ca"
	Expired       Kind = "expired certificate"
	OtherName     Kind = "other host name" // of the server's certificate
	Credentials   Kind = "credentials"     // missing or wrong
	Forbidden     Kind = "forbidden"       // credentials, or rights, do not suffice
	NoListing     Kind = "no listing"
	NoFiles       Kind = "no files"
	IsFile        Kind = "file" // the target is one, not a folder
	Redirected    Kind = "redirected"
	NoSizes       Kind = "no sizes"
	WrongSize     Kind = "wrong size"
	Missing       Kind = "missing"    // the target's path, or a file of the list
	Refused       Kind = "refused"    // the connection
	UnknownHost   Kind = "host name"  // it has no address
	LocalFile     Kind = "local file" // of this machine, with no right to it
)

// A Diagnosis is what an error means.
type Diagnosis struct {
	Kind   Kind
	Offers []string // Credentials: ways to authenticate that the server names
	Speaks string   // OtherProtocol: http, ftp, ssh, TLS
	To     string   // Redirected: where to
	target *url.URL
	path   string // LocalFile, and of certificates: host
}

// Sentinels are the errors of other packages that have a diagnosis of their own.
type Sentinels struct {
	NoFiles error // the target has no files
	NoSizes error // sizes of files are not known
}

// Of returns what err, the first error of a run against target, means; ok is false if that is not known. If reach
// is true, it may connect to the target's port, three times and for a few seconds each, to find out what that speaks.
func Of(ctx context.Context, target *url.URL, err error, s Sentinels, reach bool) (d Diagnosis, ok bool) {
	d = Diagnosis{target: target}
	if d.Kind = d.known(err, s); d.Kind != "" {
		return d, true
	}
	if reach && target.Host != "" && puzzling(err) {
		if right := d.probe(ctx, portOf(target)); d.Kind == "" && !right {
			d.Kind = known(err)
		}
	}
	return d, d.Kind != ""
}

// known is what the types of err tell; "" if they do not.
func (d *Diagnosis) known(err error, s Sentinels) Kind {
	var redirect *storage.RedirectError
	var dns *net.DNSError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &redirect):
		d.To = redirect.To
		return Redirected
	case errors.Is(err, storage.ErrNeedsTLS):
		return SpeaksTLS
	case errors.Is(err, storage.ErrNoTLS):
		return SpeaksNoTLS
	case errors.Is(err, storage.ErrNoListing):
		return NoListing
	case errors.Is(err, storage.ErrSize):
		return WrongSize
	case s.NoFiles != nil && errors.Is(err, s.NoFiles):
		return NoFiles
	case s.NoSizes != nil && errors.Is(err, s.NoSizes):
		return NoSizes
	case errors.As(err, &dns) && (dns.IsNotFound || !dns.IsTimeout):
		return UnknownHost
	case errors.Is(err, syscall.ENOTDIR):
		return IsFile
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, fs.ErrPermission):
		return d.denied(err)
	case errors.Is(err, fs.ErrNotExist):
		return Missing
	}
	return d.certificate(err)
}

// certificate is what err reports on the server's certificate; "" if it does not.
func (d *Diagnosis) certificate(err error) Kind {
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	switch {
	case errors.As(err, &authority):
		return UnknownCA
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return Expired
	case errors.As(err, &name):
		d.path = name.Host
		return OtherName
	}
	return ""
}

// An offerer is an error that knows which ways to authenticate the server names.
type offerer interface{ Offers() []string }

// denied tells files of this machine from missing credentials and missing rights.
func (d *Diagnosis) denied(err error) Kind {
	var local *fs.PathError
	var offers offerer
	switch {
	case errors.As(err, &local):
		d.path = local.Path
		return LocalFile
	case errors.As(err, &offers) && offers.Offers() != nil:
		d.Offers = offers.Offers()
		return Credentials
	}
	return Forbidden
}

// puzzling reports whether err is one that a server gives to clients that speak another protocol.
func puzzling(err error) bool {
	var header tls.RecordHeaderError
	var status interface{ Status() int }
	return errors.As(err, &header) || errors.As(err, &status) && status.Status() == 400 ||
		errors.Is(err, storage.ErrProtocol) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || timedOut(err)
}

func timedOut(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// known is what an error means at a port of which nothing else is known.
func known(err error) Kind {
	if timedOut(err) {
		return Silent
	}
	return ""
}

// Text returns what is wrong in one line where the error itself does not say it, or "".
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
		return "check the rights to this path, and auth.method (basic, token, x509, krb5, s3, unix) with its credentials"
	case NoListing:
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
	return "a target is a folder: use target: " + u.String() + " and files.list: files.txt, a text file with the line: " +
		path.Base(d.target.Path)
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
		return "the server asks for " + strings.Join(offers, ", ") + ", which weir's own clients do not have over HTTP: use auth.method: " +
			"x509 or token if the server takes them, or an external client"
	}
	return "use auth.method: token, basic or x509, with its credentials (auth.token_file, auth.user and auth.password_file, auth.proxy_file)"
}
