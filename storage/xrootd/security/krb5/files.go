package krb5

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// maxCache is the maximum size of a ticket cache, in bytes; even caches with hundreds of large
// tickets are much smaller.
const maxCache = 16 << 20

// A principal is a name in a realm.
type principal struct {
	name  types.PrincipalName
	realm string
}

// String returns name@REALM.
func (p principal) String() string { return p.name.PrincipalNameString() + "@" + p.realm }

func (p principal) is(o principal) bool { return p.realm == o.realm && p.name.Equal(o.name) }

// cacheFile returns the file of a ticket cache: the given file, or that of KRB5CCNAME, or the usual
// file in /tmp if it exists, or the file named in krb5.conf. XRootD's own client uses the same
// order.
func cacheFile(given, standard string) (string, error) {
	name, whence := given, "auth.ticket_file"
	if name == "" {
		name, whence = os.Getenv("KRB5CCNAME"), "KRB5CCNAME"
	}
	if usual := fmt.Sprintf("/tmp/krb5cc_%d", os.Geteuid()); name == "" {
		if _, err := os.Stat(usual); err == nil || standard == "" {
			return usual, nil
		}
		uid := strconv.Itoa(os.Geteuid())
		name, whence = strings.NewReplacer("%{uid}", uid, "%{euid}", uid).Replace(standard), "default_ccache_name"
	}
	kind, rest, typed := strings.Cut(name, ":")
	switch {
	case !typed || strings.Contains(kind, "/"):
		return name, nil
	case kind == "FILE" || kind == "WRFILE":
		return rest, nil
	case kind == "DIR" && strings.HasPrefix(rest, ":"):
		return rest[1:], nil // one file of the folder
	}
	return "", fmt.Errorf("%s %s is no file: put the ticket into one (kinit -c FILE:/path) and name it in auth.ticket_file, "+
		"or use auth.keytab_file", whence, clip(name))
}

// readCache reads all tickets of a cache file and their owner. Tickets of an unknown form are left
// out.
func readCache(file string) (principal, []*ticket, error) {
	info, err := os.Stat(file)
	if err != nil {
		return principal{}, nil, err
	}
	if info.Size() > maxCache {
		return principal{}, nil, fmt.Errorf("%s: %d bytes are too many for a ticket cache", file, info.Size())
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return principal{}, nil, err
	}
	p, tickets, err := parseCache(b)
	if err != nil {
		return p, nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, tickets, nil
}

// parseCache reads version 3 or 4 of the format of
// https://web.mit.edu/kerberos/krb5-latest/doc/formats/ccache_file_format.html
func parseCache(b []byte) (principal, []*ticket, error) {
	r := &cursor{rest: b}
	version := r.integer(2)
	switch version {
	case 0x0504:
		r.bytes(r.integer(2)) // header fields
	case 0x0503:
	default:
		return principal{}, nil, errors.New("this is no ticket cache as kinit -c FILE:/path writes them")
	}
	owner := r.principal()
	if r.short || len(owner.name.NameString) == 0 {
		return owner, nil, errors.New("the ticket cache is cut off")
	}
	var tickets []*ticket
	for len(r.rest) > 0 {
		t := r.credential(version)
		if r.short {
			return owner, tickets, errors.New("the ticket cache is cut off")
		}
		if t != nil {
			tickets = append(tickets, t)
		}
	}
	return owner, tickets, nil
}

// A cursor parses a file; short is set after a read beyond the end.
type cursor struct {
	rest  []byte
	short bool
}

func (r *cursor) bytes(n int) []byte {
	if n > len(r.rest) || r.short {
		r.short, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *cursor) integer(size int) int {
	var full [4]byte
	copy(full[4-size:], r.bytes(size))
	return int(binary.BigEndian.Uint32(full[:]))
}

func (r *cursor) data() []byte { return r.bytes(r.integer(4)) }

func (r *cursor) time() time.Time { return time.Unix(int64(r.integer(4)), 0) }

func (r *cursor) principal() principal {
	p := principal{name: types.PrincipalName{NameType: int32(r.integer(4))}}
	parts := r.integer(4)
	p.realm = string(r.data())
	for range parts {
		if r.short {
			break
		}
		p.name.NameString = append(p.name.NameString, string(r.data()))
	}
	return p
}

// credential reads one entry; it returns nil if the entry is not a ticket that we can use.
func (r *cursor) credential(version int) *ticket {
	t := &ticket{client: r.principal(), service: r.principal()}
	t.key.KeyType = int32(r.integer(2))
	if version == 0x0503 {
		r.integer(2) // the key's type again
	}
	t.key.KeyValue = r.data()
	authenticated := r.time()
	if t.start = r.time(); t.start.Unix() == 0 {
		t.start = authenticated
	}
	t.end = r.time()
	r.bytes(4 + 1 + 4) // renewable until, user to user, flags
	for range 2 {      // addresses, authorization data
		for range r.integer(4) {
			r.bytes(2)
			r.data()
			if r.short {
				return nil
			}
		}
	}
	ticketBytes := r.data()
	r.data() // second ticket
	if r.short || strings.HasPrefix(t.service.realm, "X-CACHECONF") {
		return nil
	}
	err := guard("ticket", func() error {
		t.ticket = messages.Ticket{}
		return t.ticket.Unmarshal(ticketBytes)
	})
	if err != nil || len(t.ticket.SName.NameString) == 0 {
		return nil
	}
	return t
}

// guard turns a panic of f into an error: the Kerberos library indexes into its input without
// checking the length.
func guard(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("malformed %s: %v", what, r)
		}
	}()
	return f()
}

