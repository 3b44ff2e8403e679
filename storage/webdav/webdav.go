// Package webdav drives services that speak HTTP/1.1 and WebDAV: nginx,
// Apache, XRootD, dCache, StoRM, EOS and their like.
//
// Its HTTP client is written for load: a request on a kept connection
// allocates nothing, payload that nobody looks at is dropped in the kernel,
// uploads are sent by the kernel from a file in memory, and a client that
// sleeps holds a socket and a few hundred bytes.
//
// # Operations
//
// A Read is one GET, or one ranged GET for each of Op.Ranges, one after the
// other. With Op.Chunk, no request asks for more than so many bytes: the file
// (or each range) is read in ranged requests of Op.Chunk bytes. They are not
// pipelined, as many servers answer pipelined requests wrongly; Op.Ahead has
// no effect. Payload is discarded in the kernel where its length is known,
// there is no TLS and no Op.Sum; otherwise it is read into a shared buffer.
//
// A Write is one PUT of Op.Size bytes as package content makes them from
// Op.Seed. Stat is HEAD, List is PROPFIND (or, where that gives no listing, the
// one that the server makes for browsers, in JSON or HTML), Mkdir is MKCOL, Remove is
// DELETE, Move is MOVE that does not overwrite (XRootD's HTTP does, whatever it
// is told), Checksum is HEAD with Want-Digest. Login connects and asks for the
// head of the target itself: any answer but a refusal or a server's error is
// a success.
//
// # Sessions
//
// A client keeps one connection to the target and a few to the data servers
// that it was redirected to. A kept connection that the server has closed
// meanwhile is made again once, if no byte of an answer was read: the
// operation then reports Connected, and Result.Wire counts both attempts.
// There are no other retries.
//
// XRootD up to 5.9.0 answers some requests with 404, 500 or 501 only because the
// one before on that connection, a checksum most often, is not quite done: that
// is storage.ErrBusy, and the file may well be there.
//
// # Credentials
//
// Passwords and tokens go to the target, and along redirects to the same host
// (any port), but not from TLS to no TLS and never to another host: there,
// the redirect's own query has to carry what the data server wants to see, as
// redirectors for scientific data do. A client certificate is shown to any
// server that asks for one, because it gives nothing away. TLS sessions are
// not resumed: every login is a full one, as it is for jobs on many machines.
package webdav

import (
	"context"

	"weir/storage"
)

// Driver returns the driver for http, https, dav and davs URLs.
func Driver() storage.Driver {
	return storage.Driver{
		Name:    "webdav",
		Schemes: []string{"http", "https", "dav", "davs"},
		Kinds: []storage.Kind{
			storage.Read, storage.Write, storage.Stat, storage.List, storage.Mkdir,
			storage.Remove, storage.Checksum, storage.Login, storage.Move,
		},
		Open: func(_ context.Context, t storage.Target) (storage.Service, error) { return open(t) },
	}
}
