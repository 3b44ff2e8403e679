package xrootd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"weir/storage"
	"weir/storage/wireclient"
)

// Error codes that are more to us than a text.
const (
	erIsDirectory = 3016
	erNotFile     = 3015
	erFSError     = 3005
	erTLSRequired = 3028
	erFileNotOpen = 3004
)

// A refusal is an answer kXR_error.
type refusal struct {
	code int32
	text string
	is   error // sentinel
}

func (e *refusal) Error() string {
	name, _ := meaning(e.code)
	if e.text == "" {
		return name
	}
	return fmt.Sprintf("%s (%s)", e.text, name)
}

func (e *refusal) Unwrap() error { return e.is }

// parseError reads the body of kXR_error.
func parseError(b []byte) error {
	if len(b) < 4 {
		return wireclient.ProtocolError("an error of %d bytes", len(b))
	}
	e := &refusal{code: int32(binary.BigEndian.Uint32(b))}
	e.text = strings.TrimSpace(clip(bytes.TrimRight(b[4:], "\x00")))
	_, e.is = meaning(e.code)
	if e.code == erFSError && strings.Contains(strings.ToLower(e.text), "not a directory") {
		e.is = syscall.ENOTDIR
	}
	if e.code == erTLSRequired {
		e.text += "; use roots://"
		e.is = errors.Join(storage.ErrNeedsTLS, e.is)
	}
	return e
}

// meaning returns an error code's name and the sentinel that says the same.
// Source: enum XErrorCode of XProtocol.hh.
func meaning(code int32) (string, error) {
	table := [...]struct {
		name string
		is   error
	}{
		{"kXR_ArgInvalid", fs.ErrInvalid}, {"kXR_ArgMissing", fs.ErrInvalid}, {"kXR_ArgTooLong", syscall.ENAMETOOLONG},
		{"kXR_FileLocked", storage.ErrBusy}, {"kXR_FileNotOpen", fs.ErrClosed}, {"kXR_FSError", syscall.EIO},
		{"kXR_InvalidRequest", errors.ErrUnsupported}, {"kXR_IOError", syscall.EIO}, {"kXR_NoMemory", storage.ErrBusy},
		{"kXR_NoSpace", syscall.ENOSPC}, {"kXR_NotAuthorized", fs.ErrPermission}, {"kXR_NotFound", fs.ErrNotExist},
		{"kXR_ServerError", syscall.EIO}, {"kXR_Unsupported", errors.ErrUnsupported}, {"kXR_noserver", syscall.EHOSTUNREACH},
		{"kXR_NotFile", fs.ErrInvalid}, {"kXR_isDirectory", fs.ErrInvalid}, {"kXR_Cancelled", syscall.ECONNABORTED},
		{"kXR_ItExists", fs.ErrExist}, {"kXR_ChkSumErr", storage.ErrChecksum}, {"kXR_inProgress", storage.ErrBusy},
		{"kXR_overQuota", syscall.EDQUOT}, {"kXR_SigVerErr", fs.ErrPermission}, {"kXR_DecryptErr", fs.ErrPermission},
		{"kXR_Overloaded", storage.ErrBusy}, {"kXR_fsReadOnly", fs.ErrPermission}, {"kXR_BadPayload", fs.ErrInvalid},
		{"kXR_AttrNotFound", fs.ErrNotExist}, {"kXR_TLSRequired", fs.ErrPermission}, {"kXR_noReplicas", syscall.EHOSTUNREACH},
		{"kXR_AuthFailed", fs.ErrPermission}, {"kXR_Impossible", errors.ErrUnsupported}, {"kXR_Conflict", fs.ErrInvalid},
		{"kXR_TooManyErrs", storage.ErrChecksum}, {"kXR_ReqTimedOut", os.ErrDeadlineExceeded}, {"kXR_TimerExpired", os.ErrDeadlineExceeded},
	}
	if i := int(code) - 3000; i >= 0 && i < len(table) {
		return table[i].name, table[i].is
	}
	return fmt.Sprintf("kXR error %d", code), syscall.EIO
}

// broken tells whether err is what a connection gives that the other side has
// closed or that never came about.
func broken(err error) bool {
	return refused(err) == 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH))
}

// refused returns the code of a refusal, 0 for any other error.
func refused(err error) int32 {
	var e *refusal
	if errors.As(err, &e) {
		return e.code
	}
	return 0
}
