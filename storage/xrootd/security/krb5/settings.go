package krb5

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
)

// settings are the settings of a krb5.conf that this package uses.
type settings struct {
	lib     *config.Config      // for the messages
	kdcs    map[string][]string // host:port by realm
	dns     bool                // look up other realms' KDCs in the DNS
	domains map[string]string   // realms by host name or .domain
	cache   string              // default_ccache_name
}

// readSettings reads files, or the files in KRB5_CONFIG, or /etc/krb5.conf.
func readSettings(files string) (*settings, error) {
	files = cmp.Or(files, os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf")
	p, err := readProfile(files)
	if err != nil {
		return nil, err
	}
	s, err := p.settings()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", files, err)
	}
	return s, nil
}

func (p profile) settings() (*settings, error) {
	s := &settings{lib: config.New(), kdcs: map[string][]string{}, domains: map[string]string{}}
	s.cache = p.first("libdefaults/default_ccache_name", "")
	s.dns = p.on("libdefaults/dns_lookup_kdc", true)
	l := &s.lib.LibDefaults
	l.DefaultRealm = p.first("libdefaults/default_realm", "")
	l.Canonicalize = p.on("libdefaults/canonicalize", false)
	l.Forwardable = p.on("libdefaults/forwardable", false)
	l.Proxiable = p.on("libdefaults/proxiable", false)
	l.NoAddresses = p.on("libdefaults/noaddresses", true)
	var err error
	if l.Clockskew, err = p.lasting("libdefaults/clockskew", 5*time.Minute); err != nil {
		return nil, err
	}
	if l.TicketLifetime, err = p.lasting("libdefaults/ticket_lifetime", 24*time.Hour); err != nil {
		return nil, err
	}
	permitted := p.first("libdefaults/permitted_enctypes", "")
	if l.DefaultTktEnctypeIDs, err = encryptions(p.first("libdefaults/default_tkt_enctypes", permitted)); err != nil {
		return nil, err
	}
	if l.DefaultTGSEnctypeIDs, err = encryptions(p.first("libdefaults/default_tgs_enctypes", permitted)); err != nil {
		return nil, err
	}
	for path, values := range p {
		if realm, ok := strings.CutPrefix(path, "realms/"); ok && strings.HasSuffix(realm, "/kdc") {
			realm = strings.TrimSuffix(realm, "/kdc")
			for _, v := range values {
				if !strings.Contains(realm, "/") { // otherwise it is of a block within the realm's block
					s.kdcs[realm] = append(s.kdcs[realm], address(v))
				}
			}
		}
		if domain, ok := strings.CutPrefix(path, "domain_realm/"); ok {
			s.domains[domain] = values[0]
		}
	}
	return s, nil
}

// address returns host:port of the value of a kdc line.
func address(v string) string {
	v = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(v, "*"), "tcp/"), "udp/")
	if _, _, err := net.SplitHostPort(v); err == nil {
		return v
	}
	return net.JoinHostPort(strings.Trim(v, "[]"), "88")
}

// encryptions returns the types of a list in krb5.conf that this package supports, in the order of
// the list; for an empty list or DEFAULT it returns the C library's types.
func encryptions(list string) ([]int32, error) {
	standard := []int32{
		etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96,
		etypeID.AES256_CTS_HMAC_SHA384_192, etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.RC4_HMAC,
	}
	var ids []int32
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
		switch id := etypeID.ETypesByName[strings.ToLower(strings.TrimPrefix(name, "+"))]; {
		case strings.EqualFold(name, "DEFAULT"):
			ids = append(ids, standard...)
		case slices.Contains(standard, id):
			ids = append(ids, id)
		case strings.EqualFold(name, "aes"):
			ids = append(ids, standard[:4]...)
		case strings.EqualFold(name, "rc4"):
			ids = append(ids, etypeID.RC4_HMAC)
		}
	}
	if list == "" {
		return standard, nil
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("encryption types %s: none is known: use some of aes256-cts-hmac-sha1-96, aes128-cts-hmac-sha1-96, "+
			"aes256-cts-hmac-sha384-192, aes128-cts-hmac-sha256-128", clip(list))
	}
	return ids, nil
}

// realmOf returns the realm of a host in the configuration, or ours.
func (s *settings) realmOf(host, ours string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if r, ok := s.domains[host]; ok {
		return r
	}
	for rest := host; ; {
		_, domain, ok := strings.Cut(rest, ".")
		if !ok {
			return ours
		}
		if r, ok := s.domains["."+domain]; ok {
			return r
		}
		rest = domain
	}
}

// servers returns the addresses of a realm's KDCs.
func (s *settings) servers(ctx context.Context, realm string) ([]string, error) {
	if k := s.kdcs[realm]; len(k) > 0 {
		return k, nil
	}
	if !s.dns {
		return nil, fmt.Errorf("the Kerberos configuration has no KDC of realm %s: add kdc = HOST to its [realms]", clip(realm))
	}
	_, found, err := net.DefaultResolver.LookupSRV(ctx, "kerberos", "tcp", realm)
	if err != nil {
		return nil, fmt.Errorf("neither the Kerberos configuration nor the DNS names a KDC of realm %s: %w", clip(realm), err)
	}
	var k []string
	for _, f := range found {
		k = append(k, net.JoinHostPort(strings.TrimSuffix(f.Target, "."), strconv.Itoa(int(f.Port))))
	}
	return k, nil
}
