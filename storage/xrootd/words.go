package xrootd

import "fmt"

// requestName is a request's name in the protocol, for errors.
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

// statusName is the name of an answer's status in the protocol, for errors.
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
