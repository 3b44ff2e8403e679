// Package xrootd drives services that speak the XRootD protocol: XRootD, EOS,
// dCache, DPM and their redirectors.
//
// Its client is written for load: thousands of sessions in one process, each
// a socket and a few hundred bytes while it sleeps; a request on a kept
// session allocates nothing; payload that nobody looks at is dropped in the
// kernel.
//
// # Operations
//
// A Read opens the file, reads it in requests of Op.Chunk bytes (8 MiB, as
// xrdcp does), Op.Ahead of them in flight at once (4, as xrdcp does), and
// closes it. Several Op.Ranges are one or more vector reads (kXR_readv). With
// Op.Keep the file stays open for the client's next read of it.
//
// Reads and writes are page reads and page writes (kXR_pgread, kXR_pgwrite)
// where the server has them, because that is what xrdcp does since version 5:
// the server computes a CRC32C for each page of 4 KiB, which costs it more
// than the transfer. A read with Op.Sum verifies each of them. With Op.Plain
// reads and writes carry no checksums. Vector reads never do, nor does anything
// over TLS: as with xrdcp, which relies on TLS there.
//
// A Write creates the file, and refuses to replace one that was there before:
// nothing of another owner is overwritten. List asks all data servers that a
// redirector names. Login connects and authenticates, or pings where that was
// done already.
//
// # Redirectors
//
// Redirects are followed (up to 16), with what they say is to be added to the
// path; kXR_wait and kXR_waitresp are obeyed and counted, up to the
// operation's timeout. When a data server that a redirector had named breaks
// down in a read, the client goes back to the redirector, says which server it
// tried, opens the file again and goes on where it was, up to three times
// (Result.Reopened). A write is never repeated.
//
// # Sessions
//
// A client keeps one connection to the target and a few to data servers. A
// kept connection that the server has closed meanwhile is made again once, if
// no byte of an answer was read. With Target.Shared all clients use the same
// connection to each server, as the threads of one program do.
//
// # Credentials
//
// See package security for unix, krb5 and ztn and its folder gsi for X.509
// proxies. They are shown to every server that the redirector names, as all
// clients of this protocol do; tokens only over TLS. From roots:// no client
// follows a redirect to a server without TLS. Servers that want requests to
// be signed (kXR_sigver) are refused with a clear error.
package xrootd

import (
	"context"

	"weir/storage"
)

// Driver returns the driver for root, roots, xroot and xroots URLs.
func Driver() storage.Driver {
	return storage.Driver{
		Name:    "xrootd",
		Schemes: []string{"root", "roots", "xroot", "xroots"},
		Kinds: []storage.Kind{
			storage.Read, storage.Write, storage.Stat, storage.List, storage.Mkdir, storage.Remove,
			storage.Checksum, storage.Login, storage.Move, storage.Locate, storage.Ping,
		},
		Open: func(_ context.Context, t storage.Target) (storage.Service, error) { return open(t) },
	}
}
