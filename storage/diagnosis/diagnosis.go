// Package diagnosis finds out what a failed first contact with a target means and
// what a user can do about it.
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

// Of returns what err, the first error of a run against target, means; ok is false
// if that is not known. If reach is true, it may connect to the target's port, twice
// and for a few seconds each, to find out what that speaks.
func Of(ctx context.Context, target *url.URL, err error, s Sentinels, reach bool) (d Diagnosis, ok bool) {
	d = Diagnosis{target: target}
	if d.Kind = d.known(err, s); d.Kind != "" {
		return d, true
	}
	if reach && target.Host != "" && puzzling(err) {
		d.probe(ctx, portOf(target))
		if d.Kind == "" {
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

// certificate is what err tells of the server's certificate; "" if it does not.
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

// puzzling tells whether err is one that a server gives to clients that speak
// another protocol.
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
