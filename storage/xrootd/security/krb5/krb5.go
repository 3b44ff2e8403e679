// Package krb5 creates Kerberos requests (AP-REQ) for many clients of one user, from a keytab or a ticket cache.
//
// All clients share one ticket per service. One of them obtains it while the others wait, and one renews it before
// it expires; there is no background work. Each request has an authenticator with a time that no other request of
// the process has, so that a server's replay cache does not reject it.
package krb5

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jcmturner/gokrb5/v8/credentials"
)

// A Config selects the tickets to use. Empty fields select the defaults of the usual Kerberos
// programs.
type Config struct {
	User       string // principal; "" means the first in the keytab, or the ticket cache's
	KeytabFile string // "" means that the tickets come from a cache
	TicketFile string // ticket cache; "" means KRB5CCNAME, else /tmp/krb5cc_UID, else krb5.conf's default_ccache_name
	Krb5File   string // configuration; "" means KRB5_CONFIG, else /etc/krb5.conf
}

// A Client makes requests for one user. It is safe for concurrent use, and needs no closing: it holds no
// connections and no goroutines.
type Client struct {
	settings *settings
	user     principal
	login    *credentials.Credentials // with the keytab; nil with a ticket cache
	keys     []int32                  // encryption types of the keytab's keys
	where    string                   // keytab or ticket cache, for messages
	cache    string                   // ticket cache, "" with a keytab

	last atomic.Int64  // time of the latest authenticator, in us since 1970
	gate chan struct{} // holds a value while a goroutine sends requests to the KDC

	mu      sync.RWMutex
	tickets map[string]*ticket // by the requested service
	granter *ticket            // the ticket-granting ticket, with a keytab
	failure failure            // the latest
}

// Open reads the files that c names, without touching the network. Its errors name the missing
// files or entries.
func Open(c Config) (*Client, error) {
	s, err := readSettings(c.Krb5File)
	if err != nil {
		return nil, err
	}
	k := &Client{settings: s, gate: make(chan struct{}, 1), tickets: map[string]*ticket{}}
	if c.KeytabFile != "" {
		return k, k.useKeytab(c)
	}
	return k, k.useCache(c)
}

func (k *Client) useKeytab(c Config) error {
	kt, err := readKeytab(c.KeytabFile)
	if err != nil {
		return err
	}
	k.where = "keytab " + c.KeytabFile
	if k.user, k.keys, err = holder(kt, c.User, k.settings.lib.LibDefaults.DefaultRealm); err != nil {
		return fmt.Errorf("%s: %w", c.KeytabFile, err)
	}
	k.login = credentials.NewFromPrincipalName(k.user.name, k.user.realm).WithKeytab(newestOf(kt, k.user))
	return nil
}

func (k *Client) useCache(c Config) error {
	var err error
	if k.cache, err = cacheFile(c.TicketFile, k.settings.cache); err != nil {
		return err
	}
	k.where = "ticket cache " + k.cache
	owner, _, err := readCache(k.cache)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no ticket: %w: run kinit, or set auth.ticket_file or auth.keytab_file", err)
	}
	if err != nil {
		return err
	}
	k.user = owner
	if c.User == "" {
		return nil
	}
	if k.user, err = parsePrincipal(c.User, owner.realm); err != nil {
		return err
	}
	if !k.user.is(owner) {
		return fmt.Errorf("the %s is of %s and auth.user is %s", k.where, owner, k.user)
	}
	return nil
}

// Ends returns the time at which the last ticket-granting ticket expires, and the name of the
// ticket cache. The time is zero with a keytab.
func (k *Client) Ends() (what string, at time.Time, err error) {
	if k.cache == "" {
		return k.where, at, nil
	}
	owner, all, err := readCache(k.cache)
	for _, t := range all {
		name := t.service.name.NameString
		if t.client.is(owner) && len(name) > 0 && name[0] == "krbtgt" && t.end.After(at) {
			at = t.end
		}
	}
	return k.where, at, err
}

// User returns the principal of the requests, name@REALM.
func (k *Client) User() string { return k.user.String() }

// Request returns an AP-REQ for a service, service/host@REALM. It requests a ticket from a KDC if
// there is no ticket for the service yet; this ends with ctx and within ten seconds. A KDC's
// refusal is an error that wraps fs.ErrPermission.
func (k *Client) Request(ctx context.Context, service string) ([]byte, error) {
	t, err := k.ticket(ctx, service)
	if err != nil {
		return nil, err
	}
	b, err := t.form.request(k.now())
	if err != nil {
		return nil, fmt.Errorf("request for %s: %w", clip(service), err)
	}
	return b, nil
}

// Until returns the time at which the ticket for a service expires, zero without a ticket.
func (k *Client) Until(service string) time.Time {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if t := k.tickets[service]; t != nil {
		return t.end
	}
	return time.Time{}
}

// now returns the time in whole microseconds, a different time at every call. If the machine's
// clock was set back, it follows.
func (k *Client) now() time.Time {
	for {
		last, now := k.last.Load(), time.Now().UnixMicro()
		if last >= now && last < now+time.Second.Microseconds() {
			now = last + 1
		}
		if k.last.CompareAndSwap(last, now) {
			return time.UnixMicro(now).UTC()
		}
	}
}

// parseService parses the service name that a server announces. If it has no realm, the realm is
// that of the host in the configuration, or else the user's realm.
func (k *Client) parseService(s string) (principal, error) {
	name, _, _ := strings.Cut(s, "@")
	_, host, _ := strings.Cut(name, "/")
	return parsePrincipal(s, k.settings.realmOf(host, k.user.realm))
}
