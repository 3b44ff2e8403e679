// Package diagnosis determines the cause of a failed first contact with a target and suggests
// remedies to users.
package diagnosis

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"weir/storage"
)

// A Kind classifies the problem. Its text is a word for programs.
type Kind string

// The kinds of diagnoses.
const (
	SpeaksTLS     Kind = "tls"            // a target without TLS names a port with TLS
	SpeaksNoTLS   Kind = "no tls"         // a target with TLS names a port that does not
	OtherProtocol Kind = "other protocol" // the port has another protocol than the target
	Silent        Kind = "silent"         // the server accepts the connection and does not respond
	UnknownCA     Kind = "unknown ca"
	Expired       Kind = "expired certificate"
	OtherName     Kind = "other host name" // of the server's certificate
	Credentials   Kind = "credentials"     // missing or wrong
	Forbidden     Kind = "forbidden"       // credentials, or rights, do not suffice
	NoListing     Kind = "no listing"
	NoFiles       Kind = "no files"
	IsFile        Kind = "file" // the target is a file, not a folder
	Redirected    Kind = "redirected"
	NoSizes       Kind = "no sizes"
	WrongSize     Kind = "wrong size"
	Missing       Kind = "missing"       // the target's path, or a file of the list
	Refused       Kind = "refused"       // the connection
	UnknownHost   Kind = "host name"     // it has no address
	Unreachable   Kind = "unreachable"   // no route to the host
	Unconnected   Kind = "no connection" // no response to the request to connect
	LocalFile     Kind = "local file"    // of this machine: missing, or without permission
	NoSpace       Kind = "no space"      // on the target's disk or on one of this machine
	NotYetValid   Kind = "certificate not yet valid"
	NoNames       Kind = "certificate without names"
	ClientCert    Kind = "client certificate" // missing, or unknown to the server
	TLSRefused    Kind = "tls handshake"      // the server ended it
	NoWrites      Kind = "no writes"          // the server does not accept writes
	Busy          Kind = "busy"
	ServerFailed  Kind = "server error"
)

// A Diagnosis is the interpretation of an error.
type Diagnosis struct {
	Kind   Kind
	Offers []string // Credentials: ways to authenticate that the server names; nil: it refused the given credentials
	Speaks string   // OtherProtocol: http, ftp, ssh, TLS
	To     string   // Redirected: where to
	target *url.URL
	auth   storage.Auth
	err    error
	path   string // LocalFile, NoSpace of this machine, and of certificates: host

	tokenOption string // of the Caller
}

// A Caller is the command that failed: errors of other packages that have a diagnosis of their own, and its ways to help itself.
type Caller struct {
	NoFiles error // the target has no files
	NoSizes error // sizes of files are not known
	// option of a command that takes a file with a token, no other credentials and no scenario; "" for runs
	TokenOption string
}

// Of returns the diagnosis of err, the first error of a run against target with auth; ok is false
// if the cause is unknown. If reach is true, it may connect to the target's port, three times and
// for a few seconds each, to detect its protocol.
func Of(ctx context.Context, target *url.URL, auth storage.Auth, err error, c Caller, reach bool) (d Diagnosis, ok bool) {
	d = Diagnosis{target: target, auth: auth, err: err, tokenOption: c.TokenOption}
	if d.Kind = d.known(err, c); d.Kind != "" {
		return d, true
	}
	if reach && target.Host != "" && puzzling(err) {
		if right := d.probe(ctx, portOf(target)); d.Kind == "" && !right {
			d.Kind = known(err)
		}
	}
	return d, d.Kind != ""
}

// known returns the kind that follows from the types of err; "" if they do not.
func (d *Diagnosis) known(err error, c Caller) Kind {
	var redirect *storage.RedirectError
	var dns *net.DNSError
	switch {
	case err == nil:
		return ""
	case d.ofThisMachine(err):
		return localKind(err)
	case errors.As(err, &redirect):
		d.To = redirect.To
		return Redirected
	case errors.Is(err, storage.ErrNeedsTLS):
		return SpeaksTLS
	case errors.Is(err, storage.ErrNoTLS):
		return SpeaksNoTLS
	case d.refusedS3(err):
		return Credentials
	case errors.Is(err, storage.ErrNoListing):
		return NoListing
	case errors.Is(err, storage.ErrSize):
		return WrongSize
	case c.NoFiles != nil && errors.Is(err, c.NoFiles):
		return NoFiles
	case c.NoSizes != nil && errors.Is(err, c.NoSizes):
		return NoSizes
	case errors.As(err, &dns) && (dns.IsNotFound || !dns.IsTimeout):
		return UnknownHost
	}
	return cmp.Or(ofConnection(err), handshake(err), d.answered(err))
}

