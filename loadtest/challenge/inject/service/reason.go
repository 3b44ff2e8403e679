package service

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"weir/storage"
)

// An End is the end of a copy to which a failure belongs.
type End string

// Ends of a copy.
const (
	Unknown End = ""
	Source  End = "source"
	Dest    End = "destination"
)

// A Verdict is the meaning of a reason of FTS.
type Verdict struct {
	Class   storage.Class
	End     End
	Expired bool // credentials had ended, or were refused as invalid
	Exists  bool // there is a file at the destination
}

// Site returns the name of the site of a copy to which the failure belongs, "" if that is unknown.
func (v Verdict) Site(p Pair) string {
	switch v.End {
	case Source:
		return p.From.Name
	case Dest:
		return p.To.Name
	}
	return ""
}

// Judge returns the meaning of the reason of a failed file. FTS begins it with the part of the
// transfer that failed and an errno: "SOURCE [2] No such file or directory", "DESTINATION [28] No
// space left on device", "TRANSFER [70] ...". Rucio passes the reasons on. source and dest are the
// URLs of the copy: if a reason names the server of one end only, the failure belongs to that end.
func Judge(reason, source, dest string) Verdict {
	v := Verdict{Class: classOf(reason), End: endOf(reason, source, dest)}
	v.Expired = v.Class == storage.Denied && mentionsEnd(reason)
	lower := strings.ToLower(reason)
	v.Exists = v.End != Source && (strings.Contains(lower, "file exists") ||
		strings.HasPrefix(lower, "destination") && strings.Contains(lower, "[17]"))
	return v
}

// mentionsEnd reports whether a reason is about the end of credentials.
func mentionsEnd(reason string) bool {
	return regexp.MustCompile(`(?i)expired|no longer valid|invalid[ _]token|not yet valid|certificate has ended|delegated credentials`).
		MatchString(reason)
}

// endOf returns the end to which a reason belongs.
func endOf(reason, source, dest string) End {
	upper := strings.ToUpper(reason)
	switch {
	case strings.HasPrefix(upper, "SOURCE"), strings.Contains(upper, "USER_DEFINE AND SRC"), strings.Contains(upper, "(SOURCE)"):
		return Source
	case strings.HasPrefix(upper, "DESTINATION"), strings.Contains(upper, "USER_DEFINE AND DST"), strings.Contains(upper, "(DESTINATION)"):
		return Dest
	}
	atSource, atDest := mentions(reason, source), mentions(reason, dest)
	switch {
	case atSource && !atDest:
		return Source
	case atDest && !atSource:
		return Dest
	}
	return Unknown
}

// mentions reports whether a text contains the server of a URL.
func mentions(text, at string) bool {
	u, err := url.Parse(at)
	return err == nil && u.Host != "" && (strings.Contains(text, u.Host) ||
		strings.Contains(text, strings.ReplaceAll(u.Host, ":", "-"))) // weir's coordinator names a site HOST-PORT
}

// classOf returns the class of a reason.
func classOf(reason string) storage.Class {
	lower := strings.ToLower(reason)
	for _, of := range []struct {
		class storage.Class
		words []string
	}{
		{storage.Checksummed, []string{"checksum mismatch", "checksums do not match", "checksums are different", "checksum differs"}},
		{storage.Sized, []string{"size mismatch", "file size differs", "different file size"}},
		{storage.Denied, []string{"authentication error", "unauthorized"}},
	} {
		for _, word := range of.words {
			if strings.Contains(lower, word) {
				return of.class
			}
		}
	}
	if regexp.MustCompile(`\b(token|proxy|certificate|credentials?)\b[^;]* expired`).MatchString(lower) {
		return storage.Denied
	}
	if m := regexp.MustCompile(`HTTP (?:status )?([45]\d\d)\b`).FindStringSubmatch(reason); m != nil {
		status, _ := strconv.Atoi(m[1]) // three digits
		if err := storage.HTTPError(status); err != nil {
			return storage.Classify(err)
		}
	}
	if m := regexp.MustCompile(`^[A-Z_ ]+\[(\d{1,3})\]`).FindStringSubmatch(reason); m != nil {
		n, _ := strconv.Atoi(m[1]) // as above
		return classOfErrno(n)
	}
	return storage.Other
}

// classOfErrno returns the class of an errno of Linux, the system of FTS.
func classOfErrno(n int) storage.Class {
	switch n {
	case 2: // ENOENT
		return storage.NotFound
	case 1, 13: // EPERM, EACCES
		return storage.Denied
	case 5, 28, 30, 122: // EIO, ENOSPC, EROFS, EDQUOT
		return storage.ServerFailed
	case 62, 110: // ETIME, ETIMEDOUT
		return storage.Timeout
	case 101, 111, 112, 113: // ENETUNREACH, ECONNREFUSED, EHOSTDOWN, EHOSTUNREACH
		return storage.Refused
	case 32, 70, 103, 104: // EPIPE, ECOMM (FTS: communication error on send), ECONNABORTED, ECONNRESET
		return storage.Reset
	case 11, 16: // EAGAIN, EBUSY
		return storage.Busy
	case 125: // ECANCELED
		return storage.Canceled
	}
	return storage.Other
}
