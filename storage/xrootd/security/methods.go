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

	"weir/storage/xrootd/security/krb5"
)

// Unix names the user to the server, which believes it. "" means the user
// and group that weir runs as; another name goes without a group.
func Unix(name string) Method {
	if name != "" {
		return unixMethod(name)
	}
	name = "*" // what the reference says of a user without a name
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

// id asks the program of that name, which knows users and groups that are not in
// the files of this machine but in a directory of the site; "" if they have no name.
func id(what string) string {
	said, err := exec.Command("id", what).Output()
	name := strings.TrimSpace(string(said))
	if _, number := strconv.Atoi(name); err != nil || number == nil || strings.ContainsAny(name, " \x00\n") {
		return ""
	}
	return name
}

// unixMethod is the name, perhaps with a space and the group.
type unixMethod string

func (unixMethod) Name() string { return "unix" }

func (u unixMethod) Begin(context.Context, Server) (Exchange, error) {
	message := append([]byte("unix\x00"), u...)
	return &said{message: append(message, 0)}, nil
}

// Kerberos proves with a keytab or a ticket cache, which it reads now. All
// clients share one ticket for a server, got once and renewed before it ends.
func Kerberos(c krb5.Config) (Method, error) {
	k, err := krb5.Open(c)
	if err != nil {
		return nil, err
	}
	return &kerberos{k}, nil
}

type kerberos struct{ client *krb5.Client }

func (*kerberos) Name() string { return "krb5" }

// Begin makes a request for the service that the server says it is.
func (k *kerberos) Begin(ctx context.Context, s Server) (Exchange, error) {
	service, more, _ := strings.Cut(strings.TrimLeft(s.Parameters, " "), ",")
	if service == "" {
		return nil, fmt.Errorf("the server does not say which service it is (sec.protocol krb5 KEYTAB PRINCIPAL): %w", fs.ErrPermission)
	}
	if strings.HasPrefix(more, "fwd") {
		return nil, fmt.Errorf("the server wants our ticket itself (sec.protocol krb5 -exptkn), which weir gives to nobody: %w", fs.ErrPermission)
	}
	request, err := k.client.Request(ctx, service)
	if err != nil {
		return nil, err
	}
	return &said{
		message: append([]byte("krb5\x00"), request...),
		hint: func() string {
			until := k.client.Until(service).UTC().Format(time.RFC3339)
			return fmt.Sprintf("we came as %s with a ticket for %s that ends at %s", k.client.User(), printable(service), until)
		},
	}, nil
}
