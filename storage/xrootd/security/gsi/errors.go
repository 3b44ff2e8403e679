package gsi

import (
	"fmt"
	"io/fs"

	"weir/storage"
)

// A refusal is a reason why there is no login, on our side or on theirs.
type refusal string

func (r refusal) Error() string { return string(r) }
func (r refusal) Unwrap() error { return fs.ErrPermission }

// refuse returns an error that wraps fs.ErrPermission and nothing else: that
// a proxy's file does not exist must not look like a missing file at the
// service.
func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// malformed returns an error that wraps storage.ErrProtocol.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), storage.ErrProtocol)
}
