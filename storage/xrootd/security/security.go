// Package security authenticates clients to XRootD servers: with a user name (unix), a Kerberos ticket (krb5), a
// bearer token (ztn) or, in package gsi, an X.509 proxy certificate.
//
// In its answer to the login a server lists the protocols that it accepts, in order of preference, such as
// "&P=krb5,xrootd/host@REALM&P=unix". The client sends credentials of one of them; some protocols take several
// rounds.
package security

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"time"

	"weir/storage"
	"weir/storage/xrootd/security/krb5"
)

// A Method is one way to authenticate. One Method serves all clients of a service; it is safe for
// concurrent use.
type Method interface {
	// Name is the protocol's name as servers write it: "unix", "krb5", "ztn", "gsi".
	Name() string
	// Begin starts the proof towards one server. It may send requests to a third party (krb5: the
	// KDC, once for all clients), until ctx ends but never longer than ten seconds. The caller adds
	// the protocol's name to errors.
	Begin(ctx context.Context, s Server) (Exchange, error)
}

// A Server is the server to authenticate to.
type Server struct {
	Host       string // as the client addresses it, without the port
	Address    string // IP address that the connection goes to; "" if unknown
	Parameters string // the text after the protocol's name: for "&P=krb5,a/b@C" it is "a/b@C"
	Secure     bool   // the connection is TLS
}

// An Exchange is a proof towards one server in progress. It belongs to one goroutine.
type Exchange interface {
	// Next returns the next message: first for a nil challenge, then for each response that
	// requires another message. The message begins with the protocol's name and a zero byte, as in
	// kXR_auth.
	Next(challenge []byte) ([]byte, error)
}

// A Sealer is an Exchange that has agreed on a key with the server.
type Sealer interface {
	// Seal appends data to b, encrypted for the server with that key, after the login. It does not
	// allocate if b has room.
	Seal(b, data []byte) ([]byte, error)
}

// Hint returns a possible reason for the server's refusal of e's proof, such as "the token expired
// at 2026-01-02T15:04:05Z", or "" if nothing is known.
func Hint(e Exchange) string {
	if h, ok := e.(interface{ Hint() string }); ok {
		return h.Hint()
	}
	return ""
}

// Stale reports whether the credentials of e, which the server refused, were renewed meanwhile: another login may work.
func Stale(e Exchange) bool {
	s, ok := e.(*said)
	return ok && s.stale != nil && s.stale()
}

// New returns the methods that credentials allow, without gsi, which package gsi provides. Files
// are read now, so that mistakes are detected before a run begins; the errors name the missing
// files or settings. The network is not touched.
func New(c storage.Credentials) ([]Method, error) {
	var all []Method
	add := func(m Method, err error) error {
		all = append(all, m)
		return err
	}
	var err error
	switch c.Method {
	case storage.NoAuth, storage.X509Auth:
	case storage.UnixAuth, "":
		if err := nameable(c.User); err != nil {
			return nil, err
		}
		all = append(all, Unix(c.User))
		if c.Method == "" && c.Token != "" {
			err = add(Token(c))
		}
	case storage.TokenAuth:
		err = add(Token(c))
	case storage.KerberosAuth:
		err = add(Kerberos(krb5.Config{User: c.User, KeytabFile: c.From.KeytabFile, TicketFile: c.From.TicketFile, Krb5File: c.From.Krb5File}))
	default:
		return nil, fmt.Errorf("auth: root:// has no method %s: use none, unix, krb5, x509 or token", c.Method)
	}
	switch {
	case err != nil && c.Method == "":
		return nil, fmt.Errorf("auth: %w", err)
	case err != nil:
		return nil, fmt.Errorf("auth: method %s: %w", c.Method, err)
	}
	return all, nil
}

// nameable checks a user's name for unix.
func nameable(user string) error {
	if len(user) > 255 || strings.ContainsFunc(user, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("auth: user %s: want a name of at most 255 bytes without spaces", printable(user))
	}
	return nil
}

// A said exchange is an exchange of a single message.
type said struct {
	message []byte
	hint    func() string
	stale   func() bool // nil: the credentials do not change
}

// Next returns the message once.
func (s *said) Next(challenge []byte) ([]byte, error) {
	if s.message == nil {
		return nil, fmt.Errorf("the server asks for more than the protocol has: %s: %w", printable(string(challenge)), storage.ErrProtocol)
	}
	m := s.message
	s.message = nil
	return m, nil
}

// Hint returns a possible reason for a refusal.
func (s *said) Hint() string {
	if s.hint == nil {
		return ""
	}
	return s.hint()
}

// Unix sends the user's name to the server, which does not verify it. "" means the user and group
// that weir runs as; another name is sent without a group.
func Unix(name string) Method {
	if name != "" {
		return unixMethod(name)
	}
	name = "*" // the reference's text for a user without a name
	if u, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil {
		name = u.Username
	} else if said := id("-un"); said != "" {
		name = said
	}
	if g, err := user.LookupGroupId(strconv.Itoa(os.Getegid())); err == nil {
		name += " " + g.Name
	} else if said := id("-gn"); said != "" {
		name += " " + said
	}
	return unixMethod(name)
}

// id runs the program of that name, which finds users and groups that are not in the files of this
// machine but in a directory of the site; it returns "" if they have no name.
func id(what string) string {
	said, err := exec.Command("id", what).Output()
	name := strings.TrimSpace(string(said))
	if _, number := strconv.Atoi(name); err != nil || number == nil || strings.ContainsAny(name, " \x00\n") {
		return ""
	}
	return name
}

// unixMethod is the user name, followed by a space and the group if there is a group.
type unixMethod string

func (unixMethod) Name() string { return "unix" }

func (u unixMethod) Begin(context.Context, Server) (Exchange, error) {
	message := append([]byte("unix\x00"), u...)
	return &said{message: append(message, 0)}, nil
}

// Kerberos authenticates with a keytab or a ticket cache, which it reads now. All clients share one
// ticket for a server, obtained once and renewed before it expires.
func Kerberos(c krb5.Config) (Method, error) {
	k, err := krb5.Open(c)
	if err != nil {
		return nil, err
	}
	return &kerberos{k}, nil
}

type kerberos struct{ client *krb5.Client }

func (*kerberos) Name() string { return "krb5" }

// Begin makes a request for the service that the server names.
func (k *kerberos) Begin(ctx context.Context, s Server) (Exchange, error) {
	service, more, _ := strings.Cut(strings.TrimLeft(s.Parameters, " "), ",")
	if service == "" {
		return nil, fmt.Errorf("the server does not say which service it is (sec.protocol krb5 KEYTAB PRINCIPAL): %w", fs.ErrPermission)
	}
	if strings.HasPrefix(more, "fwd") {
		return nil, fmt.Errorf("the server wants our ticket itself (sec.protocol krb5 -exptkn), which weir does not send: %w", fs.ErrPermission)
	}
	request, err := k.client.Request(ctx, service)
	if err != nil {
		return nil, err
	}
	return &said{
		message: append([]byte("krb5\x00"), request...),
		hint: func() string {
			until := k.client.Until(service).UTC().Format(time.RFC3339)
			return fmt.Sprintf("the client was %s with a ticket for %s that ends at %s", k.client.User(), printable(service), until)
		},
	}, nil
}
