package security

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Limits of a server's offer: the reference has at most 31 protocols, and cuts the whole offer at 4
// KiB.
const (
	maxOffer     = 4096
	maxProtocols = 32
)

// An offered protocol is one entry of a server's offer.
type offered struct {
	name, parameters string
}

// Pick chooses from a server's offer (the security token that ends its response to the login, such
// as "&P=krb5,xrootd/host@REALM&P=unix") the first protocol for which there is a method, and
// returns the method and its parameters in the offer (Server.Parameters). secure is true if the
// connection is TLS; otherwise methods that need TLS are skipped.
//
// If the login with a protocol fails, Pick is not used to choose another protocol: a load test
// measures the protocol that it names. For an empty offer it returns no method and no error: the
// server requires no authentication. If no protocol fits, the error wraps fs.ErrPermission and
// describes a remedy.
func Pick(offer string, secure bool, methods []Method) (Method, string, error) {
	all := parseOffer(offer)
	if len(all) == 0 {
		return nil, "", nil
	}
	plain := false
	for _, o := range all {
		for _, m := range methods {
			if m.Name() != o.name {
				continue
			}
			if !secure && needsTLS(m) {
				plain = true
				continue
			}
			return m, o.parameters, nil
		}
	}
	return nil, "", mismatch(all, methods, plain)
}

// needsTLS reports whether a method's proof must not be sent in the clear.
func needsTLS(m Method) bool {
	n, ok := m.(interface{ NeedsTLS() bool })
	return ok && n.NeedsTLS()
}

// parseOffer parses an offer like the reference: any text that does not begin with &P= is skipped,
// an entry ends at the next &.
func parseOffer(s string) []offered {
	s, _, _ = strings.Cut(s, "\x00")
	if len(s) > maxOffer {
		s = s[:maxOffer]
	}
	var all []offered
	for part := range strings.SplitSeq(s, "&") {
		entry, ok := strings.CutPrefix(part, "P=")
		if !ok {
			continue
		}
		name, parameters, _ := strings.Cut(entry, ",")
		if name == "" || len(all) == maxProtocols {
			continue
		}
		all = append(all, offered{name, parameters})
	}
	return all
}

// mismatch returns an error with the protocols that the server accepts and a remedy.
func mismatch(all []offered, methods []Method, plain bool) error {
	var take, have, set []string
	for _, o := range all {
		take = appendNew(take, printable(o.name))
		if s := setting(o.name); s != "" {
			set = appendNew(set, s)
		}
	}
	for _, m := range methods {
		have = appendNew(have, m.Name())
	}
	text := "the server takes " + strings.Join(take, " or ")
	switch {
	case plain:
		text += "; ours of these is sent over TLS only: use roots:// instead of root://"
	case len(have) == 0:
		text += "; weir has no credentials: " + advice(set)
	default:
		text += "; we have " + strings.Join(have, " and ") + ": " + advice(set)
	}
	return fmt.Errorf("%s: %w", text, fs.ErrPermission)
}

func advice(set []string) string {
	if len(set) == 0 {
		return "weir does not know these ways"
	}
	return "set " + strings.Join(set, " or ")
}

// setting returns the setting in a scenario that enables a protocol.
func setting(protocol string) string {
	switch protocol {
	case "unix":
		return "auth.method: unix"
	case "krb5":
		return "auth.method: krb5"
	case "ztn":
		return "auth.method: token"
	case "gsi":
		return "auth.method: x509"
	}
	return ""
}

func appendNew(to []string, s string) []string {
	if slices.Contains(to, s) {
		return to
	}
	return append(to, s)
}

// printable makes a server's text safe to print.
func printable(s string) string {
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	q := strconv.Quote(s)
	if q != `"`+s+`"` {
		return q
	}
	return s
}
