// Package ftp drives services that speak FTP: GridFTP servers that let everyone
// in, or ask for a password, and plain FTP servers.
//
// It is written for load: replies are read into buffers that only running
// operations hold, payload that nobody looks at is dropped in the kernel, and a
// client that sleeps holds one socket and a few hundred bytes.
//
// # Operations
//
// A Read of a whole file is one RETR in passive mode, to the end of its data
// connection. A range is ERET P where the server knows it (GridFTP), which sends
// no byte too many; elsewhere it is REST and RETR, broken off when all has come:
// what the server had under way by then is lost. Op.Chunk has no effect: FTP has
// no requests inside a file.
//
// With Op.Ahead of 2 or more, so many data connections bring the file at once, in
// extended block mode (MODE E, GridFTP). There the sender connects, so the client
// listens, on the address that faces the server's data interface (PASV tells which
// that is): the server must be able to reach it. The connections stay open for the
// client's next reads. A server that knows no MODE E sends over one connection as
// ever; so does any for a Read with an Op.Sum, whose bytes have to come in order,
// and over links (Target.Reach), which lead only to servers. Who gets to know the
// port can connect to it, too: nothing but a checksum tells bytes of a stranger.
//
// A Write is STOR of Op.Size bytes as package content makes them from Op.Seed.
// STOR replaces what is there, so the client asks first (MLST, else SIZE) and
// refuses with fs.ErrExist; only what its own last write left unfinished is
// written again. A file that somebody else makes between question and STOR is
// replaced: FTP has no way to rule that out. The same holds for Move (RNFR, RNTO).
// Op.Sync has no effect.
//
// Stat is MLST (else SIZE), List is MLSD (else CWD and LIST as Unix and Windows
// servers write it), Mkdir MKD, Remove DELE or RMD, Checksum CKSM, Ping NOOP.
// Login connects and logs in.
//
// # Sessions
//
// A session is a control connection, logged in and set to TYPE I at once, since
// GridFTP servers fix the type when they hear PASV. A kept session that the
// server has closed meanwhile is made anew. Whether a server knows ERET, MLST or
// MLSD shows when it is first asked, and is remembered for all clients.
//
// # Data connections
//
// PASV is asked before each transfer, EPSV only over IPv6: EPSV names a port and
// no address, so its data connections go to the address of the control
// connection, where a balancer would see the payload. With PASV each server's own
// data interface is used: its address may be any other than the target's, as
// GridFTP servers behind a balancer want it, but not one that could only mean
// this machine or its surroundings: loopback (unless the target is reached over
// loopback), link-local and multicast addresses are refused, and so are ports
// below 1024, where no data waits. 0.0.0.0 is the target's own address.
//
// Progress.ServedBy tells the address of the data interface, as PASV has it, without
// the port, which is another one for each transfer.
package ftp

import (
	"context"

	"weir/storage"
)

// Driver returns the driver for ftp URLs.
func Driver() storage.Driver {
	return storage.Driver{
		Name:    "ftp",
		Schemes: []string{"ftp"},
		Kinds: []storage.Kind{
			storage.Read, storage.Write, storage.Stat, storage.List, storage.Mkdir,
			storage.Remove, storage.Checksum, storage.Login, storage.Move, storage.Ping,
		},
		Open: func(_ context.Context, t storage.Target) (storage.Service, error) { return open(t) },
	}
}
