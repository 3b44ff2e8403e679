// Package gridcert has the certificates of grid users and of their services: creation and
// delegation of proxies (RFC 3820), authorities in folders of hashed names, and the names that a
// server's certificate may have. The clients of XRootD (GSI) and GridFTP use it.
package gridcert

import (
	"fmt"
	"io/fs"
)

// A refusal is a reason for which the login failed, on the client's or on the server's side.
type refusal string

func (r refusal) Error() string { return string(r) }
func (r refusal) Unwrap() error { return fs.ErrPermission }

// Refuse returns an error that wraps fs.ErrPermission and nothing else: that a proxy's file does not exist must not
// look like a missing file at the service.
func Refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }
