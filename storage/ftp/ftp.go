// Package ftp is the driver for FTP: plain FTP servers, and GridFTP servers that
// accept anonymous users or passwords.
//
// It is built for many clients: replies are read into buffers that only running
// operations hold, payload that is not checked is discarded in the kernel, and an
// idle client holds one socket and a few hundred bytes.
//
// # Operations
//
// A Read of a whole file is one RETR in passive mode, up to the end of its data
// connection. A range is ERET P where the server supports it (GridFTP). Elsewhere
// it is REST and RETR, closed when the range has arrived; what the server has
// sent beyond it is lost. Op.Chunk has no effect.
//
// With Op.Ahead of 2 or more, that many data connections carry the file in
// extended block mode (MODE E, GridFTP). In this mode the sender connects, so the
// client listens on the address that faces the server's data interface, which
// PASV names, and the server must be able to reach it. The connections are kept
// for the client's next reads. Without MODE E, for a Read with Op.Sum, whose
// bytes must arrive in order, and over links (Target.Reach), one connection is
// used. Anyone who learns the port can connect to it: only a checksum detects
// foreign bytes.
//
// A Write is STOR of Op.Size bytes of package content from Op.Seed. STOR replaces
// existing files, so the client first checks with MLST or SIZE and fails with
// fs.ErrExist; it overwrites only what its own last write left incomplete. A file
// that another client creates between check and STOR is replaced: FTP cannot
// prevent that. The same holds for Move (RNFR, RNTO). Op.Sync has no effect.
//
// Stat is MLST (else SIZE), List is MLSD (else CWD and LIST in the formats of
// Unix and Windows servers), Mkdir MKD, Remove DELE or RMD, Checksum CKSM, Ping
// NOOP. Login connects and logs in.
//
// # Sessions
//
// A session is a control connection, logged in and set to TYPE I at once, because
// GridFTP servers fix the type when they receive PASV. A kept session that the
// server has closed is replaced. Which of ERET, MLST and MLSD a server supports is
// learned from its first reply and remembered for all clients.
//
// # Data connections
//
// PASV is sent before each transfer, EPSV only over IPv6: EPSV returns a port
// without an address, so data would flow through the address of the control
// connection, which may be a load balancer. The address in a PASV reply may be any
// other than the target's, as GridFTP servers behind a load balancer need, except
// loopback (unless the target is on loopback), link-local and multicast addresses,
// and ports below 1024. 0.0.0.0 stands for the target's address.
//
// Progress.ServedBy receives the address of the data interface without the port,
// which differs from transfer to transfer.
package ftp

import (
	"context"

	"weir/storage"
)

// Driver returns the driver for ftp URLs.
func Driver() storage.Driver {
	return storage.Driver{
		Name:    storage.FTP,
		Schemes: []string{"ftp"},
		Kinds:   methods().Kinds(),
		OpenFiles: func(inFlight int) int {
			if inFlight > 1 {
				return 2 + inFlight // control connection, listening port, data connections
			}
			return 2 // control and data connection
		},
		Ports: true,
		Open:  func(_ context.Context, t storage.Target) (storage.Service, error) { return open(t) },
	}
}