// ofConnection returns the kind of an error with which a connection was not made, or "".
func ofConnection(err error) Kind {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Unreachable
	case errors.Is(err, syscall.ETIMEDOUT):
		return Unconnected
	}
	return ""
}

// answered returns the kind of an error that is a response of the server, or "".
func (d *Diagnosis) answered(err error) Kind {
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return IsFile
	case errors.Is(err, storage.ErrLogin):
		return Credentials
	case errors.Is(err, syscall.EROFS), notWritten(err):
		return NoWrites
	case errors.Is(err, fs.ErrPermission):
		return d.denied(err)
	case errors.Is(err, fs.ErrNotExist):
		return Missing
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return NoSpace
	case errors.Is(err, storage.ErrBusy):
		return Busy
	case errors.Is(err, storage.ErrServer), errors.Is(err, syscall.EIO):
		return ServerFailed
	}
	return d.certificate(err)
}

// ofThisMachine reports whether err concerns a file of this machine and not the target, and stores
// its path. For a file:// target these are missing rights and full disks.
func (d *Diagnosis) ofThisMachine(err error) bool {
	var local *fs.PathError
	if !errors.As(err, &local) {
		return false
	}
	d.path = local.Path
	if d.target.Scheme == "file" && (errors.As(err, new(*storage.OpError)) || path.Clean(local.Path) == path.Clean(d.target.Path)) {
		return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	}
	return true
}

// localKind returns the kind of an error of a file of this machine.
func localKind(err error) Kind {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return NoSpace
	}
	return LocalFile
}

// certificate returns the kind of an error about the server's certificate; "" for other errors.
func (d *Diagnosis) certificate(err error) Kind {
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	switch {
	case errors.As(err, &authority):
		return UnknownCA
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		if invalid.Cert != nil && time.Now().Before(invalid.Cert.NotBefore) {
			return NotYetValid
		}
		return Expired
	case errors.As(err, &name):
		d.path = name.Host
		if c := name.Certificate; len(c.DNSNames)+len(c.IPAddresses) == 0 {
			return NoNames
		}
		return OtherName
	}
	return ""
}

// statusOf returns the HTTP status of an error, 0 if err has no status.
func statusOf(err error) int {
	var status interface{ Status() int }
	if errors.As(err, &status) {
		return status.Status()
	}
	return 0
}

// handshake returns the kind of an error with which the server ended the TLS handshake, or refused a request for want of a client
// certificate (nginx: 400, Apache: 403), or "".
func handshake(err error) Kind {
	var remote *net.OpError
	text := strings.ToLower(err.Error())
	alert := errors.As(err, &remote) && remote.Op == "remote error"
	page := statusOf(err) == http.StatusBadRequest || statusOf(err) == http.StatusForbidden
	switch {
	case alert && strings.Contains(text, "certificate"), page && strings.Contains(text, "ssl certificate"):
		return ClientCert
	case alert:
		return TLSRefused
	}
	return ""
}

// notWritten reports whether the server has no way to make, move or remove the file or folder of the operation that failed.
func notWritten(err error) bool {
	var op *storage.OpError
	if !errors.As(err, &op) || !slices.Contains([]storage.Kind{storage.Mkdir, storage.Write, storage.Move, storage.Remove}, op.Kind) {
		return false
	}
	return statusOf(err) == http.StatusMethodNotAllowed || errors.Is(err, errors.ErrUnsupported)
}

// An offerer is an error with the ways to authenticate that the server names.
type offerer interface{ Offers() []string }

// offered returns the ways to authenticate that the server names, nil if it names no way.
func offered(err error) []string {
	var offers offerer
	if errors.As(err, &offers) {
		return offers.Offers()
	}
	return nil
}

// refusedS3 reports whether S3 denied a request: the status is 403 for every reason.
func (d *Diagnosis) refusedS3(err error) bool {
	d.Offers = offered(err)
	if len(d.Offers) != 1 || d.Offers[0] != "S3" {
		d.Offers = nil
		return false
	}
	return true
}

// denied distinguishes missing credentials from missing rights.
func (d *Diagnosis) denied(err error) Kind {
	if d.Offers = offered(err); d.Offers != nil {
		return Credentials
	}
	return Forbidden
}

// puzzling reports whether err is typical of servers whose clients use another protocol.
func puzzling(err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header) || statusOf(err) == http.StatusBadRequest ||
		errors.Is(err, storage.ErrProtocol) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || timedOut(err)
}

func timedOut(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// known returns the kind of an error at a port about which nothing else is known.
func known(err error) Kind {
	if timedOut(err) {
		return Silent
	}
	return ""
}
