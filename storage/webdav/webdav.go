// Package webdav is the driver for HTTP/1.1 and WebDAV: nginx, Apache, XRootD,
// dCache, StoRM, EOS and others.
//
// Its HTTP client is built for many clients: a request on a kept connection
// allocates nothing, payload that is not checked is discarded in the kernel,
// uploads are sent from shared memory, and an idle client holds a socket and a few
// hundred bytes.
//
// # Operations
//
// A Read is one GET, or one ranged GET for each of Op.Ranges in turn. With
// Op.Chunk no request asks for more than that many bytes. Requests are not
// pipelined, because many servers answer pipelined requests incorrectly; Op.Ahead
// has no effect. Payload is discarded in the kernel if its length is known and
// neither TLS nor Op.Sum is used; otherwise it is read into a shared buffer.
//
// A Write is one PUT of Op.Size bytes of package content from Op.Seed. Stat is
// HEAD, List is PROPFIND or else the server's listing for browsers in JSON or
// HTML, Mkdir is MKCOL, Remove is DELETE, Move is MOVE without overwriting
// (XRootD overwrites nevertheless), Checksum is HEAD with Want-Digest. Login
// connects and requests the head of the target itself; it fails only if the
// answer is a refusal or a server error.
//
// # Sessions
//
// A client keeps one connection to the target and up to four to data servers that
// it was redirected to. A kept connection that the server has closed is replaced
// once if no byte of an answer was read; the operation then reports Connected, and
// Result.Wire counts both attempts. Nothing else is retried.
//
// XRootD up to 5.9.0 answers some requests with 404, 500 or 501 only because the
// previous request on the connection, usually a checksum, is not finished. Such an
// answer is storage.ErrBusy: the file may exist.
//
// # Credentials
//
// Passwords and tokens are sent to the target, and along redirects to the same
// host (any port), but never from TLS to plain HTTP and never to another host,
// for which the redirect's query carries the authorization. A client certificate
// is presented to any server that requests one, as it reveals no secret. TLS
// sessions are not resumed: every login is a full handshake, as it is for jobs on
// many machines.
package webdav

import (
	"context"

	"weir/storage"
)

// Driver returns the driver for http, https, dav and davs URLs.
func Driver() storage.Driver {
	return storage.Driver{
		Name:      storage.WebDAV,
		Schemes:   []string{"http", "https", "dav", "davs"},
		Kinds:     methods().Kinds(),
		OpenFiles: func(int) int { return 2 }, // the target, and a data server that it redirects to
		Ports:     true,
		Open:      func(_ context.Context, t storage.Target) (storage.Service, error) { return open(t) },
	}
}
