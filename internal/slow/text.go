package slow

import (
	"fmt"

	"weir/internal/say"
	"weir/internal/unit"
)

// text is the verdict in one sentence.
func (j *judge) text(v *Verdict) string {
	switch {
	case v.Cause == Unknown && len(v.Among) > 1:
		names := make([]string, len(v.Among))
		for i, c := range v.Among {
			names[i] = Name(c, "")
		}
		return "Cannot tell: " + say.List(names) + " are equally possible."
	case v.Cause == Unknown:
		return "Cannot tell."
	}
	text := say.Capital(Name(v.Cause, v.Detail)) + ", " + unit.Percent(v.Share) + " of the time"
	if len(v.Evidence) > 0 {
		text += ": " + v.Evidence[0]
	}
	return text + "."
}

// Name returns the name of a cause in a sentence.
func Name(c Cause, d Detail) string {
	names := map[what]string{
		{NameLookup, ""}: "the name lookup", {Connect, ""}: "the connect", {TLS, ""}: "the TLS handshake", {Login, ""}: "the login",
		{Redirector, ""}: "the redirector", {ServerDisk, ""}: "the server's disk", {ServerHost, ""}: "the server's host",
		{ServerHost, CPU}: "the server's host", {ServerHost, Queue}: "the server's queue",
		{ServerLimit, ""}: "a limit at the server", {ServerLimit, Stream}: "the server's limit of a stream",
		{ServerLimit, Client}: "the server's limit of a client", {Line, ""}: "the line", {Line, Loss}: "loss in the line",
		{Line, Rate}: "the rate of the line", {Line, Window}: "the window of a stream",
		{Line, MTU}: "the line drops large packets", {Line, Family}: "an address family that does not work",
		{ThisHost, ""}: "this host", {ThisHost, CPU}: "the CPU of this host", {ThisHost, Disk}: "the disk of this host",
		{Program, ""}: "this program", {Checksum, ""}: "a checksum at each opening", {SmallFiles, ""}: "round trips for a small file",
	}
	if n := names[what{c, d}]; n != "" {
		return n
	}
	return fmt.Sprint(c)
}

// advice says what would help.
func advice(of what) string {
	return map[what]string{
		{NameLookup, ""}:      "Ask the resolver's administrator, or use a resolver with a cache near this host.",
		{Connect, ""}:         "Look for dropped SYN packets: firewall, full backlog of the server.",
		{TLS, ""}:             "Use ECDSA or RSA 2048 keys, resume sessions, keep connections, or give the server more CPU.",
		{Login, ""}:           "Keep sessions, and look at the server's login: threads, lookups of users, revocation lists.",
		{Redirector, ""}:      "Look at the redirector's load and its search for files, or address a data server directly.",
		{ServerDisk, ""}:      "More disks, or a cache. More streams help only if they reach other disks.",
		{ServerHost, CPU}:     "Look at CPU and threads of the server.",
		{ServerHost, Queue}:   "Look at threads and queues of the service.",
		{ServerLimit, Stream}: "Use more streams, or raise the limit of a stream at the server.",
		{ServerLimit, Client}: "Raise the limit of a client at the server, or use several servers.",
		{Line, Loss}:          "Use more streams, or look for loss between this host and the server.",
		{Line, Rate}:          "The line is full: more streams do not help. Look for other traffic on it, or for a shaper.",
		{Line, Window}:        "Use more streams, or larger socket buffers (net.ipv4.tcp_rmem and tcp_wmem) at both ends.",
		{Line, MTU}:           "Allow ICMP \"fragmentation needed\" on the way, set net.ipv4.tcp_mtu_probing=1, or lower the MTU.",
		{Line, Family}:        "Mend the route of this address family, or remove its address from the name.",
		{ThisHost, CPU}:       "Give this host more CPU, or move other programs away.",
		{ThisHost, Disk}:      "Write to another disk.",
		{Program, ""}:         "The program takes data too slowly: look at its own work for each block.",
		{Checksum, ""}:        "Have the server store checksums of files (xrootd.chksum with extended attributes).",
		{SmallFiles, ""}:      "Move many files in each session, several at a time, or pack them.",
	}[of]
}
