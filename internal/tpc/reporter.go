package tpc

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// MarkerEvery is how often a server that copies tells how far it is. Clients wait
// for at least half a minute.
const MarkerEvery = 5 * time.Second

// A Marker is how far a copy is.
type Marker struct {
	At     time.Time
	Moved  int64    // bytes
	Remote net.Addr // the passive endpoint's address; nil is not known
}

// Write writes the marker as an answer to COPY has it: one stripe of one.
func (m Marker) Write(w io.Writer) error {
	remote := ""
	if m.Remote != nil {
		remote = "RemoteConnections: tcp:" + m.Remote.String() + "\n"
	}
	_, err := fmt.Fprintf(w, "Perf Marker\nTimestamp: %d\nStripe Index: 0\nStripe Bytes Transferred: %d\nTotal Stripe Count: 1\n%sEnd\n",
		m.At.Unix(), m.Moved, remote)
	return err
}

// Success writes the last line of an answer whose copy is there.
func Success(w io.Writer) error {
	_, err := io.WriteString(w, "success: Created\n")
	return err
}

// Failure writes the last line of an answer whose copy is not there, and why, on
// one line.
func Failure(w io.Writer, why string) error {
	if why = firstLine(strings.Join(strings.Fields(why), " ")); why == "" {
		why = "no reason known"
	}
	_, err := io.WriteString(w, "failure: "+why+"\n")
	return err
}

// PinHeader is where the client of a COPY may say by which certificate (SHA-256 in hex)
// the active endpoint knows the passive one, if authorities do not vouch for it. Only
// weir knows it; others pass it over.
const PinHeader = "Weir-Pin"

// Forwarded tells whether a header of a COPY is meant for the passive endpoint, and
// what it is called there. Headers that make up the request itself are not passed on.
func Forwarded(name string) (string, bool) {
	const prefix = "TransferHeader"
	if len(name) <= len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
		return "", false
	}
	name = http.CanonicalHeaderKey(name[len(prefix):])
	switch name {
	case "Host", "Content-Length", "Content-Range", "Transfer-Encoding", "Connection", "Expect", "Range", "Te", "Trailer", "Upgrade",
		"Keep-Alive", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "Accept-Encoding",
		"Want-Digest", "Want-Repr-Digest", "Digest", "Repr-Digest":
		return "", false
	}
	return name, !strings.HasPrefix(name, "Proxy-")
}
