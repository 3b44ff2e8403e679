package security

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"weir/storage/xrootd/security/krb5"
)

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
