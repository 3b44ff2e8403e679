package xrootd

import (
	"encoding/binary"
	"fmt"
)

// The numbers of the XRootD protocol, version 5.1. Source: "XRootD Client/ Server Protocol
// Reference" and XProtocol.hh of XRootD 5.5.3.
const (
	handshakeSize = 20
	requestSize   = 24 // bytes at the beginning of every request
	headSize      = 8  // bytes at the beginning of every response
	sessionSize   = 16 // bytes of a session's identity, in the response to a login
	handleSize    = 4  // bytes of the handle of an open file

	protocolVersion = 0x511
	magic           = 2012
)

// Requests.
const (
	rqAuth     = 3000
	rqQuery    = 3001
	rqClose    = 3003
	rqDirlist  = 3004
	rqProtocol = 3006
	rqLogin    = 3007
	rqMkdir    = 3008
	rqMv       = 3009
	rqOpen     = 3010
	rqPing     = 3011
	rqRead     = 3013
	rqRm       = 3014
	rqRmdir    = 3015
	rqSync     = 3016
	rqStat     = 3017
	rqWrite    = 3019
	rqReadv    = 3025
	rqPgwrite  = 3026
	rqLocate   = 3027
	rqSigver   = 3029
	rqPgread   = 3030
)

// Statuses of responses.
const (
	stOK       = 0
	stOKSoFar  = 4000
	stAttn     = 4001
	stAuthMore = 4002
	stError    = 4003
	stRedirect = 4004
	stWait     = 4005
	stWaitResp = 4006
	stStatus   = 4007
)

// Flags in the response to rqProtocol.
const (
	flagServer     = 0x00000001
	flagManager    = 0x00000002
	flagPages      = 0x00200000 // kXR_suppgrw
	flagTLSData    = 0x01000000
	flagTLSLogin   = 0x04000000
	flagTLSSession = 0x08000000
	flagGoToTLS    = 0x40000000 // the server begins TLS with its next byte
	flagHasTLS     = 0x80000000
)

// Options of requests.
const (
	protocolSecurity = 0x01 // requests the list of requests to be signed
	protocolAbleTLS  = 0x02
	protocolWantTLS  = 0x04
	expectLogin      = 0x03

	loginFullURL    = 0x01
	loginReadRedir  = 0x04
	loginIPv64      = 0x08
	loginVersion    = 5
	loginAsync      = 0x80 // responses may come later, as kXR_attn
	openDelete      = 0x0002
	openNew         = 0x0008
	openRead        = 0x0010
	openUpdate      = 0x0020
	openAsync       = 0x0040 // the server may read and write asynchronously, if configured to
	openMakePath    = 0x0100
	openStat        = 0x0400
	modeFile        = 0x1a4 // rw-r--r--
	modeFolder      = 0x1ed // rwxr-xr-x
	mkdirPath       = 1
	locatePrefName  = 0x0100
	listWithStat    = 0x02
	queryStats      = 1
	queryChecksum   = 3
	queryConfig     = 7
	attnResponse    = 5008
	statIsDir       = 2
	pageSize        = 4096
	pageUnit        = pageSize + 4 // a page behind its CRC32C
	statusSize      = 16           // of kXR_status, without the bytes that follow
	partialStatus   = 1
	vectorItem      = 16
	maxVectorItems  = 1024
	maxVectorLength = 2<<20 - vectorItem
	firstRequest    = 3000
)

// A request is a message to a server: a code, 16 bytes of parameters, and arguments.
type request struct {
	code   uint16
	params [16]byte
	args   []byte
	path   bool // args are a path, to which the opaque information of a redirect is appended
}

// appendRequest appends the header of a request with size bytes to follow.
func appendRequest(b []byte, stream, code uint16, params *[16]byte, size int) []byte {
	b = binary.BigEndian.AppendUint16(b, stream)
	b = binary.BigEndian.AppendUint16(b, code)
	b = append(b, params[:]...)
	return binary.BigEndian.AppendUint32(b, uint32(size))
}

// appendHello appends the handshake and a kXR_protocol request, which have to be sent in one
// packet.
func appendHello(b []byte, tls bool) []byte {
	var hs [handshakeSize]byte
	binary.BigEndian.PutUint32(hs[12:], 4)
	binary.BigEndian.PutUint32(hs[16:], magic)
	return appendProtocol(append(b, hs[:]...), tls)
}

// appendProtocol appends a kXR_protocol request; with tls it requests that the server begins TLS.
func appendProtocol(b []byte, tls bool) []byte {
	var p [16]byte
	binary.BigEndian.PutUint32(p[0:], protocolVersion)
	p[4] = protocolSecurity | protocolAbleTLS
	if tls {
		p[4] |= protocolWantTLS
	}
	p[5] = expectLogin
	return appendRequest(b, 0, rqProtocol, &p, 0)
}

// fileAt returns the parameters of requests about count bytes of an open file.
func fileAt(handle [handleSize]byte, offset int64, count uint32) (p [16]byte) {
	copy(p[:], handle[:])
	binary.BigEndian.PutUint64(p[4:], uint64(offset))
	binary.BigEndian.PutUint32(p[12:], count)
	return p
}

// requestName returns a request's name in the protocol, for errors.
func requestName(code uint16) string {
	names := [...]string{
		"kXR_auth", "kXR_query", "kXR_chmod", "kXR_close", "kXR_dirlist", "kXR_gpfile", "kXR_protocol", "kXR_login",
		"kXR_mkdir", "kXR_mv", "kXR_open", "kXR_ping", "kXR_chkpoint", "kXR_read", "kXR_rm", "kXR_rmdir", "kXR_sync",
		"kXR_stat", "kXR_set", "kXR_write", "kXR_fattr", "kXR_prepare", "kXR_statx", "kXR_endsess", "kXR_bind",
		"kXR_readv", "kXR_pgwrite", "kXR_locate", "kXR_truncate", "kXR_sigver", "kXR_pgread", "kXR_writev",
	}
	if i := int(code) - firstRequest; i >= 0 && i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("request %d", code)
}

// statusName returns the name of a response's status in the protocol, for errors.
func statusName(status uint16) string {
	names := [...]string{
		"kXR_oksofar", "kXR_attn", "kXR_authmore", "kXR_error", "kXR_redirect", "kXR_wait", "kXR_waitresp", "kXR_status",
	}
	if i := int(status) - stOKSoFar; i >= 0 && i < len(names) {
		return names[i]
	}
	if status == stOK {
		return "kXR_ok"
	}
	return fmt.Sprintf("status %d", status)
}
