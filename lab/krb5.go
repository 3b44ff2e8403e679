package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

//go:embed krb5.conf
var krb5Conf string

//go:embed kdc.conf
var kdcConf string

// Realm is the Kerberos realm of a system with krb5.
const Realm = "WEIR.TEST"

// servicePrincipal is the name of all its servers.
const servicePrincipal = "xrootd/localhost@" + Realm

// kerberos adds a KDC of the system's own, with a user and a service, as a part.
func (c XRootDConfig) kerberos(ctx context.Context, s *System, v *xrootdValues) {
	p := s.newPort(false)
	krb5Files(s, p)
	keytab := filepath.Join(s.Dir, "kdc/xrootd.keytab")
	c.principals(ctx, s, keytab)
	kdc := s.program(c.Config, "krb5kdc")
	s.kinit, s.TicketCache = s.program(c.Config, "kinit"), filepath.Join(s.Dir, "client/tickets")
	s.part("kdc", func(ctx context.Context) error {
		if err := askListener(p.Address())(ctx); err != nil {
			return err
		}
		return newTicket(ctx, s, s.TicketCache, month)
	}, kdc, "-n")
	v.Protocol, v.Security = "krb5", "sec.protocol krb5 "+keytab+" "+servicePrincipal
	s.Env = append(s.Env, "KRB5_CONFIG="+s.Krb5Conf, "KRB5CCNAME=FILE:"+s.TicketCache)
	for key, value := range map[string]string{"method": "krb5", "user": s.User, "keytab_file": s.Keytab, "krb5_file": s.Krb5Conf} {
		s.set(key, value)
	}
}

// krb5Files writes the configurations of clients and of the KDC at p, and has all parts use them.
func krb5Files(s *System, p *port) {
	s.newDir("kdc")
	values := map[string]string{"Realm": Realm, "KDC": p.Address(), "Dir": s.Dir}
	s.Krb5Conf = s.openFile("krb5.conf", s.render(krb5Conf, values), 0o644)
	s.env = append(s.env, "KRB5_CONFIG="+s.Krb5Conf, "KRB5_KDC_PROFILE="+s.config("kdc/kdc.conf", kdcConf, values))
}

// principals makes the KDC's database and the keys of user and service.
func (c XRootDConfig) principals(ctx context.Context, s *System, keytab string) {
	s.Principal = s.User + "@" + Realm
	userKeys := filepath.Join(s.Dir, "kdc/user.keytab")
	s.tool(ctx, s.user, s.env, s.program(c.Config, "kdb5_util"), "create", "-r", Realm, "-s", "-P", "weir-lab")
	admin := s.program(c.Config, "kadmin.local")
	for _, ask := range [][]string{
		{"addprinc", "-randkey", s.Principal}, {"addprinc", "-randkey", servicePrincipal},
		{"ktadd", "-k", userKeys, s.Principal}, {"ktadd", "-k", keytab, servicePrincipal},
	} {
		s.tool(ctx, s.user, s.env, append([]string{admin, "-r", Realm, "-p", "root/admin@" + Realm}, ask...)...)
	}
	if s.err == nil {
		keys, err := os.ReadFile(userKeys)
		s.fail(err)
		s.Keytab = s.clientFile("user.keytab", keys)
	}
}

// newTicket requests the user's ticket from the KDC.
func newTicket(ctx context.Context, s *System, cache string, lifetime time.Duration) error {
	seconds := fmt.Sprintf("%ds", max(1, int(lifetime/time.Second)))
	return s.runTool(ctx, -1, []string{"KRB5_CONFIG=" + s.Krb5Conf}, s.kinit, "-k", "-t", s.Keytab, "-l", seconds, "-c", "FILE:"+
		cache, s.Principal)
}

// TicketFor makes one more ticket cache of the user, good for lifetime in whole seconds, and
// returns its file. If lifetime is zero or less, it returns when a ticket of one second has
// expired.
func (s *System) TicketFor(ctx context.Context, lifetime time.Duration) (string, error) {
	if s.kinit == "" {
		return "", errors.New("lab: only a system with krb5 has tickets")
	}
	cache, err := s.newClientFile("tickets", nil)
	if err != nil {
		return "", err
	}
	if err := newTicket(ctx, s, cache, lifetime); err != nil || lifetime > 0 {
		return cache, err
	}
	select { // times of tickets are whole seconds, and clocks may differ by krb5.conf's skew
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
	}
	return cache, ctx.Err()
}

// tool runs a program while the system is put together.
func (s *System) tool(ctx context.Context, user int, env []string, argv ...string) {
	if s.err == nil {
		s.fail(s.runTool(ctx, user, env, argv...))
	}
}

// runTool runs a program that ends by itself, as a user or, with -1, as this process's user.
func (s *System) runTool(ctx context.Context, user int, env []string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = s.Dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Dir, "TMPDIR=" + s.Dir, "LC_ALL=C"}, env...)
	cmd.WaitDelay = 30 * time.Second // only for a hanging command: on a busy machine the last output may come late
	if user >= 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	}
	_, err := outputOf(cmd)
	return err
}
