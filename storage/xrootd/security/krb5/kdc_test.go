package krb5_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/require"
	"weir/lab/labtest"
)

const (
	realm   = "WEIR.TEST"
	other   = "OTHER.TEST"
	service = "xrootd/localhost@" + realm
	abroad  = "xrootd/far@" + other
)

// A kdc is a real KDC, of two realms that trust each other.
type kdc struct {
	t    testing.TB
	dir  string
	conf string // krb5.conf of clients
	env  []string
}

// startKDC starts a KDC with the users ada, who needs pre-authentication, and bob, who does not,
// and with a service in each realm.
func startKDC(t testing.TB) *kdc {
	t.Helper()
	labtest.Need(t, "krb5kdc", "kdb5_util", "kadmin.local", "kinit")
	k := &kdc{t: t, dir: t.TempDir()}
	address := reserve(t)
	k.conf = k.write("krb5.conf", k.config(address))
	server := "[kdcdefaults]\n kdc_listen = \"\"\n kdc_tcp_listen = " + address + "\n[logging]\n kdc = STDERR\n default = STDERR\n[realms]\n"
	for _, r := range []string{realm, other} {
		server += fmt.Sprintf(" %s = {\n  database_name = %s/%s\n  key_stash_file = %s/%s.stash\n  max_life = 10h\n"+
			"  supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha256-128:normal\n }\n", r, k.dir, r, k.dir, r)
	}
	k.env = append(os.Environ(), "KRB5_CONFIG="+k.conf, "KRB5_KDC_PROFILE="+k.write("kdc.conf", server))
	for _, r := range []string{realm, other} {
		k.run("kdb5_util", "create", "-r", r, "-s", "-P", "weir")
		k.admin(r, "addprinc -pw trust krbtgt/"+other+"@"+realm)
	}
	k.admin(realm, "addprinc -randkey +requires_preauth ada")
	k.admin(realm, "addprinc -randkey -requires_preauth bob")
	k.admin(realm, "addprinc -randkey "+service)
	k.admin(other, "addprinc -randkey "+abroad)
	for _, who := range []string{"ada", "bob", service} {
		k.admin(realm, "ktadd -norandkey -k "+k.file(short(who)+".keytab")+" "+who)
	}
	k.admin(other, "ktadd -norandkey -k "+k.file("abroad.keytab")+" "+abroad)
	k.serve(address)
	return k
}

// reserve holds a port chosen by the kernel until t ends: it is bound without listening, so no
// other process gets it, and a server with SO_REUSEADDR may listen.
func reserve(t testing.TB) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		t.Cleanup(func() { _ = unix.Close(fd) })
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	require.NoError(t, err)
	name, err := unix.Getsockname(fd)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
}

func short(principal string) string {
	s, _, _ := strings.Cut(principal, "@")
	return strings.ReplaceAll(s, "/", "-")
}

func (k *kdc) config(address string) string {
	c := "[libdefaults]\n default_realm = " + realm + "\n dns_lookup_kdc = false\n rdns = false\n udp_preference_limit = 1\n clockskew " +
		"= 300\n[realms]\n"
	for _, r := range []string{realm, other} {
		c += " " + r + " = {\n  kdc = " + address + "\n }\n"
	}
	return c
}

func (k *kdc) file(name string) string { return filepath.Join(k.dir, name) }

func (k *kdc) write(name, text string) string {
	k.t.Helper()
	if err := os.WriteFile(k.file(name), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return k.file(name)
}

func (k *kdc) run(program string, args ...string) {
	k.t.Helper()
	cmd := exec.CommandContext(k.t.Context(), program, args...)
	cmd.Env = k.env
	if out, err := cmd.CombinedOutput(); err != nil {
		k.t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
}

func (k *kdc) admin(realm, query string) {
	k.t.Helper()
	k.run("kadmin.local", "-r", realm, "-p", "root@"+realm, "-q", query)
}

// serve runs the KDC until the test ends, and returns when it accepts requests.
func (k *kdc) serve(address string) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "krb5kdc", "-n", "-r", realm, "-r", other)
	cmd.Env = k.env
	if err := cmd.Start(); err != nil {
		cancel()
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 2000 {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return
		}
		<-tick.C
	}
	k.t.Fatal("the KDC does not come up")
}

// ticket runs kinit for ada and returns the ticket cache.
func (k *kdc) ticket(options ...string) string {
	k.t.Helper()
	cache := k.file(fmt.Sprintf("cache-%d", time.Now().UnixNano()))
	k.run("kinit", append(options, "-k", "-t", k.file("ada.keytab"), "-c", "FILE:"+cache, "ada")...)
	return cache
}