// readKeytab reads the keys of a file.
func readKeytab(file string) (*keytab.Keytab, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("keytab: %w", err)
	}
	kt := keytab.New()
	if err := guard("keytab", func() error { return kt.Unmarshal(b) }); err != nil {
		return nil, fmt.Errorf("%s: this is no keytab: %w", file, err)
	}
	if len(kt.Entries) == 0 || len(kt.Entries[0].Principal.Components) == 0 {
		return nil, fmt.Errorf("%s: the keytab holds no key", file)
	}
	return kt, nil
}

// parsePrincipal reads name[/instance][@REALM]; realm is the default.
func parsePrincipal(s, realm string) (principal, error) {
	name, own, has := strings.Cut(s, "@")
	if has {
		realm = own
	}
	bad := func(r rune) bool { return r <= ' ' || r == 0x7f || r == '@' || r == '\\' }
	if len(s) > 512 || name == "" || realm == "" || strings.ContainsFunc(name, bad) || strings.ContainsFunc(realm, bad) {
		return principal{}, fmt.Errorf("%q is no Kerberos principal: want name@REALM or service/host@REALM", clip(s))
	}
	p := principal{types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, name), realm}
	if slices.Contains(p.name.NameString, "") {
		return principal{}, fmt.Errorf("%q is no Kerberos principal: a part of the name is empty", clip(s))
	}
	return p, nil
}

// holder returns the principal of a keytab that user names, or its first principal, and the
// encryption types of its keys.
func holder(kt *keytab.Keytab, user, realm string) (principal, []int32, error) {
	first := principal{types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, strings.Join(kt.Entries[0].Principal.Components, "/")),
		kt.Entries[0].Principal.Realm}
	p := first
	if user != "" {
		realm = cmp.Or(realm, first.realm)
		var err error
		if p, err = parsePrincipal(user, realm); err != nil {
			return p, nil, err
		}
	}
	var keys []int32
	var others []string
	for _, e := range kt.Entries {
		if e.Principal.Realm == p.realm && slices.Equal(e.Principal.Components, p.name.NameString) {
			keys = append(keys, e.Key.KeyType)
		} else if o := e.Principal.String(); !slices.Contains(others, o) {
			others = append(others, o)
		}
	}
	if len(keys) == 0 {
		return p, nil, errors.New("the keytab has no key of " + p.String() + ", but of " + clip(strings.Join(others, ", ")) + ": set auth.user")
	}
	return p, keys, nil
}

// newestOf returns a keytab with only the newest keys of p, one for each encryption type: KDCs do
// not always name the version that they used, and the library would choose by the time, in seconds,
// at which a key was written.
func newestOf(kt *keytab.Keytab, p principal) *keytab.Keytab {
	index := map[int32]int{} // by encryption type
	kept := keytab.New()
	for _, e := range kt.Entries {
		if e.Principal.Realm != p.realm || !slices.Equal(e.Principal.Components, p.name.NameString) {
			continue
		}
		i, has := index[e.Key.KeyType]
		if !has {
			index[e.Key.KeyType] = len(kept.Entries)
			kept.Entries = append(kept.Entries, e)
		} else if e.KVNO > kept.Entries[i].KVNO {
			kept.Entries[i] = e
		}
	}
	return kept
}
