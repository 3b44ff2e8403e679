// Package xrootd is the driver for the XRootD protocol: XRootD, EOS, dCache, DPM
// and their redirectors.
//
// It is built for many clients: an idle session is a socket and a few hundred
// bytes, a request on a kept session allocates nothing, and payload that is not
// checked is discarded in the kernel.
//
// # Operations
//
// A Read opens the file, reads it in requests of Op.Chunk bytes (default 8 MiB),
// Op.Ahead of them in flight (default 4), and closes it. The defaults are those
// of xrdcp. Several Op.Ranges are one or more vector reads (kXR_readv). With
// Op.Keep the file stays open for the client's next read of it.
//
// Reads and writes are page reads and page writes (kXR_pgread, kXR_pgwrite) where
// the server supports them, as in xrdcp since version 5: the server computes a
// CRC32C for each page of 4 KiB, which costs it more than the transfer. A read with
// Op.Sum verifies each of them. With Op.Plain, in vector reads and over TLS there
// are no page checksums; xrdcp does the same.
//
// A Write creates the file and fails if it exists. List asks all data servers that
// a redirector names. Login connects and authenticates, or pings if that has been
// done.
//
// # Redirectors
//
// Up to 16 redirects are followed, with what they add to the path. kXR_wait and
// kXR_waitresp are obeyed and counted, up to the operation's timeout. If a data
// server fails during a read, the client returns to the redirector, names the
// server that it tried, opens the file again and continues where it was, up to
// three times (Result.Reopened). A write is never repeated.
//
// # Sessions
//
// A client keeps one connection to the target and up to eight to data servers. A
// kept connection that the server has closed is replaced once if no byte of an
// answer was read. With Target.Shared all clients share one connection to each
// server, as the threads of one program do.
//
// # Credentials
//
// Package security has unix, krb5 and ztn, package gsi X.509 proxies. They are
// presented to every server that the redirector names, tokens only over TLS. A
// redirect from roots:// to a server without TLS is refused. TLS begins where the
// server requires it: before the login, after it, or for data. Requests are signed
// (kXR_sigver) as the server requires, with the key that a GSI login has agreed
// on. The other methods agree on no key; servers accept their requests unless
// signatures are forced (sec.level force). Clients that share a session cannot
// sign.
package xrootd

import (
	"context"

	"weir/storage"
)

// Driver returns the driver for root, roots, xroot and xroots URLs.
func Driver() storage.Driver {
	return storage.Driver{
		Name:      storage.XRootD,
		Schemes:   []string{"root", "roots", "xroot", "xroots"},
		Kinds:     methods().Kinds(),
		OpenFiles: func(int) int { return 4 }, // the target; a kept session is redirected to several data servers
		Ports:     true,
		Open:      func(_ context.Context, t storage.Target) (storage.Service, error) { return open(t) },
	}
}
