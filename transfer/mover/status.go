package mover

import (
	"net/http"
	"time"

	"weir/internal/pause"
	"weir/transfer"
)

// maxAfter bounds how long a server may put us off.
const maxAfter = time.Hour

// refused says what an answer's status means that is no success. missing is
// what 404 means: at a source it has lost the file.
func (a *answer) refused(doing string, missing transfer.Fault) *trouble {
	text := a.text()
	if text == http.StatusText(a.StatusCode) { // said already
		text = ""
	}
	if text != "" {
		text = ": " + text
	}
	t := failf(faultOf(a.StatusCode, missing), "%s: %s answers %d %s%s", doing, a.from.Host, a.StatusCode, http.StatusText(a.StatusCode), text)
	if t.fault == transfer.Throttled {
		t.after = pause.After(a.Header.Get("Retry-After"), time.Now(), maxAfter)
		if t.after == 0 && a.StatusCode == http.StatusServiceUnavailable {
			t.fault = transfer.Transient
		}
	}
	return t
}

func faultOf(status int, missing transfer.Fault) transfer.Fault {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return transfer.Denied
	case http.StatusNotFound, http.StatusGone:
		return missing
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return transfer.Throttled
	case http.StatusInsufficientStorage:
		return transfer.DestFull
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusLocked:
		return transfer.Transient
	}
	if status >= 500 {
		return transfer.Transient
	}
	return transfer.Permanent
}
