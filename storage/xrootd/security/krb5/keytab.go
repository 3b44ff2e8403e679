package krb5

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/types"
)

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

// parsePrincipal reads name[/instance][@REALM]; realm is taken when none is
// there.
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

// holder is the principal of a keytab that user names, or its first, and the
// encryption types of its keys.
func holder(kt *keytab.Keytab, user, realm string) (principal, []int32, error) {
	first := principal{types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, strings.Join(kt.Entries[0].Principal.Components, "/")), kt.Entries[0].Principal.Realm}
	p := first
	if user != "" {
		if realm == "" {
			realm = first.realm
		}
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

// newestOf is a keytab with the newest keys of p alone, one for each
// encryption type: KDCs do not always say which version they used, and the
// library would go by the second in which a key was written.
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
